# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of compiled functions, formed from the operators of a record.

Rules of a fusing compiler for accelerators: elementwise operators, casts, random
numbers, norms and reductions over the same elements form one kernel, unless an operator
between them must run on its own. A kernel reads its inputs once, and writes only what
others read. A tensor that a backward pass can compute again from others that are kept
anyway is not kept, and neither is one that the backward pass does not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from openreg_predict._records.record import Free, Op, RecordedRun, Region
from openreg_predict._works.work import TensorFacts, Work, distinct_bytes

FUSIBLE = frozenset({"pointwise", "copy", "random", "norm", "reduction"})
_REDUCING = ("norm", "reduction")
# A larger kernel would not fit into the registers of a device.
_MOST_OPERATORS = 64
_MOST_COPIES = 4


@dataclass
class Kernel:
    """A kernel of a compiled function.

    Attributes:
        ops: The indices of its operators in the record, in their order.
        elements: The elements over which it iterates.
        after: The kernels whose results it reads directly.
        work: The work of the whole kernel.
    """

    number: int
    region: int
    stream: tuple[int, int]
    elements: int
    ops: list[int] = field(default_factory=list)
    after: set[int] = field(default_factory=set)
    reduces: bool = False
    work: Work | None = None


@dataclass
class Fusion:
    """The result for a record.

    Attributes:
        kernels: The fused kernels, by the index of their last operator.
        merged: The other operators of fused kernels.
        elided: Storages that never exist.
        kept: Storages that live until the operator with this index.
        ended: Storages that end at the operator with this index, although the program
            released them later.
    """

    kernels: dict[int, Kernel] = field(default_factory=dict)
    merged: set[int] = field(default_factory=set)
    elided: set[int] = field(default_factory=set)
    kept: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)


def fuse(record: RecordedRun, works: Mapping[int, Work]) -> Fusion:
    """Forms the kernels of all compiled regions of a record.

    Args:
        record: The record.
        works: The work of each operator, by its index in the record.
    """
    if not any(op.region >= 0 for op in record.ops()):
        return Fusion()
    return _Fuser(record, works).fuse()


class _Fuser:
    def __init__(self, record: RecordedRun, works: Mapping[int, Work]) -> None:
        self.works = works
        self.ops = {
            i: each for i, each in enumerate(record.events) if isinstance(each, Op)
        }
        self.freed: dict[int, int] = {}
        self.released: set[int] = set()  # by a backward pass
        for i, each in enumerate(record.events):
            if isinstance(each, Free):
                if each.backward and each.storage not in self.freed:
                    self.released.add(each.storage)
                else:
                    self.released.discard(each.storage)
                self.freed[each.storage] = i
        self.readers: dict[int, list[int]] = defaultdict(list)
        self.ends = {
            each.region: i
            for i, each in enumerate(record.events)
            if isinstance(each, Region) and each.ends
        }
        self.kernels: list[Kernel] = []
        self.kernel_of: dict[int, int] = {}  # of an operator
        self.made_by: dict[int, int] = {}  # storage: the kernel that wrote it last
        self.fusion = Fusion()
        self.is_partial = bool(record.problems)  # not all readers are known
        self.recomputed: dict[int, tuple[TensorFacts, ...]] = {}

    def fuse(self) -> Fusion:
        ops = {i: op for i, op in self.ops.items() if self.works[i].kind != "view"}
        for index, op in ops.items():
            for each in _reads(op):
                if each.storage is not None:
                    self.readers[each.storage].append(index)
        if not self.is_partial:
            self._drop_unread(ops)
        for index, op in ops.items():
            self._place(index, op)
        if not self.is_partial:
            self.fusion.ended = self._unread(ops)
            self.freed.update(self.fusion.ended)
        for kernel in self.kernels:
            self._describe(kernel)
        return self.fusion

    def _drop_unread(self, ops: dict[int, Op]) -> None:
        """Removes operators of backward passes whose results nobody reads.

        A checkpoint computes a forward pass again up to the last tensor that autograd
        had kept. AOTAutograd computes the tensors that the backward pass reads.
        """
        for index in reversed(list(ops)):
            op = ops[index]
            if (
                op.region % 2 == 0
                or op.region < 0
                or op.ranks
                or op.transfer
                or op.wait
            ):
                continue
            results = op.call.results
            if results and not any(
                x.storage not in self.released
                or self.readers[x.storage]
                or _is_in_place(op, x)
                for x in results
            ):
                self.fusion.merged.add(index)
                self.fusion.elided.update(x.storage for x in results if x.storage)
                for each in _reads(op):
                    if each.storage is not None:
                        self.readers[each.storage].remove(index)
                del ops[index]

    def _unread(self, ops: Mapping[int, Op]) -> dict[int, int]:
        """Returns the last use of tensors that are kept, but not read any more.

        Checkpoints may keep the results of chosen operators that the backward pass does
        not read. AOTAutograd keeps only the tensors that the backward pass reads.
        """
        begins: dict[int, int] = {}
        made: dict[int, int] = {}
        for index, op in ops.items():
            begins.setdefault(op.region, index)
            for each in op.call.results:
                made.setdefault(each.storage or 0, index)
        ended: dict[int, int] = {}
        for storage in self.released & made.keys():
            index = made[storage]
            region = self.ops[index].region
            uses = [index, *self.readers[storage]]
            if (
                region >= 0
                and region % 2 == 0
                and all(self.ops[i].region == region for i in uses)
                and self.freed[storage] > begins.get(region + 1, self.freed[storage])
            ):
                ended[storage] = max(uses)
        return ended

    def _place(self, index: int, op: Op) -> None:
        """Adds an operator to a kernel that wrote an input of it, or to a new one."""
        work = self.works[index]
        inputs = [x for x in _reads(op) if x.storage is not None]
        before = {
            self.made_by[x.storage]
            for x in inputs
            if x.storage is not None and x.storage in self.made_by
        }
        elements = max((x.elements for x in (*inputs, *op.call.results)), default=0)
        fusible = op.region >= 0 and work.kind in FUSIBLE and not op.wait
        # Inductor generates no code for complex numbers.
        fusible &= not any(x.dtype[0] == "c" for x in (*inputs, *op.call.results))
        kernel = None
        if fusible and not op.transfer:
            kernel = self._joined(op, elements, before, work.kind in _REDUCING)
        if kernel is None:
            kernel = Kernel(
                len(self.kernels),
                op.region if fusible else -1,
                (op.device, op.stream),
                elements,
            )
            self.kernels.append(kernel)
        kernel.ops.append(index)
        kernel.after |= before - {kernel.number}
        kernel.reduces |= work.kind in _REDUCING
        kernel.elements = max(kernel.elements, elements)
        self.kernel_of[index] = kernel.number
        for each in _writes(op):
            if each.storage is not None:
                self.made_by[each.storage] = kernel.number

    def _joined(
        self, op: Op, elements: int, before: set[int], reduces: bool
    ) -> Kernel | None:
        for number in sorted(before, reverse=True):
            kernel = self.kernels[number]
            if (
                kernel.region == op.region
                and kernel.stream == (op.device, op.stream)
                and self._is_similar(kernel, elements, reduces)
                and len(kernel.ops) < _MOST_OPERATORS
                and not any(self._depends(other, number) for other in before - {number})
            ):
                return kernel
        return None

    def _is_similar(self, kernel: Kernel, elements: int, reduces: bool) -> bool:
        """Returns whether an operator can run over the elements of a kernel.

        Elementwise operators are computed where their results are used, also for a
        part of the elements, or for some copies of them.
        """
        if elements == kernel.elements:
            return True
        if kernel.reduces:
            return elements < kernel.elements
        if reduces:
            return False
        few, many = sorted((elements, kernel.elements))
        return many <= _MOST_COPIES * few

    def _depends(self, kernel: int, on: int) -> bool:
        """Returns whether a kernel needs results of another one, directly or not."""
        begin = self.kernels[on].ops[0]
        seen: set[int] = set()
        left = [kernel]
        while left:
            each = left.pop()
            if each == on:
                return True
            # A kernel may have got operators after its successors have begun.
            new = {
                other
                for other in self.kernels[each].after - seen
                if self.kernels[other].ops[-1] >= begin
            }
            seen |= new
            left.extend(new)
            if len(seen) > 400:
                return True
        return False

    def _describe(self, kernel: Kernel) -> None:
        """Computes the work of a kernel from what it reads and writes."""
        if kernel.region < 0:
            return
        inside: set[int | None] = {
            x.storage
            for i in kernel.ops
            for x in self.ops[i].call.results
            if x.storage is not None and not _is_in_place(self.ops[i], x)
        }
        reads: list[TensorFacts] = []
        for i in kernel.ops:
            for each in _reads(self.ops[i]):
                if each.storage in self.recomputed:
                    reads.extend(self.recomputed[each.storage])
                elif each.storage not in inside:
                    reads.append(each)
        writes = [
            each
            for i in kernel.ops
            for each in _writes(self.ops[i])
            if each.storage not in inside or self._is_needed(kernel, each)
        ]
        writes = self._without_recomputed(kernel, reads, writes, inside)
        kept = {x.storage for x in writes}
        self.fusion.elided |= {x for x in inside if x is not None and x not in kept}
        kernel.work = _work(
            [self.works[i] for i in kernel.ops], _wide(reads), _wide(writes)
        )
        self.fusion.kernels[kernel.ops[-1]] = kernel
        self.fusion.merged |= set(kernel.ops[:-1])

    def _is_needed(self, kernel: Kernel, result: TensorFacts) -> bool:
        """Returns whether another kernel, or the program, reads a result."""
        assert result.storage is not None
        if any(
            self.kernel_of[i] != kernel.number for i in self.readers[result.storage]
        ):
            return True
        end = self.freed.get(result.storage)
        if end is None:
            return True
        if kernel.region in self.ends:
            return end > self.ends[kernel.region]
        last = self._last_of_region(kernel.region)
        return any(i in self.ops for i in range(last + 1, end))

    def _last_of_region(self, region: int) -> int:
        if not hasattr(self, "_last"):
            self._last: dict[int, int] = {}
            for index, op in self.ops.items():
                self._last[op.region] = index
        return self._last[region]

    def _without_recomputed(
        self,
        kernel: Kernel,
        reads: Sequence[TensorFacts],
        writes: list[TensorFacts],
        inside: set[int | None],
    ) -> list[TensorFacts]:
        """Drops results that only fused kernels of the backward pass read."""
        if kernel.region % 2:
            return writes
        again = [
            each
            for each in writes
            if each.storage in inside
            and each.elements == kernel.elements
            and self._only_backward(kernel, each.storage)
        ]
        if not again:
            return writes
        last = max(i for x in again for i in self.readers[x.storage or 0])
        sources = [x for x in reads if x.bytes >= 4096]
        more = [x for x in sources if not self._is_kept(x.storage, last)]
        if distinct_bytes(more) > distinct_bytes(again):
            return writes
        for each in again:
            if each.storage is not None:
                self.recomputed[each.storage] = tuple(sources)
        for each in sources:
            if each.storage is not None:
                self.fusion.kept[each.storage] = max(
                    last, self.fusion.kept.get(each.storage, 0)
                )
        gone = {x.storage for x in again}
        return [x for x in writes if x.storage not in gone]

    def _only_backward(self, kernel: Kernel, storage: int | None) -> bool:
        readers = [
            i for i in self.readers[storage or 0] if self.kernel_of[i] != kernel.number
        ]
        return bool(readers) and all(
            self.kernels[self.kernel_of[i]].region == kernel.region + 1 for i in readers
        )

    def _is_kept(self, storage: int | None, until: int) -> bool:
        end = self.freed.get(storage or 0)
        return (
            end is None or end > until or self.fusion.kept.get(storage or 0, 0) >= until
        )


def _reads(op: Op) -> list[TensorFacts]:
    return op.call.tensors()


def _writes(op: Op) -> list[TensorFacts]:
    if op.call.results or not op.call.name.endswith("_"):
        return list(op.call.results)
    first = op.call.arguments.get("self")
    return [first] if isinstance(first, TensorFacts) else op.call.tensors()


def _is_in_place(op: Op, result: TensorFacts) -> bool:
    return any(x.storage == result.storage for x in op.call.tensors())


def _wide(tensors: Sequence[TensorFacts]) -> int:
    """Returns the bytes of tensors; of each storage the largest view counts."""
    largest: dict[int | None, int] = {}
    for each in tensors:
        largest[each.storage] = max(largest.get(each.storage, 0), each.bytes)
    return sum(largest.values())


def _work(parts: Sequence[Work], read: float, written: float) -> Work:
    kinds = [part.kind for part in parts]
    kind = next(
        (
            each
            for each in ("norm", "reduction", "random", "pointwise")
            if each in kinds
        ),
        "copy",
    )
    main = max(parts, key=lambda part: part.bytes)
    names = list(dict.fromkeys(part.operator for part in parts))
    name = names[0] if len(parts) == 1 else f"fused {' '.join(names[:4])}"
    return Work(
        name,
        kind,
        main.dtype,
        sum(part.flops for part in parts),
        read,
        written,
        {**main.facts} if main.kind == kind else {},
        compiled=True,
    )
