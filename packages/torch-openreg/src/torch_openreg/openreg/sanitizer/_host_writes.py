# SPDX-License-Identifier: BSD-3-Clause
"""Finds host writes to pinned memory without an operator, such as NumPy's.

No call announces these writes. But pinned memory that a stream is about to read must
not change until the host has waited for the stream. A fingerprint is taken when the
read is enqueued, and compared when the host waits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ._memory import Region, Use, overlap, storage_address

_CHUNK = 1 << 20  # bytes; limits the memory of a fingerprint

Fingerprint = tuple[int, ...]


class _Read(NamedTuple):
    use: Use
    fingerprint: Fingerprint


class PendingReads:
    """Reads of pinned memory by streams for which the host has not waited."""

    def __init__(self) -> None:
        self._reads: list[_Read] = []

    def __bool__(self) -> bool:
        return bool(self._reads)

    def add(self, use: Use) -> None:
        """Notes a read before it is enqueued. All earlier writes have ended."""
        self._reads = [read for read in self._reads if not _has_ended(read.use)]
        fingerprint = _fingerprint(use)
        if fingerprint is not None:
            self._reads.append(_Read(use, fingerprint))

    def take_changed(self, is_over: Callable[[Use], bool]) -> list[Use]:
        """Removes completed reads and returns the reads whose memory has changed."""
        reads, self._reads = self._reads, []
        changed = []
        for read in reads:
            if not is_over(read.use):
                self._reads.append(read)
            elif _fingerprint(read.use) not in (None, read.fingerprint):
                changed.append(read.use)
        return changed

    def take_changed_in(self, region: Region) -> list[Use]:
        """Does the same for reads of a region before it is written."""
        return self.take_changed(lambda use: overlap(use.region, region))


def _segment(use: Use) -> StorageWeakRef:
    segment = use.life.segment
    assert isinstance(segment, StorageWeakRef)
    return segment


def _has_ended(use: Use) -> bool:
    expired: bool = _segment(use).expired()  # type: ignore[no-untyped-call]
    return expired


def _fingerprint(use: Use) -> Fingerprint | None:
    """Returns a fingerprint of a region; None if the memory was freed."""
    storage = torch.UntypedStorage._new_with_weak_ptr(_segment(use).cdata)
    if storage is None:
        return None
    start, end, gaps = use.region
    if not gaps:
        return _hash(start, end - start)
    sizes, strides = zip(*gaps, strict=True)
    with torch._C._DisableTorchDispatch():
        every = torch.empty(0, dtype=torch.uint8).set_(storage)
        offset = start - storage_address(every)
        part = every.as_strided(sizes, strides, offset).contiguous()
        return _hash(part.data_ptr(), part.numel())


def _hash(address: int, size: int) -> Fingerprint:
    return tuple(
        hash(ctypes.string_at(address + offset, min(_CHUNK, size - offset)))
        for offset in range(0, size, _CHUNK)
    )
