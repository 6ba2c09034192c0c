# SPDX-License-Identifier: BSD-3-Clause
"""Operators that have a CPU kernel and a composite one run the CPU's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import profile

COMPOSITES = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
_has = torch._C._dispatch_has_kernel_for_dispatch_key


def with_cpu_and_composite_kernel() -> list[str]:
    return [
        name
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("CPU")
        if name.startswith("aten::") and any(_has(name, key) for key in COMPOSITES)
    ]


def test_operator_with_a_cpu_kernel_has_a_kernel_of_the_device() -> None:
    names = with_cpu_and_composite_kernel()
    assert len(names) > 300
    assert "aten::native_layer_norm" in names
    assert [name for name in names if not _has(name, "PrivateUse1")] == []


def kernel_source(name: str) -> str:
    """Returns the line of the dispatch table with the source of the device's kernel."""
    for line in torch._C._dispatch_dump_table(name).splitlines():
        if line.startswith("PrivateUse1: "):
            return line
    return ""


def test_operator_with_a_cpu_kernel_never_dispatches_to_its_composite_kernel() -> None:
    composite = [
        name
        for name in with_cpu_and_composite_kernel()
        if "openreg-aten" not in kernel_source(name) or "math" in kernel_source(name)
    ]
    assert composite == []


def test_other_operators_run_through_the_fallback() -> None:
    assert "fallback.cpp" in kernel_source("aten::bincount")
    assert "copy.cpp" in kernel_source("aten::copy_")


def operators(function: Callable[..., Any], *inputs: Tensor) -> list[str]:
    with profile() as profiler:
        function(*inputs)
    return [each.name for each in profiler.events() if each.name.startswith("aten::")]


def test_layer_norm_is_one_kernel(device: str) -> None:
    x = torch.randn(16, 33).to(device)

    def run(x: Tensor) -> Tensor:
        return torch.native_layer_norm(x, (33,), None, None, 1e-5)[0]

    names = operators(run, x)
    assert "aten::native_layer_norm" in names
    assert not {"aten::var_mean", "aten::rsqrt", "aten::mul"} & set(names)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


NEW: dict[str, Callable[[str], Tensor]] = {
    "empty": lambda d: torch.empty(64, device=d),
    "empty_strided": lambda d: torch.empty_strided((4, 4), (4, 1), device=d),
    "empty_like": lambda d: torch.empty_like(torch.ones(64), device=d),
    "resize": lambda d: torch.empty(0, device=d).resize_(64),
}


@pytest.mark.usefixtures("deterministic")
@pytest.mark.parametrize("name", NEW)
def test_deterministic_mode_fills_uninitialized_memory(device: str, name: str) -> None:
    del_me = torch.full((64,), 3.0, device=device)
    del del_me
    assert NEW[name](device).isnan().all()


@pytest.mark.usefixtures("deterministic")
def test_deterministic_mode_fills_integers_with_their_maximum(device: str) -> None:
    filled = torch.empty(9, dtype=torch.int16, device=device)
    assert filled.tolist() == [torch.iinfo(torch.int16).max] * 9


@pytest.mark.usefixtures("deterministic")
def test_deterministic_fill_can_be_left_out(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)
    old = torch.full((64,), 3.0, device=device)
    address = old.data_ptr()
    del old
    new = torch.empty(64, device=device)
    assert new.data_ptr() == address
    assert not new.isnan().any()


ONLY_ON_THE_CPU: dict[str, Callable[[Tensor], Any]] = {
    "conj_physical_": lambda x: x.conj_physical_(),
    "mode.values": lambda x: torch.mode(
        x.real, 1, out=(x.real.new_empty(0), x.real.new_empty(0).long())
    ),
}


@pytest.mark.parametrize("name", ONLY_ON_THE_CPU)
def test_composite_kernel_that_asks_for_the_device_sees_the_cpu(
    to_device, same, name: str
) -> None:
    x = torch.randn(5, 3, dtype=torch.complex64)
    moved = to_device(x)
    same(ONLY_ON_THE_CPU[name](moved), ONLY_ON_THE_CPU[name](x))
    same(moved, x)
