# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg's memory numbers: use, peak, limit and what is left after an error."""

from __future__ import annotations

import gc
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


def test_peak_stays_until_it_is_reset() -> None:
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


def test_free_memory_is_what_is_not_reserved() -> None:
    before, total = torch.openreg.mem_get_info()
    x = torch.empty(32 * MIB, device="openreg")
    after, _ = torch.openreg.mem_get_info()
    assert before - after == x.nbytes == 128 * MIB
    assert total - after == torch.openreg.memory_reserved()


def test_empty_cache_gives_the_memory_back() -> None:
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


def test_summary_shows_device_and_figures() -> None:
    x = torch.empty(MIB, device="openreg:1")
    summary = torch.openreg.memory_summary(1)
    assert summary.startswith("Memory of openreg:1: 15.98 GiB free of 16 GiB")
    assert "Allocated memory" in summary
    assert len(summary.splitlines()) == 8
    assert len(torch.openreg.memory_summary(1, abbreviated=True).splitlines()) == 5
    assert x.nbytes == 4 * MIB


def test_too_large_tensor_is_refused_and_the_device_goes_on() -> None:
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
