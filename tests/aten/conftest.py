# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the ATen tests: the device, and comparison with the CPU."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

# On threads, measured times decide whether a burst of small operators is enqueued. The
# first import of openreg_runtime, perhaps by torch, reads the setting.
if os.environ.get("OPENREG_ISOLATION") != "process":
    os.environ.setdefault("OPENREG_ENQUEUE_BURSTS", "0")

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import openreg_aten
from openreg_conformance.checks.mirrors import bits, mirror

# Set before the first backward pass, because the device's autograd thread keeps the
# number from its start. With one thread a kernel always sums in the same order, so that
# results are equal bit by bit.
torch.set_num_threads(1)

openreg_aten._C.init()


@pytest.fixture(scope="session")
def device() -> str:
    """The device's name: ``privateuseone`` unless a package has renamed it."""
    name: str = torch._C._get_privateuse1_backend_name()
    # The first use of the device makes it torch's accelerator.
    assert torch.empty(1, device=name).device.type == name
    return name


@pytest.fixture(autouse=True)
def fixed_state(device: str) -> Iterator[None]:
    """Seeds every generator, and checks that a test leaves device 0 current."""
    torch.manual_seed(0)
    yield
    assert torch.accelerator.current_device_index() == 0


def assert_same(result: Any, expected: Any, kind: str) -> None:
    """Asserts the same structure, metadata and bits, on a device of type ``kind``."""
    results, result_spec = pytree.tree_flatten(result)
    wanted, wanted_spec = pytree.tree_flatten(expected)
    assert result_spec == wanted_spec
    for one, other in zip(results, wanted, strict=True):
        if not isinstance(other, Tensor):
            assert one == other
            continue
        assert one.device.type == kind
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.stride() == other.stride()
        assert one.storage_offset() == other.storage_offset()
        assert one.is_conj() == other.is_conj()
        assert one.is_neg() == other.is_neg()
        if not torch.equal(bits(one), bits(other)):
            torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0, equal_nan=True)
            pytest.fail("values are equal, but not their bits")


@pytest.fixture
def same(device: str) -> Callable[[Any, Any], None]:
    """Returns a function that compares a device's result with the CPU's, bit by bit."""

    def compare(result: Any, expected: Any) -> None:
        assert_same(result, expected, device)

    return compare


@pytest.fixture
def to_device(device: str) -> Callable[[Any], Any]:
    """Returns a function that copies CPU tensors with their geometry to the device."""

    def move(values: Any) -> Any:
        return mirror(values, device)

    return move


@pytest.fixture
def both(device: str) -> Callable[..., Any]:
    """Returns a function that calls another with CPU tensors and with device tensors.

    Results must have the CPU's bits, and so must the arguments afterwards, because an
    operator may change them. Returns the device's result.
    """

    def run(function: Callable[..., Any], *args: Any) -> Any:
        moved = mirror(args, device)
        expected = function(*args)
        result = function(*moved)
        assert_same(result, expected, device)
        assert_same(moved, args, device)
        return result

    return run


@pytest.fixture
def settled_memory() -> Callable[[int], int]:
    """Returns a function that reads device 0's allocated bytes and expects a value.

    Garbage is collected first: earlier tests may have left tensors in reference cycles,
    such as the modules of a traced network. The device's autograd thread and a stream
    release their last block shortly after the caller continues, so the function retries
    for a while.
    """
    gc.collect()

    def read(expected: int) -> int:
        deadline = time.monotonic() + 10
        while True:
            torch.accelerator.synchronize(0)
            allocated: int = torch.accelerator.memory_allocated(0)
            if allocated == expected or time.monotonic() > deadline:
                return allocated

    return read


@pytest.fixture
def empty_pool(device: str, settled_memory: Callable[[int], int]) -> Iterator[None]:
    """Starts and ends a test with nothing allocated and nothing cached."""
    assert settled_memory(0) == 0, "an earlier test holds memory"
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved(0) == 0
    yield
    torch.accelerator.synchronize(0)
    torch.accelerator.empty_cache()
    blocks = ("allocation", "segment", "active", "inactive_split")
    sizes = ("allocated", "reserved", "active", "inactive_split", "requested")
    stats = torch.accelerator.memory_stats(0)
    for name in (*blocks, *(f"{each}_bytes" for each in sizes)):
        assert stats[f"{name}.all.current"] == 0, name
