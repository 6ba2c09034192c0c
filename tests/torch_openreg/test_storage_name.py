# SPDX-License-Identifier: BSD-3-Clause
"""Names of storages: data shared by all tensors of a storage."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

name = torch.openreg.storage_name
set_name = torch.openreg.set_storage_name


@pytest.fixture
def tensor() -> torch.Tensor:
    """Returns a tensor whose storage has a name."""
    x = torch.arange(6.0, device="openreg:1").view(2, 3)
    set_name(x, "weights")
    return x


def test_storage_has_no_name_until_it_is_given_one(tensor: torch.Tensor) -> None:
    assert name(torch.ones(2, device="openreg")) == ""
    assert name(tensor) == "weights"
    set_name(tensor[1], "other")
    assert name(tensor) == "other"
    set_name(tensor, "")
    assert name(tensor) == ""


def test_tensors_over_the_storage_share_the_name(tensor: torch.Tensor) -> None:
    whole = torch.empty(0, device="openreg:1").set_(tensor.untyped_storage())
    shared = [
        tensor[1],
        tensor.t(),
        tensor.detach(),
        tensor.data,
        torch.nn.Parameter(tensor),
        tensor.as_strided((2,), (1,)),
        torch.view_as_complex(tensor.flatten()[:2].view(1, 2)),
        copy.copy(tensor),
        whole,
    ]
    assert [name(x) for x in shared] == ["weights"] * len(shared)


def test_name_persists_when_the_memory_is_exchanged(tensor: torch.Tensor) -> None:
    row = tensor[0]
    before = tensor.data_ptr()
    tensor.resize_(1000, 1000)
    assert tensor.data_ptr() != before
    assert name(tensor) == name(row) == "weights"
    tensor.untyped_storage().resize_(0)
    assert name(row) == "weights"


def test_name_stays_with_the_storage_when_a_tensor_leaves_it(
    tensor: torch.Tensor,
) -> None:
    row = tensor[0]
    tensor.set_(torch.ones(2, device="openreg:1"))
    assert (name(tensor), name(row)) == ("", "weights")
    tensor.set_()
    set_name(tensor, "empty")
    assert name(tensor) == "empty"


def test_other_storages_have_no_name(tensor: torch.Tensor) -> None:
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    others = [
        tensor.clone(),
        copy.deepcopy(tensor),
        tensor.to("openreg:0"),
        tensor * 1,
        pickle.loads(pickle.dumps(tensor)),
        torch.load(file),
    ]
    assert [name(x) for x in others] == [""] * len(others)
    for other in others:
        set_name(other, "own")
        assert name(other[0]) == "own"
        assert torch.equal(other.cpu(), tensor.cpu())
    assert name(tensor) == "weights"


MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: torch.empty(2, 3, device="openreg"),
    "empty_strided": lambda: torch.empty_strided((2, 3), (1, 2), device="openreg"),
    "zeros": lambda: torch.zeros(2, 3, device="openreg"),
    "to": lambda: torch.ones(2, 3).to("openreg"),
    "pointwise": lambda: torch.ones(2, 3, device="openreg").exp(),
    "matmul": lambda: torch.ones(2, 3, device="openreg") @ torch.ones(3, 3).openreg(),
    "boxed": lambda: torch.linalg.pinv(torch.ones(3, 2, device="openreg")),
    "random": lambda: torch.rand(2, 3, device="openreg"),
    "no elements": lambda: torch.empty(0, 3, device="openreg"),
    "storage": lambda: torch.empty(0, device="openreg").set_(
        torch.UntypedStorage(24, device="openreg")
    ),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_new_tensor_can_have_a_name(maker: str) -> None:
    x = MAKERS[maker]()
    before = x.cpu()
    allocated = torch.openreg.memory_allocated()
    set_name(x, "mine")
    assert name(x) == name(x.t()) == "mine"
    assert torch.openreg.memory_allocated() == allocated
    assert torch.equal(x.cpu(), before) or maker in (
        "empty",
        "empty_strided",
        "storage",
    )
    x.add_(1)
    x.resize_(50)
    assert name(x) == "mine"


def test_result_of_a_kernel_that_others_hold_takes_no_name() -> None:
    x = torch.ones(3, 2, device="openreg").nonzero()
    row = x[0]
    with pytest.raises(
        RuntimeError, match="allocated by a kernel and is already shared"
    ):
        set_name(x, "late")
    assert name(row) == ""
    set_name(x.clone(), "late")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, "a"), TypeError, "tensor: expected a torch.Tensor, got 3"),
        ((torch.ones(1), "a"), ValueError, "expected one on openreg, got one on cpu"),
        ((torch.ones(1).openreg(), 3), TypeError, "name: expected a str, got 3"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        set_name(*arguments)
