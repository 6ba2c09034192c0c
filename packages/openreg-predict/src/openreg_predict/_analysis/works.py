# SPDX-License-Identifier: BSD-3-Clause
"""The work of the operators of a record."""

from __future__ import annotations

from openreg_predict._records.record import Op, RecordedRun
from openreg_predict._works import table
from openreg_predict._works.collectives import size_of
from openreg_predict._works.operators import work_of
from openreg_predict._works.work import TensorFacts, Work, distinct_bytes

_EMPTY = frozenset({
    "empty", "empty_like", "empty_strided", "new_empty", "record_stream", "resize_",
    "new_empty_strided", "empty_permuted", "wait_tensor", "lift_fresh", "set_",
    "_unsafe_view", "detach_", "requires_grad_",
})  # fmt: skip


def works_of(record: RecordedRun) -> dict[int, Work]:
    """Returns the work of each operator, by its index in the record."""
    works: dict[int, Work] = {}
    known: dict[object, Work] = {}
    for index, event in enumerate(record.events):
        if isinstance(event, Op):
            key = _key(event)
            work = known.get(key)
            if work is None:
                work = known[key] = _work(event)
            works[index] = work
    return works


def _key(op: Op) -> object:
    """Returns what decides the work; storages count by the order of their use."""
    numbers: dict[int | None, int] = {}

    def plain(value: object) -> object:
        if isinstance(value, TensorFacts):
            number = numbers.setdefault(value.storage, len(numbers))
            return (value.shape, value.stride, value.dtype, number, value.device)
        if isinstance(value, (list, tuple)):
            return tuple(plain(each) for each in value)
        return (value, type(value))

    call = op.call
    arguments = tuple((name, plain(value)) for name, value in call.arguments.items())
    results = plain(list(call.results))
    return (
        call.namespace, call.name, arguments, results, call.is_view, op.transfer,
        op.pinned, op.ranks, op.region >= 0,
    )  # fmt: skip


def _work(op: Op) -> Work:
    call = op.call
    read, written = distinct_bytes(call.tensors()), distinct_bytes(call.results)
    tensors = [*call.results, *call.tensors()]
    dtype = tensors[0].dtype if tensors else "f32"
    if op.transfer:
        size = written if call.results else read
        facts: dict[str, int | float | str] = {
            "direction": op.transfer,
            "pinned": int(op.pinned),
        }
        return Work(call.name, "transfer", dtype, 0.0, size, size, facts)
    if op.ranks:
        if op.ranks == 1:
            return Work(call.name, "copy", dtype, 0.0, read, read)
        inputs = distinct_bytes([t for t in call.tensors() if _is_input(op, t)])
        size = size_of(call.name, inputs, read - inputs if inputs < read else written)
        return table.collective(call.name, op.ranks, size, dtype)
    if call.is_view or call.name in _EMPTY:
        return Work(call.name, "view", dtype)
    if call.namespace == "fsdp":  # copies parts into a buffer, or out of it
        lists = [x for x in call.arguments.values() if isinstance(x, list)]
        size = max((distinct_bytes(_flat(each)) for each in lists), default=read)
        return Work(call.name, "copy", dtype, 0.0, size, size)
    work = work_of(call)
    if op.region >= 0:
        return Work(
            work.operator, work.kind, work.dtype, work.flops, work.read, work.written,
            work.facts, compiled=True,
        )  # fmt: skip
    return work


def _is_input(op: Op, tensor: TensorFacts) -> bool:
    """Returns whether a tensor is an input of a collective, not its output."""
    output = op.call.arguments.get(
        "output_tensor", op.call.arguments.get("output_tensors")
    )
    if output is None:
        return True
    flat = [output] if isinstance(output, TensorFacts) else _flat(output)
    return all(tensor is not each for each in flat)


def _flat(value: object) -> list[TensorFacts]:
    if isinstance(value, TensorFacts):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for each in value for x in _flat(each)]
    return []


def is_product(work: Work) -> bool:
    """Returns whether cuBLAS does the work."""
    return work.kind in ("gemm", "grouped")
