# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of quantized tensors: comparison with the CPU, and engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from .examples import Compare, parameters


@pytest.fixture
def alike(same: Compare) -> Compare:
    """Returns a function that compares results with the CPU's: bytes and parameters."""

    def compare(result: Any, expected: Any) -> None:
        if isinstance(expected, (list, tuple)):
            assert len(result) == len(expected)
            for one, other in zip(result, expected, strict=True):
                compare(one, other)
            return
        if not (isinstance(expected, Tensor) and expected.is_quantized):
            same(result, expected)
            return
        assert result.dtype == expected.dtype
        assert result.qscheme() == expected.qscheme()
        assert result.stride() == expected.stride()
        same(parameters(result), parameters(expected))
        same(result.int_repr(), expected.int_repr())

    return compare


@pytest.fixture
def agree(device: str, alike: Compare) -> Callable[..., None]:
    """Returns a function that calls another on the CPU and on the device.

    Both must have the same results, or raise the same messages.
    """

    def attempt(function: Callable[..., Any], args: list[Any]) -> Any:
        try:
            return function(*args)
        except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
            return error

    def check(function: Callable[..., Any], *args: Any) -> None:
        expected = attempt(function, list(args))
        moved = [each.to(device) if isinstance(each, Tensor) else each for each in args]
        result = attempt(function, moved)
        if isinstance(expected, Exception):
            assert type(result) is type(expected)
            if "with arguments from the 'QuantizedCPU' backend" in str(expected):
                assert "nor a kernel for QuantizedCPU that the device could run" in str(
                    result
                )
            else:
                assert str(result) == str(expected)
        else:
            if isinstance(result, Exception):
                raise result
            alike(result, expected)

    return check


@pytest.fixture(params=["x86", "onednn", "qnnpack"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Selects the library behind PyTorch's quantized kernels."""
    if request.param not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this torch is built without {request.param}")
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before
