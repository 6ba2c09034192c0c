# SPDX-License-Identifier: BSD-3-Clause
"""Views share the memory of their base, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

Both = Callable[..., Any]

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda x: x.view(4, 6),
    "view_dtype": lambda x: x.view(torch.int32),
    "view_smaller_dtype": lambda x: x.view(torch.int16),
    "reshape": lambda x: x.reshape(-1),
    "as_strided": lambda x: x.as_strided((3, 2), (1, 4), 2),
    "unfold": lambda x: x.unfold(0, 2, 2),
    "transpose": lambda x: x.transpose(0, 2),
    "permute": lambda x: x.permute(2, 0, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x[1, :, 2],
    "slice": lambda x: x[..., ::2],
    "diagonal": lambda x: x.diagonal(dim1=1, dim2=2),
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "split": lambda x: x.split(1, dim=2)[1],
    "chunk": lambda x: x.chunk(2)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "movedim": lambda x: x.movedim(0, -1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "view_as": lambda x: x.view_as(x),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "hsplit": lambda x: x.hsplit(3)[0],
    "view_as_complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
    "view_as_real": lambda x: torch.view_as_real(x.view(torch.complex64)),
    "real": lambda x: x.view(torch.complex64).real,
    "imag": lambda x: x.view(torch.complex64).imag,
    "conj": lambda x: x.view(torch.complex64).conj(),
    "neg": lambda x: x.view(torch.complex64).conj().imag,
    "mT": lambda x: x.mT,
}


@pytest.mark.parametrize("name", VIEWS)
def test_view_has_the_layout_of_the_cpu_and_shares_memory(
    both: Both, name: str
) -> None:
    both(VIEWS[name], torch.randn(2, 3, 4))
    x = torch.randn(2, 3, 4)

    def read(x: Tensor) -> Tensor:
        view = VIEWS[name](x)
        x.add_(1)  # the base changes its views
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        return view

    def write(x: Tensor) -> Tensor:
        VIEWS[name](x).fill_(7)  # a view changes its base
        VIEWS[name](x)[..., 0].mul_(2)
        return x

    both(read, x)
    both(write, x)


WITHOUT_GRADIENT = ("view_dtype", "view_smaller_dtype", "detach")


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in WITHOUT_GRADIENT])
def test_gradient_flows_through_a_view(both: Both, name: str) -> None:
    both(lambda x: differentiate(VIEWS[name], x), torch.randn(24))


def differentiate(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """The gradient with respect to the values of a view's base of shape (2, 3, 4)."""
    leaf = values.clone().requires_grad_()
    if function in (VIEWS[n] for n in ("view_as_real", "real", "imag", "conj", "neg")):
        pairs = torch.view_as_complex((leaf * 2).view(2, 3, 2, 2))
        table = {
            VIEWS["view_as_real"]: torch.view_as_real,
            VIEWS["real"]: torch.real,
            VIEWS["imag"]: torch.imag,
            VIEWS["conj"]: torch.conj,
            VIEWS["neg"]: lambda z: z.conj().imag,
        }
        out = table[function](pairs)
    else:
        out = function((leaf * 2).view(2, 3, 4))
    (gradient,) = torch.autograd.grad(out.abs().square().sum(), leaf)
    return gradient


def test_write_through_a_view_in_autograd_changes_the_gradient(both: Both) -> None:
    def run(x: Tensor) -> Tensor | None:
        leaf = x.clone().requires_grad_()
        base = leaf * 1
        base[1].mul_(3)
        base.view(-1)[0] = 5
        base.square().sum().backward()
        return leaf.grad

    both(run, torch.randn(3, 4))


def test_view_shares_the_version_of_its_base(device: str) -> None:
    base = torch.zeros(4, device=device)
    view = base.view(2, 2)
    view.add_(1)
    assert base._version == view._version == 1
    assert view._is_view()
    assert view._base is base


def test_view_keeps_the_memory_of_its_base_alive(device: str, settled_memory) -> None:
    before = settled_memory(0)
    view = torch.arange(1000.0, device=device)[10:12]
    held = torch.accelerator.memory_allocated(0) - before
    assert held == 4096
    assert view.tolist() == [10, 11]
    del view
    assert torch.accelerator.memory_allocated(0) == before


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.view(5), "is invalid for input of size"),
        (lambda x: x.t().view(-1), "not compatible with input tensor's size"),
        (lambda x: x.as_strided((100,), (1,)), "out of bounds for storage"),
        (lambda x: x.as_strided((2,), (-1,)), "Negative strides"),
        (lambda x: x.unfold(0, 9, 1), "maximum size for tensor at dimension 0"),
        (torch.view_as_complex, "must have a last dimension of size 2"),
        (torch.view_as_real, "only supported for complex tensors"),
        (lambda x: x.narrow(0, 1, 9), "exceeds dimension size"),
        (lambda x: x.expand(5, 3), "must match the existing size"),
    ],
)
def test_impossible_view_is_refused_in_the_words_of_the_cpu(
    device: str, function: Callable[[Tensor], Tensor], message: str
) -> None:
    for where in (device, "cpu"):
        # Since torch 2.15, view_as_real() raises a TypeError.
        with pytest.raises((RuntimeError, TypeError), match=message):
            function(torch.zeros(2, 3, device=where))
