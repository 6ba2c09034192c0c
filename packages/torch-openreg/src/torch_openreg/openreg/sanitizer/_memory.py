# SPDX-License-Identifier: BSD-3-Clause
"""The last uses of each memory region.

Memory is divided into cells, each with its last write and the reads after it. A cell
outlives its tensor: the uses of freed memory count until it is written again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch

from torch_openreg._lines import Place

from ._order import Clock, Order

if TYPE_CHECKING:
    from ._graphs import Capture

# The most partial uses of a cell; the oldest are dropped.
_PARTS = 32
# Regions with gaps are compared byte by byte up to this length. Longer ones count as
# disjoint, because a report must be correct.
_COMPARED = 1 << 28


@dataclass(eq=False)
class Life:
    """A block of memory from its allocation until it is freed.

    Attributes:
        segment: The segment of the block. A wait separates two segments.
        stream: The stream whose later work reuses the block.
        allocated: The line that allocated it.
        capture: The capture whose pool contains it, if any. That pool has no other
            program memory, and replays use the block even after it was freed.
        ended: Whether it was freed.
        freed: The line that freed it.
        waited_for: The work of other streams that completes before the block is reused,
            because of ``record_stream``.
        waited_in: The order of the clock ``waited_for``.
    """

    segment: object
    stream: int
    allocated: Place | None
    capture: Capture | None = None
    ended: bool = False
    freed: Place | None = None
    waited_for: Clock = field(default_factory=dict)
    waited_in: Order | None = None


#: Sizes and strides, in bytes.
Steps = tuple[tuple[int, int], ...]


class Region(NamedTuple):
    """The bytes of a tensor: ``gaps`` is empty if they are contiguous."""

    start: int
    end: int
    gaps: Steps


@dataclass(eq=False, slots=True)
class Use:
    """A use of memory by an operator.

    Attributes:
        number: The operator's number, in program order.
        stream: The stream of the use, or the host.
        device: The stream's device, or None for the host.
        writes: Whether it writes.
        region: The bytes.
        life: The block that contains the bytes.
        operator: Schema, or the name of a compiled kernel.
        arguments: The schema's names.
        place: The line of the program.
        captured: For a use by a replay, the captured line; ``place`` is the line of the
            replay.
        by_replay: Whether it is a use by a graph replay.
    """

    number: int
    stream: int
    device: torch.device | None
    writes: bool
    region: Region
    life: Life
    operator: torch.FunctionSchema | str
    arguments: list[str]
    place: Place | None
    captured: Place | None = None
    by_replay: bool = False


@dataclass(eq=False, slots=True)
class _Cell:
    start: int
    end: int
    writes: list[Use]  # one of the whole cell, and later partial ones
    reads: list[Use]  # after the writes, by stream and part


class Memory:
    """The cells of an address space, ordered and without overlap."""

    def __init__(self) -> None:
        self._cells: list[_Cell] = []
        self._starts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._cells)

    def uses(self, region: Region, *, writes: bool) -> list[Use]:
        """Returns the earlier uses of a region that must precede a new use."""
        first, last = self._range(region)
        found: dict[Use, None] = {}
        for cell in self._cells[first:last]:
            found.update(dict.fromkeys(cell.writes))
            if writes:
                found.update(dict.fromkeys(cell.reads))
        return list(found)

    def add(self, use: Use) -> None:
        """Notes the use of a region."""
        start, end, gaps = use.region
        self._split(start)
        self._split(end)
        first, last = self._range(use.region)
        if use.writes and not gaps:
            self._cells[first:last] = [_Cell(start, end, [use], [])]
            self._starts[first:last] = [start]
            return
        cells = list(_tiled(self._cells[first:last], start, end))
        self._cells[first:last] = cells
        self._starts[first:last] = [cell.start for cell in cells]
        for cell in cells:
            uses = cell.writes if use.writes else cell.reads
            uses[:] = [
                other
                for other in uses
                if other.stream != use.stream or (gaps and other.region != use.region)
            ]
            uses.append(use)
            del uses[:-_PARTS]

    def prune(self, is_over: Callable[[Use], bool]) -> None:
        """Drops cells whose uses are all completed."""
        self._cells = [
            cell
            for cell in self._cells
            if not all(map(is_over, [*cell.writes, *cell.reads]))
        ]
        self._starts = [cell.start for cell in self._cells]

    def _range(self, region: Region) -> tuple[int, int]:
        first = bisect_right(self._starts, region.start) - 1
        if first < 0 or self._cells[first].end <= region.start:
            first += 1
        return first, bisect_left(self._starts, region.end)

    def _split(self, address: int) -> None:
        index = bisect_right(self._starts, address) - 1
        if index < 0 or not self._starts[index] < address < self._cells[index].end:
            return
        cell = self._cells[index]
        rest = _Cell(address, cell.end, cell.writes.copy(), cell.reads.copy())
        cell.end = address
        self._cells.insert(index + 1, rest)
        self._starts.insert(index + 1, address)


def _tiled(cells: list[_Cell], start: int, end: int) -> Iterator[_Cell]:
    """Yields the cells, and new ones for gaps."""
    for cell in cells:
        if start < cell.start:
            yield _Cell(start, cell.start, [], [])
        yield cell
        start = cell.end
    if start < end:
        yield _Cell(start, end, [], [])


def storage_address(tensor: torch.Tensor) -> int:
    """Returns the start address of a strided tensor's storage.

    Unlike ``data_ptr()``, it does not materialize a lazy copy.
    """
    address: int = torch._C._data_address(tensor)  # type: ignore[attr-defined]
    return address


def region_of(tensor: torch.Tensor) -> Region | None:
    """Returns the bytes of a strided tensor, or None if it has no memory."""
    if tensor.numel() == 0 or storage_address(tensor) == 0:
        return None
    item = tensor.element_size()
    # The elements of an expanded dimension share an address.
    steps = [
        (size, stride * item)
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        if size > 1 and stride
    ]
    start = storage_address(tensor) + int(tensor.storage_offset()) * item
    length = int(sum((size - 1) * stride for size, stride in steps)) + item
    filled = math.prod(size for size, _ in steps) * item >= length
    return Region(start, start + length, () if filled else (*steps, (item, 1)))


def overlap(one: Region, other: Region) -> bool:
    """Returns whether two regions overlap."""
    if one.start >= other.end or other.start >= one.end:
        return False
    if not one.gaps and not other.gaps:
        return True
    if max(one.end - one.start, other.end - other.start) > _COMPARED:
        return False
    return _parts_overlap(
        other.start - one.start,
        (one.end - one.start, one.gaps),
        (other.end - other.start, other.gaps),
    )


@lru_cache(maxsize=1024)
def _parts_overlap(
    distance: int, one: tuple[int, Steps], other: tuple[int, Steps]
) -> bool:
    low, high = max(0, distance), min(one[0], distance + other[0])
    here = _bytes(*one)[low:high]
    there = _bytes(*other)[low - distance : high - distance]
    return bool((here & there).any())


def _bytes(length: int, gaps: Steps) -> torch.Tensor:
    """Returns a mask of the bytes that belong to a region."""
    if not gaps:
        return torch.ones(length, dtype=torch.bool)
    marks = torch.zeros(length, dtype=torch.bool)
    sizes, strides = zip(*gaps, strict=True)
    marks.as_strided(sizes, strides).fill_(True)
    return marks
