# SPDX-License-Identifier: BSD-3-Clause
"""Who used which memory last.

Memory is divided into cells, each with its last write and the reads after it. A cell
outlives the tensor: what is said of freed memory holds until it is written to again.
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

# Uses of parts of a cell that are kept; where there are more, the oldest are forgotten.
_PARTS = 32
# Regions with gaps are compared byte by byte up to this length. Longer ones are taken
# as separate, for a report has to be right.
_COMPARED = 1 << 28


@dataclass(eq=False)
class Life:
    """A block of memory from its allocation until it is freed.

    Attributes:
        segment: What the block is a part of. Between two of them lies a wait.
        stream: The stream whose later work reuses the block.
        allocated: The line that allocated it.
        capture: The capture whose pool it came from, if any. No other program memory
            comes from such a pool, and replays use the block after its end, too.
        ended: Whether it was freed.
        freed: The line that freed it.
        waited_for: What completes before the block is reused, besides work of its own
            stream, since ``record_stream`` said so.
        waited_in: The order to which the clock ``waited_for`` belongs.
    """

    segment: object
    stream: int
    allocated: Place | None
    capture: Capture | None = None
    ended: bool = False
    freed: Place | None = None
    waited_for: Clock = field(default_factory=dict)
    waited_in: Order | None = None


#: Sizes and strides in bytes.
Steps = tuple[tuple[int, int], ...]


class Region(NamedTuple):
    """The bytes of a tensor: ``gaps`` is empty if they are all from start to end."""

    start: int
    end: int
    gaps: Steps


@dataclass(eq=False, slots=True)
class Use:
    """The use of memory by an operator.

    Attributes:
        number: That of the operator, in the order of the program.
        stream: The stream that does it, or the host.
        device: The stream's device, or None for the host.
        writes: Whether it writes.
        region: The bytes.
        life: The block that they are part of.
        operator: Schema, or the name of a compiled kernel.
        arguments: The schema's names.
        place: The line of the program.
        captured: For the use by a replay, the line that was captured; ``place`` is the
            line of the replay then.
        by_replay: Whether the replay of a graph uses it.
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
    writes: list[Use]  # one that fills the cell, and later ones of parts of it
    reads: list[Use]  # after the writes, by each stream and for each part


class Memory:
    """The cells of an address space, in their order and without overlap."""

    def __init__(self) -> None:
        self._cells: list[_Cell] = []
        self._starts: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._cells)

    def uses(self, region: Region, *, writes: bool) -> list[Use]:
        """Returns the earlier uses of a region that a new use has to come after."""
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
        """Drops the cells in which every use is completed."""
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
    """Yields the cells, and new ones where they leave a gap."""
    for cell in cells:
        if start < cell.start:
            yield _Cell(start, cell.start, [], [])
        yield cell
        start = cell.end
    if start < end:
        yield _Cell(start, end, [], [])


def storage_address(tensor: torch.Tensor) -> int:
    """Returns where the storage of a tensor with strides begins.

    Unlike ``data_ptr()``, this does not end the sharing of a lazy copy.
    """
    address: int = torch._C._data_address(tensor)  # type: ignore[attr-defined]
    return address


def region_of(tensor: torch.Tensor) -> Region | None:
    """Returns the bytes of a tensor with strides, or None if it has no memory."""
    if tensor.numel() == 0 or storage_address(tensor) == 0:
        return None
    item = tensor.element_size()
    # The elements of an expanded dimension lie on each other.
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
    """Tells whether two regions have a byte in common."""
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
    """Marks which of so many bytes belong to a region."""
    if not gaps:
        return torch.ones(length, dtype=torch.bool)
    marks = torch.zeros(length, dtype=torch.bool)
    sizes, strides = zip(*gaps, strict=True)
    marks.as_strided(sizes, strides).fill_(True)
    return marks
