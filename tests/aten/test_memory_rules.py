# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's rules of rounding, segments and settings, with the figures they give.

Each test runs in a separate process, because peaks and settings are per process.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from support.programs import Program

PREFIX = """
import torch
import openreg_aten

openreg_aten._C.init()
device, KIB, MIB = "privateuseone", 1 << 10, 1 << 20

def take(size):
    return torch.empty(size, dtype=torch.uint8, device=device)

def show(*names):
    stats = torch.accelerator.memory_stats(0)
    print(*(stats[name if name in stats else name + ".all.current"] for name in names))
"""


@pytest.fixture
def printed(run_python: Program) -> Callable[..., list[list[int]]]:
    """Runs a script after the prefix; returns the numbers of each printed line."""

    def run(source: str, **environment: str) -> list[list[int]]:
        done = run_python(PREFIX + source, **environment)
        assert done.returncode == 0, done.stderr
        return [
            [int(word) for word in line.split()] for line in done.stdout.split("\n")
        ]

    return run


KIB, MIB = 1 << 10, 1 << 20

# The steps of a program, and the bytes that CUDA's rules allocate and reserve. Requests
# are rounded up to 512 bytes; up to 1 MiB they share segments of 2 MiB; below 10 MiB,
# segments of 20 MiB; above, each has a segment that is a multiple of 2 MiB. The rest of
# a small block is split off from 512 bytes on, the rest of a large block above 1 MiB.
SEQUENCE: list[tuple[str, int, int]] = [
    ("a = take(1)", 512, 2 * MIB),
    ("b = take(1000)", 512 + 1024, 2 * MIB),
    # 1 MiB fits into the rest of the small segment: 2 MiB - 1536.
    ("c = take(MIB)", MIB + 1536, 2 * MIB),
    # The rest, 1 MiB - 1536, is too small: a second small segment.
    ("d = take(MIB)", 2 * MIB + 1536, 4 * MIB),
    # More than 1 MiB is large: a segment of 20 MiB.
    ("e = take(MIB + 1)", 3 * MIB + 2048, 24 * MIB),
    ("f = take(9 * MIB)", 12 * MIB + 2048, 24 * MIB),
    # Of the 20 MiB 10 MiB - 512 are left: 9.5 MiB fit, and as the rest, 512 KiB - 512,
    # is not split off, the block is 10 MiB - 512.
    ("g = take(9 * MIB + 512 * KIB)", 22 * MIB + 1536, 24 * MIB),
    # From 10 MiB on a separate segment, rounded up to 2 MiB, with a single block.
    ("h = take(11 * MIB)", 34 * MIB + 1536, 36 * MIB),
    # The freed 9 MiB lie between e and g: 2 MiB are taken from them.
    ("del f", 25 * MIB + 1536, 36 * MIB),
    ("i = take(2 * MIB)", 27 * MIB + 1536, 36 * MIB),
    # A freed small segment serves small requests only.
    ("del d", 26 * MIB + 1536, 36 * MIB),
    ("j = take(7 * MIB)", 33 * MIB + 1536, 36 * MIB),
    ("k = take(2 * MIB)", 35 * MIB + 1536, 56 * MIB),
    # Only whole segments are released: d's.
    ("torch.accelerator.empty_cache()", 35 * MIB + 1536, 54 * MIB),
    # 12 MiB were freed: the best fit for 11 MiB, whole, and for 10.5 MiB, split.
    ("del h", 23 * MIB + 1536, 54 * MIB),
    ("h = take(11 * MIB)", 35 * MIB + 1536, 54 * MIB),
    ("del h", 23 * MIB + 1536, 54 * MIB),
    ("h = take(10 * MIB + 512 * KIB)", 33 * MIB + 512 * KIB + 1536, 54 * MIB),
    ("del a, b, c, e, g, h, i, j, k", 0, 54 * MIB),
    ("torch.accelerator.empty_cache()", 0, 0),
]


def test_figures_of_a_sequence_are_those_of_the_rules(
    printed: Callable[..., list[list[int]]],
) -> None:
    script = "".join(
        f"{step}\nshow('allocated_bytes', 'reserved_bytes', "
        "'allocated_bytes.all.peak', 'reserved_bytes.all.peak')\n"
        for step, _, _ in SEQUENCE
    )
    expected = []
    peaks = (0, 0)
    for _, allocated, reserved in SEQUENCE:
        peaks = (max(peaks[0], allocated), max(peaks[1], reserved))
        expected.append([allocated, reserved, *peaks])
    assert printed(script)[:-1] == expected


def test_counters_of_a_sequence_are_those_of_the_rules(
    printed: Callable[..., list[list[int]]],
) -> None:
    (counters, pools, *_) = printed("""
a, b = take(100), take(3 * MIB)
del a
c = take(200)
show("allocation.all.allocated", "allocation.all.freed", "allocation", "segment",
     "inactive_split", "inactive_split_bytes", "requested_bytes", "num_device_alloc",
     "num_device_free", "num_alloc_retries", "num_ooms", "max_split_size",
     "oversize_allocations.current", "oversize_segments.current")
show("allocated_bytes.small_pool.current", "allocated_bytes.large_pool.current",
     "reserved_bytes.small_pool.current", "reserved_bytes.large_pool.current",
     "allocation.small_pool.allocated", "allocation.large_pool.allocated")
""")
    rest = (2 * MIB - 512) + (20 * MIB - 3 * MIB)
    requested = 200 + 3 * MIB
    assert counters == [3, 1, 2, 2, 2, rest, requested, 2, 0, 0, 0, -1, 0, 0]
    assert pools == [512, 3 * MIB, 2 * MIB, 20 * MIB, 2, 1]


def test_block_above_max_split_size_is_not_split(
    printed: Callable[..., list[list[int]]],
) -> None:
    (whole, small, near, *_) = printed(
        """
x = take(100 * MIB)
show("reserved_bytes", "oversize_allocations.current", "oversize_segments.current",
     "max_split_size")
del x
y = take(30 * MIB)  # not out of the 100 MiB, which are kept
show("reserved_bytes", "allocated_bytes")
z = take(90 * MIB)  # within 20 MiB of it, and unsplit
show("reserved_bytes", "allocated_bytes", "oversize_allocations.current")
""",
        PYTORCH_ALLOC_CONF="max_split_size_mb:40",
    )
    assert whole == [100 * MIB, 1, 1, 40 * MIB]
    assert small == [130 * MIB, 30 * MIB]
    assert near == [130 * MIB, 130 * MIB, 1]


def test_unsplit_segments_make_room_before_all_of_the_cache(
    printed: Callable[..., list[list[int]]],
) -> None:
    (one, two, *_) = printed(
        """
small, x, y = take(512), take(60 * MIB), take(50 * MIB)
cached = take(30 * MIB)
del x, y, cached
z = take(82 * MIB)  # neither segment is large enough alone
show("reserved_bytes", "num_alloc_retries", "oversize_segments.current")
del z
w = take(70 * MIB)  # another segment of 82 MiB is close enough
show("reserved_bytes", "num_alloc_retries")
""",
        PYTORCH_ALLOC_CONF="max_split_size_mb:40",
        OPENREG_DEVICE_MEMORY="150MiB",
    )
    assert one == [2 * MIB + 30 * MIB + 82 * MIB, 0, 1]
    assert two == [2 * MIB + 30 * MIB + 82 * MIB, 0]


DIVISIONS = [
    ("4", 1200, 1536),  # not above 4 * 512: the usual rounding
    ("4", 5 * KIB, 5 * KIB),
    ("4", 5 * KIB + 1, 6 * KIB),  # quarters of 4 KiB
    ("4", 1200 * KIB, 1280 * KIB),  # quarters of 1 MiB
    ("8", 1100 * KIB, 1152 * KIB),
    ("[4:1,16:2,>:8]", 3 * MIB + 1, 3 * MIB + 512),
    ("[4:1,16:2,>:8]", 17 * MIB, 24 * MIB),
    ("[4:1,16:2,>:8]", 33 * MIB, 36 * MIB),
]


def test_sizes_are_rounded_to_divisions_of_powers_of_two(
    printed: Callable[..., list[list[int]]],
) -> None:
    script = "set = torch._C._accelerator_setAllocatorSettings\n" + "".join(
        f"set('roundup_power2_divisions:{divisions}')\n"
        f"x = take({size})\nshow('allocated_bytes')\ndel x\n"
        for divisions, size, _ in DIVISIONS
    )
    assert printed(script)[:-1] == [[rounded] for _, _, rounded in DIVISIONS]


def test_large_segments_have_the_size_that_is_set(
    printed: Callable[..., list[list[int]]],
) -> None:
    (result, *_) = printed(
        "x = take(2 * MIB)\nshow('reserved_bytes')",
        PYTORCH_ALLOC_CONF="large_segment_size_mb:32",
    )
    assert result == [32 * MIB]


def test_garbage_collection_releases_the_least_recently_used_segments(
    printed: Callable[..., list[list[int]]],
) -> None:
    (before, after, *_) = printed(
        """
openreg_aten._C.set_memory_fraction(0, 1.0)
old, new = take(20 * MIB), take(22 * MIB)
del old
for _ in range(10):
    del new
    new = take(22 * MIB)
del new
show("reserved_bytes", "segment")
x = take(30 * MIB)  # 42 of 64 MiB are more than half
show("reserved_bytes", "segment", "num_alloc_retries")
""",
        PYTORCH_ALLOC_CONF="garbage_collection_threshold:0.5",
        OPENREG_DEVICE_MEMORY="64MiB",
    )
    assert before == [42 * MIB, 2]
    assert after == [52 * MIB, 2, 0], "the segment of 22 MiB stays"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ("nonsense:1", "Unrecognized key 'nonsense'"),
        ("max_split_size_mb:abc", "PYTORCH_ALLOC_CONF cannot be parsed"),
        pytest.param(
            "roundup_power2_divisions:[256:1",
            "PYTORCH_ALLOC_CONF cannot be parsed",
            marks=pytest.mark.skipif(
                torch.version.cuda is not None,
                reason="a CUDA build parses it at import, and aborts",
            ),
        ),
    ],
)
def test_settings_that_are_wrong_are_refused(
    run_python: Program, settings: str, error: str
) -> None:
    source = (
        PREFIX
        + """
for _ in range(2):
    try:
        take(1)
    except ValueError as error:
        print(error)
"""
    )
    done = run_python(source, PYTORCH_ALLOC_CONF=settings)
    first, second = done.stdout.splitlines()
    assert first == second
    assert error in first


def test_settings_without_effect_are_warned_of(run_python: Program) -> None:
    source = (
        PREFIX
        + """
import warnings

warnings.simplefilter("always")
print(take(1).numel())
for settings in (
    "max_split_size_mb:40,backend:cudaMallocAsync",
    "pinned_num_register_threads:8",
    "expandable_segments:False,backend:native",
    "pinned_use_background_threads:False,max_split_size_mb:40",
):
    torch._C._accelerator_setAllocatorSettings(settings)
"""
    )
    done = run_python(source, PYTORCH_ALLOC_CONF="expandable_segments:True")
    assert done.stdout.strip() == "1", done.stderr
    warned = re.findall(r"PYTORCH_ALLOC_CONF: (\w+) has no effect on", done.stderr)
    # In a CUDA build, the parser of CUDA's allocator reads the later settings.
    later = ["backend", "pinned_num_register_threads"] if not torch.version.cuda else []
    assert warned == ["expandable_segments", *later]


def test_settings_that_are_made_later_hold(
    printed: Callable[..., list[list[int]]],
) -> None:
    (before, after, *_) = printed("""
x = take(100 * MIB)
del x
y = take(30 * MIB)
show("reserved_bytes")
del y
torch._C._accelerator_setAllocatorSettings("max_split_size_mb:40")
y = take(30 * MIB)
show("reserved_bytes", "max_split_size")
try:
    torch._C._accelerator_setAllocatorSettings("nonsense:1")
except ValueError:
    pass
else:
    raise AssertionError("not refused")
""")
    assert before == [100 * MIB]
    assert after == [130 * MIB, 40 * MIB]
