# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg's memory numbers: use, peak, limit and leaks after errors."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable

import pytest
import torch

Output = Callable[..., str]

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_left_over() -> None:
    """Frees what earlier tests left in cycles and caches, so that sizes are exact."""
    gc.collect()
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)
    torch.openreg.empty_cache()


@pytest.mark.parametrize(
    ("elements", "rounded"), [(1, 512), (128, 512), (129, 1024), (MIB, 4 * MIB)]
)
def test_allocated_goes_up_and_down_by_the_rounded_size(
    elements: int, rounded: int
) -> None:
    before = torch.openreg.memory_allocated()
    x = torch.empty(elements, device="openreg")
    assert torch.openreg.memory_allocated() - before == rounded
    assert x.numel() == elements
    del x
    assert torch.openreg.memory_allocated() == before


def test_empty_tensor_and_views_allocate_nothing() -> None:
    x = torch.ones(100, device="openreg")
    before = torch.openreg.memory_allocated()
    kept = [torch.empty(0, device="openreg"), x[10:], x.view(10, 10).T]
    assert torch.openreg.memory_allocated() == before
    assert len(kept) == 3


def test_memory_is_counted_for_each_device() -> None:
    before = [torch.openreg.memory_allocated(i) for i in range(2)]
    x = torch.empty(MIB, device="openreg:1")
    after = [torch.openreg.memory_allocated(d) for d in ("openreg:0", x.device)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 4 * MIB]


def test_peak_persists_until_it_is_reset() -> None:
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_allocated()
    assert torch.openreg.max_memory_allocated() == before
    x = torch.empty(MIB, device="openreg")
    del x
    assert torch.openreg.max_memory_allocated() - before == 4 * MIB
    torch.openreg.reset_peak_memory_stats()
    assert torch.openreg.max_memory_allocated() == before


def test_reserved_covers_allocated() -> None:
    x = torch.empty(MIB, device="openreg")
    assert torch.openreg.memory_reserved() >= torch.openreg.memory_allocated()
    assert torch.openreg.max_memory_reserved() >= torch.openreg.memory_reserved()
    del x
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() >= torch.openreg.memory_allocated()


def test_totals_accumulate_until_they_are_reset() -> None:
    torch.openreg.reset_accumulated_memory_stats()
    for _ in range(3):
        torch.empty(MIB, device="openreg")
    stats = torch.openreg.memory_stats()
    assert stats["allocated_bytes.all.allocated"] == 12 * MIB
    assert stats["allocated_bytes.all.freed"] == 12 * MIB


def test_free_memory_is_the_unreserved_memory() -> None:
    before, total = torch.openreg.mem_get_info()
    x = torch.empty(32 * MIB, device="openreg")
    after, _ = torch.openreg.mem_get_info()
    assert before - after == x.nbytes == 128 * MIB
    assert total - after == torch.openreg.memory_reserved()


def test_empty_cache_releases_the_memory() -> None:
    before = torch.openreg.mem_get_info()
    torch.empty(32 * MIB, device="openreg")
    assert torch.openreg.mem_get_info() != before
    torch.openreg.empty_cache()
    assert torch.openreg.mem_get_info() == before


def test_numbers_agree_with_torch_accelerator() -> None:
    x = torch.empty(MIB, device="openreg:1")
    assert torch.openreg.memory_stats(1) == torch.accelerator.memory_stats(1)
    assert torch.openreg.memory_allocated(1) == torch.accelerator.memory_allocated(1)
    assert torch.openreg.mem_get_info(1) == torch.accelerator.get_memory_info(1)
    assert torch.openreg.memory_allocated(x.device) >= x.nbytes


def test_nested_statistics_are_the_flat_ones() -> None:
    keep = torch.ones(300, device="openreg:1")
    torch.empty(2**21, device="openreg:1")
    flat = torch.openreg.memory_stats("openreg:1")
    nested = torch.openreg.memory_stats_as_nested_dict("openreg:1")

    def flatten(prefix: str, value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            return {prefix: value}
        return {
            name: each
            for key, inner in value.items()
            for name, each in flatten(f"{prefix}.{key}", inner).items()
        }

    flattened = {
        name: each
        for key, value in nested.items()
        for name, each in flatten(key, value).items()
    }
    assert flattened == flat
    assert nested["active_bytes"]["all"]["current"] >= keep.nbytes


def test_summary_shows_device_and_figures() -> None:
    x = torch.empty(MIB, device="openreg:1")
    summary = torch.openreg.memory_summary(1)
    first, second, *table = summary.splitlines()
    units = {"KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
    words = first.removeprefix("Memory of openreg:1: ").split()
    assert words[2:4] == ["free", "of"]
    shown = [float(words[i]) * units[words[i + 1]] for i in (0, 4)]
    assert shown == pytest.approx(torch.openreg.mem_get_info(1), rel=1e-3)
    assert shown[0] < shown[1]
    assert second.startswith("Out of memory: ")
    rows = {line[:23].strip(): line[23:].split() for line in table}
    assert rows["Metric"][:2] == ["Cur", "Usage"]
    assert rows["Allocated memory"][:2] == ["4", "MiB"]
    assert rows["Allocations"][0] == rows["Active allocs"][0] == "1"
    assert rows["Oversize segments"] == ["0"] * 4
    assert sum("from large pool" in line for line in table) == 9
    assert "pool" not in torch.openreg.memory_summary(1, abbreviated=True)
    assert x.nbytes == 4 * MIB


def test_too_large_tensor_is_refused_and_the_device_still_works() -> None:
    free, total = torch.openreg.mem_get_info()
    with pytest.raises(torch.openreg.OutOfMemoryError) as caught:
        torch.empty(total + 1, dtype=torch.uint8, device="openreg")
    assert caught.type is torch.OutOfMemoryError
    assert "openreg" in str(caught.value).lower()
    assert torch.openreg.mem_get_info() == (free, total)
    assert (torch.ones(3, device="openreg") + 1).tolist() == [2, 2, 2]


def test_memory_limit_follows_the_environment(output: Output) -> None:
    source = """
    import torch
    print(torch.openreg.mem_get_info()[1])
    kept = []
    try:
        while True:
            kept.append(torch.ones(1 << 18, device="openreg"))
    except torch.OutOfMemoryError as error:
        print(len(kept), "8.00 MiB" in str(error), torch.openreg.memory_allocated())
    kept.clear()
    torch.openreg.synchronize()
    print(torch.openreg.memory_allocated())
    print(torch.ones(2, device="openreg").sum().item())
    """
    printed = output(source, OPENREG_DEVICE_MEMORY="8MiB").splitlines()
    assert printed == [str(8 * MIB), f"8 True {8 * MIB}", "0", "2.0"]


def test_numbers_are_zero_before_first_use(output: Output) -> None:
    source = """
    import torch
    print(torch.openreg.memory_allocated(), torch.openreg.max_memory_reserved())
    print(torch.openreg.memory_stats(), torch.openreg.is_initialized())
    """
    assert output(source).split() == ["0", "0", "{}", "False"]


def test_fraction_limits_the_memory_of_the_process(output: Output) -> None:
    source = """
    import torch
    mib, openreg = 1 << 20, torch.openreg
    print(openreg.get_per_process_memory_fraction())
    openreg.set_per_process_memory_fraction(0.5, 0)
    print(openreg.get_per_process_memory_fraction("openreg:0"))
    print(openreg.get_per_process_memory_fraction(1))
    x = torch.empty(30 * mib, dtype=torch.uint8, device="openreg")
    torch.empty(40 * mib, dtype=torch.uint8, device="openreg:1")
    try:
        torch.empty(4 * mib, dtype=torch.uint8, device="openreg")
    except torch.OutOfMemoryError as error:
        print(str(error)[:170])
        print("32.00 MiB allowed; Of the allocated memory 30.00 MiB" in str(error))
    print(openreg.mem_get_info(0)[0] // mib)
    openreg.set_per_process_memory_fraction(1.0)
    print(torch.empty(4 * mib, dtype=torch.uint8, device="openreg").numel())
    """
    printed = output(source, OPENREG_DEVICE_MEMORY="64MiB").splitlines()
    assert printed[:3] == ["1.0", "0.5", "1.0"]
    assert printed[3].startswith(
        "OpenReg out of memory. Tried to allocate 20.00 MiB. Device openreg:0 has a "
        "total capacity of 64.00 MiB of which 34.00 MiB is free."
    )
    assert printed[4:] == ["True", "34", str(4 * MIB)]


@pytest.mark.parametrize(
    ("fraction", "error", "text"),
    [
        (1, TypeError, "fraction must be a float, but got 1"),
        ("1", TypeError, "fraction must be a float, but got '1'"),
        (-0.1, ValueError, "fraction must be from 0 to 1, but got -0.1"),
        (1.5, ValueError, "fraction must be from 0 to 1, but got 1.5"),
        (float("nan"), ValueError, "fraction must be from 0 to 1, but got nan"),
    ],
)
def test_fraction_that_is_none_is_refused(
    fraction: object, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        torch.openreg.set_per_process_memory_fraction(fraction)  # type: ignore[arg-type]
    assert torch.openreg.get_per_process_memory_fraction() == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.openreg.set_per_process_memory_fraction(0.5, 7),
        lambda: torch.openreg.get_per_process_memory_fraction(7),
        lambda: torch.openreg.memory_summary(7),
        lambda: torch.openreg.memory._snapshot(7),
        lambda: torch.openreg.memory._record_memory_history(device=7),
    ],
)
def test_unknown_device_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match="Invalid device id 7"):
        call()
