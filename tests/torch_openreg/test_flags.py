# SPDX-License-Identifier: BSD-3-Clause
"""Flags of tensors: backend data in memory and in files."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch

FLAGS = {"packed": True, "padded": False}
flags = torch.openreg.tensor_flags


@pytest.fixture
def tensor() -> torch.Tensor:
    """Returns a tensor with flags."""
    x = torch.arange(6.0, device="openreg:1").view(2, 3)
    torch.openreg.set_tensor_flags(x, FLAGS)
    return x


def test_tensor_has_no_flags_until_it_is_given_some(tensor: torch.Tensor) -> None:
    assert flags(torch.ones(2, device="openreg")) == {}
    assert flags(tensor) == FLAGS
    torch.openreg.set_tensor_flags(tensor, {"other": True})
    assert flags(tensor) == {"other": True}
    torch.openreg.set_tensor_flags(tensor, {})
    assert flags(tensor) == {}


def test_result_is_a_copy(tensor: torch.Tensor) -> None:
    flags(tensor)["packed"] = False
    assert flags(tensor) == FLAGS
    detached = tensor.detach()
    torch.openreg.set_tensor_flags(detached, {})
    assert flags(tensor) == FLAGS


def test_flags_are_passed_on_as_far_as_pytorch_does(tensor: torch.Tensor) -> None:
    kept = [tensor.detach(), tensor.data, torch.nn.Parameter(tensor), copy.copy(tensor)]
    assert [flags(x) for x in kept] == [FLAGS] * 4
    lost = [tensor.clone(), tensor[0], tensor.t(), tensor + 1, copy.deepcopy(tensor)]
    assert [flags(x) for x in lost] == [{}] * 5


@pytest.mark.parametrize("location", [None, "openreg:0"])
@pytest.mark.parametrize("weights_only", [False, True])
def test_files_keep_flags(
    tensor: torch.Tensor, location: str | None, weights_only: bool
) -> None:
    file = io.BytesIO()
    torch.save({"x": tensor, "y": tensor.clone()}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=location, weights_only=weights_only)
    assert flags(loaded["x"]) == FLAGS
    assert flags(loaded["y"]) == {}
    assert torch.equal(loaded["x"].cpu(), tensor.cpu())


def test_file_with_flags_is_read_on_the_cpu(tensor: torch.Tensor) -> None:
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    assert torch.equal(torch.load(file, map_location="cpu"), tensor.cpu())


def test_flags_are_independent_of_the_bits_of_pytorch() -> None:
    x = torch.tensor([1 + 2j], device="openreg").conj()
    torch.openreg.set_tensor_flags(x, FLAGS)
    loaded = pickle.loads(pickle.dumps(x))
    assert loaded.is_conj()
    assert flags(loaded) == FLAGS
    assert torch.equal(loaded.cpu(), x.cpu())


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"conj": True}, ValueError, "the name 'conj' is reserved by PyTorch"),
        ({"neg": True}, ValueError, "the name 'neg' is reserved by PyTorch"),
        ({1: True}, TypeError, "expected names with a bool each, got 1: True"),
        ({"a": 1}, TypeError, "expected names with a bool each, got 'a': 1"),
    ],
)
def test_wrong_flags_are_refused(
    tensor: torch.Tensor, values: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        torch.openreg.set_tensor_flags(tensor, values)
    assert flags(tensor) == FLAGS


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (3, TypeError, "tensor: expected a torch.Tensor, got 3"),
        (torch.ones(1), ValueError, "tensor: expected one on openreg, got one on cpu"),
    ],
)
def test_tensors_without_flags_are_refused(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        flags(value)
    with pytest.raises(error, match=message):
        torch.openreg.set_tensor_flags(value, {})
