# SPDX-License-Identifier: BSD-3-Clause
"""Collectives among the operators: their kind, and the size of their group."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch

_KINDS = {
    "allreduce": "all_reduce",
    "all_reduce": "all_reduce",
    "allgather": "all_gather",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "alltoall",
    "all_to_all": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "send": "send",
    "recv": "recv",
    "barrier": "barrier",
}


_PAIRS = ("send", "recv")


class Collective(NamedTuple):
    """A collective.

    Attributes:
        name: The kind.
        ranks: The size of the group.
        is_async: Whether it is asynchronous.
        group: The ranks of the group and its name, for a collective in which all of
            them take part; otherwise an empty string.
    """

    name: str
    ranks: int
    is_async: bool
    group: str = ""


@cache
def kind_of(name: str) -> str | None:
    """Returns the kind of an operator such as ``c10d::_allgather_base_``, or None."""
    namespace, _, operator = name.partition("::")
    if namespace not in ("c10d", "_c10d_functional", "_c10d_functional_autograd"):
        return None
    operator = operator.strip("_")
    for part in sorted(_KINDS, key=len, reverse=True):
        if operator.startswith(part):
            return _KINDS[part]
    return None


def describe(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Collective | None:
    """Returns what a collective is, or None for another operator."""
    kind = kind_of(func._schema.name)
    if kind is None:
        return None
    values = [*args, *kwargs.values()]
    functional = func.namespace != "c10d"
    names = [each.name for each in func._schema.arguments]
    named = dict(zip(names, args, strict=False)) | kwargs
    ranks, group = _group(values)
    is_async = functional or bool(named.get("async_op", True))
    return Collective(kind, ranks, is_async, "" if kind in _PAIRS else group)


def members(group: str) -> list[int]:
    """Returns the ranks of a group."""
    return [int(each) for each in group.partition(":")[0].split(",")]


def _group(values: list[Any]) -> tuple[int, str]:
    """Returns the size of the group among arguments, and its ranks and name."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    groups: Any = distributed_c10d

    for each in values:
        if isinstance(each, torch.ScriptObject):
            try:
                found = dist.ProcessGroup.unbox(each)
            except RuntimeError:  # another object, such as the kind of a reduction
                continue
        elif isinstance(each, str):
            try:
                found = groups._resolve_process_group(each)
            except (LookupError, RuntimeError, ValueError):  # the kind of a reduction
                continue
        else:
            continue
        found = groups._resolve_process_group(found.group_name)
        ranks = ",".join(map(str, dist.get_process_group_ranks(found)))
        return int(found.size()), f"{ranks}:{found.group_name}"
    return 1, ""


def size_of(kind: str, read: int, written: int) -> int:
    """Returns the bytes of a collective: of the whole tensor, not of a part."""
    if kind == "all_gather":
        return written
    if kind in ("reduce_scatter", "alltoall"):
        return read
    return max(read, written)
