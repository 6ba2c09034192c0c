# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator: sizes, counters, and what happens when memory runs out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.programs import Program

pytestmark = pytest.mark.usefixtures("empty_pool")

KIB, MIB = 1 << 10, 1 << 20


def read(name: str, index: int = 0) -> int:
    """A counter of the allocator; without a kind, the current value of all pools."""
    stats = torch.accelerator.memory_stats(index)
    return int(stats[name] if name in stats else stats[f"{name}.all.current"])


def take(size: int, device: str) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, device=device)


@pytest.mark.parametrize(
    ("size", "rounded"),
    [(1, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)],
)
def test_size_is_rounded_up_to_512(device: str, size: int, rounded: int) -> None:
    x = take(size, device)
    assert x.data_ptr() % 512 == 0
    assert torch.accelerator.memory_allocated(0) == rounded
    assert read("requested_bytes") == size
    assert x.untyped_storage().nbytes() == size


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
        (64 * MIB + 1, 66 * MIB),
    ],
)
def test_segment_is_of_the_documented_size(
    device: str, size: int, segment: int
) -> None:
    x = take(size, device)
    assert torch.accelerator.memory_reserved(0) == segment
    assert read("segment") == 1
    pool = "small_pool" if size <= MIB else "large_pool"
    assert read(f"reserved_bytes.{pool}.current") == segment
    del x
    assert torch.accelerator.memory_reserved(0) == segment
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved(0) == 0


def test_tensor_without_elements_takes_no_memory(device: str) -> None:
    x = take(0, device)
    assert x.data_ptr() == 0
    assert torch.accelerator.memory_reserved(0) == 0


def test_blocks_are_split_and_merge_again_in_every_order(device: str) -> None:
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        blocks: list[Tensor | None] = [take(512 * KIB, device) for _ in range(4)]
        addresses = [each.data_ptr() for each in blocks if each is not None]
        assert addresses == [addresses[0] + i * 512 * KIB for i in range(4)]
        assert read("inactive_split") == 0
        for place in order:
            blocks[place] = None
        assert read("inactive_split") == 0
        assert read("inactive_split_bytes") == 0
        whole = take(MIB, device)
        assert whole.data_ptr() == addresses[0], "the blocks did not merge"
        assert read("segment") == 1
        del whole


def test_rest_of_a_split_is_counted_and_used(device: str) -> None:
    first = take(512, device)
    assert read("inactive_split") == 1
    assert read("inactive_split_bytes") == 2 * MIB - 512
    second = take(512, device)
    third = take(512, device)
    del second
    assert read("inactive_split") == 2
    again = take(100, device)
    assert again.data_ptr() == first.data_ptr() + 512, "not the best fit"
    torch.accelerator.empty_cache()
    assert read("segment") == 1, "a segment in use was released"
    del first, third


def test_freed_block_is_used_again(device: str) -> None:
    x = take(3 * MIB, device)
    address = x.data_ptr()
    del x
    assert take(3 * MIB, device).data_ptr() == address
    assert read("segment") == 1


def test_large_rest_below_a_mebibyte_is_not_split(device: str) -> None:
    x = take(12 * MIB, device)
    del x
    x = take(11 * MIB, device)
    assert x.numel() == 11 * MIB
    assert torch.accelerator.memory_allocated(0) == 12 * MIB
    assert read("inactive_split") == 0


def test_peaks_and_accumulated_counters_are_reset(device: str) -> None:
    x = take(4 * KIB, device)
    y = take(4 * KIB, device)
    del x
    torch.accelerator.reset_peak_memory_stats(0)
    assert torch.accelerator.max_memory_allocated(0) == 4 * KIB
    z = take(KIB, device)
    assert torch.accelerator.max_memory_allocated(0) == 5 * KIB
    assert torch.accelerator.max_memory_reserved(0) == 2 * MIB
    torch.accelerator.reset_accumulated_memory_stats(0)
    assert read("allocation.all.allocated") == 0
    assert read("num_device_alloc") == 0
    del y, z
    assert read("allocation.all.freed") == 2
    assert torch.accelerator.max_memory_allocated(0) == 5 * KIB


def test_devices_have_pools_of_their_own(device: str) -> None:
    before = torch.accelerator.memory_allocated(1)
    free, total = torch.accelerator.get_memory_info(1)
    x = take(32 * MIB, f"{device}:1")
    assert torch.accelerator.memory_allocated(1) == before + 32 * MIB
    assert torch.accelerator.memory_allocated(0) == 0
    assert torch.accelerator.get_memory_info(1) == (free - 32 * MIB, total)
    del x
    torch.accelerator.empty_cache()
    assert torch.accelerator.get_memory_info(1)[0] >= free


OPERATIONS: dict[str, Callable[[str], object]] = {
    "add": lambda d: torch.ones(100, device=d) + 1,
    "matmul": lambda d: torch.ones(50, 50, device=d) @ torch.ones(50, 50, device=d),
    "backward": lambda d: torch.ones(9, device=d, requires_grad=True).sum().backward(),
    "item": lambda d: torch.ones(9, device=d).sum().item(),
    "nonzero": lambda d: torch.ones(9, device=d).nonzero(),
    "resize": lambda d: torch.ones(9, device=d).resize_(100000),
    "print": lambda d: repr(torch.ones(9, device=d)),
    "conv": lambda d: torch.conv2d(
        torch.ones(1, 3, 9, 9, device=d), torch.ones(2, 3, 3, 3, device=d)
    ),
    "peer": lambda d: torch.ones(9, device=d).to(f"{d}:1").to(d),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operator_releases_its_memory(
    device: str, settled_memory: Callable[[int], int], name: str
) -> None:
    OPERATIONS[name](device)
    assert settled_memory(0) == 0


FAILURES: dict[str, Callable[[Tensor], object]] = {
    "index": lambda x: x[torch.tensor([99], device=x.device)],
    "cholesky": lambda x: torch.linalg.cholesky(-x),
    "solve": lambda x: torch.linalg.solve(x * 0, x),
    "matmul": lambda x: x @ x[:3],
    "embedding": lambda x: torch.embedding(x, torch.tensor([99], device=x.device)),
    "cat": lambda x: torch.cat([x, x[:, :2]]),
    "out": lambda x: torch.exp(x, out=torch.empty(0, device=x.device).int()),
    "nll": lambda x: torch.nn.functional.nll_loss(
        x, torch.tensor([99, 0, 0, 0], device=x.device)
    ),
    "layout": lambda x: x.to_mkldnn(),
    "mixed": lambda x: x + torch.ones(4),
}


@pytest.mark.parametrize("name", FAILURES)
def test_operator_that_throws_leaves_no_memory_behind(device: str, name: str) -> None:
    x = torch.eye(4, device=device)
    before = torch.accelerator.memory_allocated(0)
    for _ in range(3):
        with pytest.raises((RuntimeError, IndexError)):
            FAILURES[name](x)
    assert torch.accelerator.memory_allocated(0) == before
    assert (x + x).sum().item() == 8


def test_out_of_memory_reports_numbers_and_the_device_still_works(
    run_python: Program,
) -> None:
    source = """
    import torch
    import openreg_aten

    d, mib = "privateuseone", 1 << 20

    def take(count):
        return torch.empty(count * mib, dtype=torch.uint8, device=d)

    kept = take(20)
    kept.fill_(7)
    cached = [take(10), take(10)]
    del cached
    assert torch.accelerator.memory_reserved(0) == 40 * mib
    # Needs the cached memory, which is released before an allocation fails.
    large = take(40)
    stats = torch.accelerator.memory_stats(0)
    assert stats["num_alloc_retries"] == 1 and stats["num_ooms"] == 0, stats
    assert torch.accelerator.memory_reserved(0) == 60 * mib
    small = torch.ones(3, device=d)

    for action in (
        lambda: take(30),
        lambda: torch.cat([large, large]),
        lambda: kept.resize_(64 * mib),
        lambda: large + large,
        lambda: torch.zeros(30 * mib, dtype=torch.uint8).to(d),
    ):
        try:
            action()
        except torch.OutOfMemoryError as error:
            print(error)
        else:
            raise AssertionError("not refused")
        assert torch.accelerator.memory_allocated(0) == 60 * mib + 512
        assert kept.numel() == 20 * mib and kept[-1].item() == 7
    assert torch.accelerator.memory_stats(0)["num_ooms"] >= 5
    assert torch.ones(4, device=d).sum().item() == 4
    assert torch.ones(3, device=d + ":1").sum().item() == 3
    del large
    assert take(40).numel() == 40 * mib
    """
    done = run_python(source, OPENREG_DEVICE_MEMORY="64MiB")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert "Tried to allocate 30.00 MiB" in first
    assert "total capacity of 64.00 MiB of which 2.00 MiB is free" in first
    assert "60.00 MiB is allocated by PyTorch" in first
    assert "2.00 MiB is reserved by PyTorch but unallocated" in first
    assert len(rest) == 4
    assert all("out of memory" in line for line in rest)
