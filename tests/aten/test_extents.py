# SPDX-License-Identifier: BSD-3-Clause
"""A tensor that exceeds its storage is an error in every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

Use = Callable[[Tensor, Tensor], Any]

# The operator, and the argument that the error names. The second tensor is valid.
USES: dict[str, tuple[Use, str]] = {
    "structured": (lambda x, y: x + y, "aten::add.Tensor: argument self"),
    "structured_other": (lambda x, y: y * x, "aten::mul.Tensor: argument other"),
    "structured_in_place": (lambda x, y: x.add_(y), "aten::add_.Tensor: argument self"),
    "structured_unary": (lambda x, y: x.exp(), "aten::exp: argument self"),
    "stub": (lambda x, y: x.abs(), "aten::abs.out: argument self"),
    "typed": (lambda x, y: x.sum(), "argument self"),
    "matmul": (lambda x, y: y @ x, "aten::mm: argument mat2"),
    "fill": (lambda x, y: x.zero_(), "aten::zero_: argument self"),
    "out": (lambda x, y: torch.mul(y, y, out=x), "aten::mul.out: argument out"),
    "list": (lambda x, y: torch.cat([y, x]), "aten::cat: argument tensors"),
    "foreach": (
        lambda x, y: torch._foreach_mul_([y, x], 2),
        "aten::_foreach_mul_.Scalar: argument self",
    ),
    "boxed": (lambda x, y: x.histc(), "aten::histc: argument self"),
    "index": (lambda x, y: y[x > 0], "aten::gt.Scalar: argument self"),
    "where": (lambda x, y: torch.where(y > 0, x, y), "argument self"),
    "random": (lambda x, y: x.uniform_(), "aten::uniform_: argument self"),
    "clone": (lambda x, y: x.clone(), "argument"),
    "copy_to": (lambda x, y: x.copy_(y), "aten::copy_: argument self"),
    "copy_from": (lambda x, y: y.copy_(x), "aten::copy_: argument src"),
    "cpu": (lambda x, y: x.cpu(), "aten::copy_: argument src"),
    "from_cpu": (lambda x, y: x.copy_(torch.ones(4, 4)), "aten::copy_: argument self"),
    "from_pinned": (
        lambda x, y: x.copy_(torch.ones(4, 4).pin_memory(), non_blocking=True),
        "aten::copy_: argument self",
    ),
    "to_pinned": (
        lambda x, y: torch.ones(4, 4).pin_memory().copy_(x, non_blocking=True),
        "aten::copy_: argument src",
    ),
    "dtype": (lambda x, y: x.double(), "aten::copy_: argument src"),
    "list_of_numbers": (lambda x, y: x.tolist(), "aten::copy_: argument src"),
}


@pytest.fixture
def y(device: str) -> Tensor:
    return torch.arange(16.0, device=device).view(4, 4)


@pytest.fixture
def x(y: Tensor) -> Iterator[Tensor]:
    """A tensor whose storage was resized to zero bytes."""
    x = y.clone()
    x.untyped_storage().resize_(0)
    assert x.shape == (4, 4)
    before = y.tolist()
    yield x
    torch.accelerator.synchronize()  # no later failure
    assert y.tolist() == before


def check_refused(call: Callable[[], object], named: str) -> None:
    with pytest.raises(torch.AcceleratorError, match="orErrorIllegalAddress") as info:
        call()
    message = str(info.value)
    assert named in message
    assert "of its storage, which has 0" in message
    assert "untyped_storage().resize_(" in message


@pytest.mark.parametrize("name", USES)
def test_storage_of_nothing_is_an_error_that_names_operator_and_argument(
    x: Tensor, y: Tensor, name: str
) -> None:
    use, named = USES[name]
    for _ in range(2):
        check_refused(lambda: use(x, y.clone()), named)
    x.untyped_storage().resize_(64)
    x.copy_(y)
    use(x, y.clone())


@pytest.mark.parametrize("name", USES)
def test_storage_of_nothing_is_an_error_of_the_call_on_a_busy_stream(
    x: Tensor, y: Tensor, latch: Any, name: str
) -> None:
    use, named = USES[name]
    if name in ("cpu", "list_of_numbers"):
        other = torch.zeros_like(y)
    else:
        other = y.clone()
        sound = y.clone()
        use(sound, other.clone())  # after one run it can be enqueued
    held = latch()
    check_refused(lambda: use(x, other), named)
    held.release()


def test_one_element_is_read_from_no_storage_of_nothing(device: str) -> None:
    one = torch.ones(1, device=device)
    one.untyped_storage().resize_(0)
    check_refused(one.item, "aten::_local_scalar_dense: argument self")
    check_refused(lambda: bool(one), "aten::")


def test_call_that_is_enqueued_for_its_size_checks_first(device: str) -> None:
    big = torch.ones(1 << 20, device=device)
    big.untyped_storage().resize_(0)
    check_refused(lambda: torch.where(big > 0, big, big), "aten::gt.Scalar")
    check_refused(lambda: torch.stack([big, big]), "aten::")
    check_refused(lambda: big.cumsum(0), "aten::cumsum: argument self")


def test_view_with_gaps_is_checked_by_its_last_element(device: str) -> None:
    base = torch.arange(16.0, device=device)
    gaps = base.as_strided((3,), (5,), 1)  # to element 11
    rows = base.view(4, 4).t()
    same = base[:1].expand(1000)
    assert gaps.sum().item() == 1 + 6 + 11
    base.untyped_storage().resize_(48)
    assert (gaps + 1).tolist() == [2, 7, 12]
    assert (same + 1).sum().item() == 1000
    with pytest.raises(torch.AcceleratorError, match=r"needs 64 bytes .* has 48"):
        rows + 1
    base.untyped_storage().resize_(47)
    with pytest.raises(torch.AcceleratorError, match=r"needs 48 bytes .* has 47"):
        gaps + 1
    with pytest.raises(torch.AcceleratorError, match=r"needs 48 bytes .* has 47"):
        gaps.sum()


def test_tensor_without_elements_needs_no_storage(device: str) -> None:
    base = torch.ones(8, device=device)
    empty = base[8:]
    base.untyped_storage().resize_(0)
    assert (empty + 1).shape == (0,)
    assert empty.sum().item() == 0
    assert empty.clone().tolist() == []
    empty.copy_(torch.ones(0))


def test_views_and_metadata_need_no_storage(x: Tensor) -> None:
    assert x.view(16).shape == x.detach().view(-1).shape
    assert torch.empty_like(x).shape == (4, 4)
    assert torch.zeros_like(x).sum().item() == 0
    assert x.untyped_storage().nbytes() == 0
    assert x.data_ptr() == 0


def test_storage_is_freed_and_filled_again(device: str) -> None:
    parameter = torch.nn.Parameter(torch.arange(4.0, device=device))
    kept = parameter.detach().clone()
    for _ in range(3):
        parameter.untyped_storage().resize_(0)
        parameter.untyped_storage().resize_(16)
        parameter.data.copy_(kept)
        (parameter * parameter).sum().backward()
    assert parameter.grad is not None
    assert parameter.grad.tolist() == [0, 6, 12, 18]


def test_half_that_runs_wider_names_the_operator(device: str) -> None:
    x = torch.ones(4, 4, dtype=torch.half, device=device)
    x.untyped_storage().resize_(0)
    check_refused(lambda: torch.linalg.svd(x), "aten::")
    check_refused(lambda: x + 1, "aten::add.Tensor: argument self")
    check_refused(lambda: torch.cdist(x, x), "aten::")


def test_components_are_checked(device: str) -> None:
    sparse = torch.eye(3).to_sparse().to(device)
    sparse._values().untyped_storage().resize_(0)
    check_refused(lambda: sparse * 2, "aten::")
    check_refused(sparse.to_dense, "aten::")


def test_number_of_the_host_is_checked(y: Tensor) -> None:
    number = torch.tensor(2.0)
    number.untyped_storage().resize_(0)
    check_refused(lambda: y * number, "aten::mul.Tensor: argument other")
    check_refused(lambda: torch.ones(3, 3).to(y.device) * number, "argument other")


def test_copy_of_a_host_tensor_without_memory_is_refused(y: Tensor) -> None:
    host = torch.ones(4, 4)
    host.untyped_storage().resize_(0)
    check_refused(lambda: y.copy_(host), "aten::copy_: argument src")
    check_refused(lambda: host.copy_(y), "aten::copy_: argument self")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_tensor_of_half_bytes_fits_into_its_storage(device: str) -> None:
    # Two elements share a byte, so the storage has fewer bytes than elements.
    floats, scales, points = torch.ones(2, 5), torch.ones(2), torch.zeros(2)
    x = torch.quantize_per_channel(
        floats.to(device), scales.to(device), points.to(device), 0, torch.quint4x2
    )
    assert x.untyped_storage().nbytes() < 10
    assert x.dequantize().cpu().equal(floats)
