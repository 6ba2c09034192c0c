# SPDX-License-Identifier: BSD-3-Clause
"""The rules of CUDA's caching allocator, on sizes alone.

PyTorch's documentation describes them, and openreg-aten implements them. Requests are
rounded to 512 bytes. Requests of up to 1 MiB come from segments of 2 MiB, requests
below 10 MiB from segments of 20 MiB, and each larger one from a separate segment,
rounded to 2 MiB. A request takes the smallest free block of its stream that suffices.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

MIN_BLOCK = 512
SMALL = 1 << 20
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
MIN_LARGE = 10 << 20
ROUND_LARGE = 2 << 20
_RANGE = 1 << 44  # of addresses for an expandable segment


def block_size(requested: int) -> int:
    """Returns the size of the block for a request."""
    if requested < MIN_BLOCK:
        return MIN_BLOCK
    return -(-requested // MIN_BLOCK) * MIN_BLOCK


def segment_size(block: int) -> int:
    """Returns the size of a new segment for a block."""
    if block <= SMALL:
        return SMALL_SEGMENT
    if block < MIN_LARGE:
        return LARGE_SEGMENT
    return -(-block // ROUND_LARGE) * ROUND_LARGE


class OutOfMemoryError(Exception):
    """A request does not fit, even without the cached blocks.

    Attributes:
        requested: The bytes of the request.
        short: The bytes that were missing.
    """

    def __init__(self, requested: int, short: int) -> None:
        super().__init__(f"{requested} bytes do not fit: {short} bytes are missing")
        self.requested = requested
        self.short = short


@dataclass(slots=True, eq=False)
class Block:
    """A part of a segment, in use or free."""

    address: int
    size: int
    stream: int
    small: bool
    requested: int = 0
    free: bool = False
    before: Block | None = None
    after: Block | None = None


class CachingAllocator:
    """Allocates from a device of a given size.

    Attributes:
        capacity: The bytes that segments may have together, or ``None``.
        allocated: The bytes of blocks in use.
        reserved: The bytes of all segments.
        requested: The bytes of blocks in use, before rounding.
        allocated_peak: The largest value of ``allocated``.
        reserved_peak: The largest value of ``reserved``.
        retries: How often the cache was emptied because memory was short.
    """

    def __init__(
        self, capacity: int | None = None, *, expandable: bool = False
    ) -> None:
        self.capacity = capacity
        self.expandable = expandable
        self.allocated = self.reserved = self.requested = 0
        self.allocated_peak = self.reserved_peak = 0
        self.retries = 0
        self._free: dict[tuple[int, bool], list[tuple[int, int, Block]]] = {}
        self._top = 0
        self._tails: dict[tuple[int, bool], Block] = {}  # of expandable segments

    def malloc(self, requested: int, stream: int = 0) -> Block:
        """Returns a block.

        Args:
            requested: The bytes.
            stream: The stream that uses the block.

        Raises:
            OutOfMemoryError: If the capacity does not suffice.
        """
        size = block_size(requested)
        small = size <= SMALL
        block = self._take(size, stream, small) or self._segment(size, stream, small)
        rest = block.size - size
        if rest >= MIN_BLOCK if small or self.expandable else rest > SMALL:
            self._split(block, size)
        block.requested = requested
        self.allocated += block.size
        self.requested += requested
        self.allocated_peak = max(self.allocated_peak, self.allocated)
        return block

    def free(self, block: Block) -> None:
        """Returns a block to the cache, joined with its free neighbors."""
        self.allocated -= block.size
        self.requested -= block.requested
        block.requested = 0
        for other in (block.before, block.after):
            if other is not None and other.free:
                self._remove(other)
                block = self._join(block, other)
        self._add(block)

    def empty_cache(self) -> None:
        """Returns the segments that are entirely free to the device."""
        for blocks in self._free.values():
            for each in list(blocks):
                block = each[2]
                if block.before is None and block.after is None:
                    blocks.remove(each)
                    self.reserved -= block.size
                    self._tails.pop((block.stream, block.small), None)

    def inactive_split(self) -> int:
        """Returns the free bytes in segments that are in use."""
        return sum(
            block.size
            for blocks in self._free.values()
            for _, _, block in blocks
            if block.before is not None or block.after is not None
        )

    def _take(self, size: int, stream: int, small: bool) -> Block | None:
        blocks = self._free.get((stream, small))
        if not blocks:
            return None
        index = bisect_left(blocks, size, key=lambda each: each[0])
        if index == len(blocks):
            return None
        block = blocks.pop(index)[2]
        block.free = False
        return block

    def _segment(self, size: int, stream: int, small: bool) -> Block:
        wanted = segment_size(size)
        tail = self._tails.get((stream, small)) if self.expandable else None
        if self.expandable:
            page = SMALL_SEGMENT if small else LARGE_SEGMENT
            present = tail.size if tail is not None and tail.free else 0
            wanted = -(-(size - present) // page) * page
        if self.capacity is not None and self.reserved + wanted > self.capacity:
            self.retries += 1
            self.empty_cache()
            short = self.reserved + wanted - self.capacity
            if short > 0:
                raise OutOfMemoryError(size, short)
        self.reserved += wanted
        self.reserved_peak = max(self.reserved_peak, self.reserved)
        if tail is not None and tail.free:
            self._remove(tail)
            tail.size += wanted
            return tail
        block = Block(self._top, wanted, stream, small)
        self._top += wanted + SMALL_SEGMENT
        if self.expandable:
            block.address = tail.address + tail.size if tail is not None else self._top
            self._top += _RANGE
            block.before = tail
            if tail is not None:
                tail.after = block
            self._tails[stream, small] = block
        return block

    def _split(self, block: Block, size: int) -> None:
        rest = Block(block.address + size, block.size - size, block.stream, block.small)
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        if self._tails.get((block.stream, block.small)) is block:
            self._tails[block.stream, block.small] = rest
        block.after, block.size = rest, size
        self._add(rest)

    def _join(self, one: Block, other: Block) -> Block:
        first, second = (one, other) if one.address < other.address else (other, one)
        first.size += second.size
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        if self._tails.get((first.stream, first.small)) is second:
            self._tails[first.stream, first.small] = first
        return first

    def _add(self, block: Block) -> None:
        block.free = True
        blocks = self._free.setdefault((block.stream, block.small), [])
        insort(
            blocks,
            (block.size, block.address, block),
            key=lambda each: (each[0], each[1]),
        )

    def _remove(self, block: Block) -> None:
        block.free = False
        blocks = self._free[block.stream, block.small]
        key = (block.size, block.address)
        index = bisect_left(blocks, key, key=lambda each: (each[0], each[1]))
        assert blocks[index][2] is block
        del blocks[index]
