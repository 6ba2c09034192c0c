# SPDX-License-Identifier: BSD-3-Clause
"""The flight record: the last calls of each rank, and the rank that blocks the others.

A process keeps the last collectives and messages of its groups, and writes them to a
file when one of them fails. ``python -m openreg_distributed flight FILES...`` combines
the files of the ranks.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

__all__ = ["explain", "load", "record", "show", "to_pytorch", "write"]

Record = Mapping[str, Any]
Entry = Mapping[str, Any]

# Collectives whose ranks may differ in the number of input or output elements.
_GIVE_OTHERS = {"all_gather", "all_gather_coalesced", "scatter"}
_GET_OTHERS = {"gather", "reduce_scatter"}
_BOTH_OTHER = {"all_to_all", "all_to_all_base"}

# Names of PyTorch's analyser for operations that NCCL does not have.
_NAMES = {
    "all_gather_coalesced": "ALLGATHER_coalesced",
    "all_to_all_base": "all_to_all",
}


def record() -> dict[str, Any]:
    """Returns the flight record of this process, as ``load`` does.

    Raises:
        OpenRegError: If a setting ``OPENREG_FLIGHT_...`` has an invalid value.
    """
    from ._engine import _C

    result: dict[str, Any] = json.loads(_C.flight_record("written on request"))
    return result


def write(path: str | Path | None = None) -> Path:
    """Writes the flight record of this process to a file.

    Args:
        path: The file; by default the one that a failure writes.

    Returns:
        The path of the file.

    Raises:
        RuntimeError: If it cannot be written.
    """
    from ._engine import _C

    return Path(
        _C.write_flight_record("written on request", "" if path is None else str(path))
    )


def load(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """Reads the files of several ranks.

    Args:
        paths: Files, or folders with files whose names end in ``.json``.

    Returns:
        Their records, in the order of the ranks.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If a file is not a flight record, or two files have the same rank.
    """
    records: dict[int, dict[str, Any]] = {}
    for path in paths:
        each = Path(path)
        for file in sorted(each.glob("*.json")) if each.is_dir() else [each]:
            try:
                found = json.loads(file.read_text("utf-8"))
                rank = found["rank"]
                missing = {"entries", "pg_config", "time_ns"} - found.keys()
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{file} is not a flight record: {error!r}") from error
            if missing:
                raise ValueError(f"{file} is not a flight record: {missing} is missing")
            if rank in records:
                raise ValueError(f"{file} is the second record of rank {rank}")
            records[rank] = found
    return [records[rank] for rank in sorted(records)]


def explain(records: Sequence[Record]) -> str:
    """Explains which rank did not call a collective, or called a different one.

    Args:
        records: The records of the ranks, as ``load`` returns them.
    """
    lines = [f"rank {each['rank']}: {each['reason']}" for each in records]
    for name, ranks in _groups(records):
        group = _Group(name, ranks, records)
        lines += [f"group {group}:", *(f"    {line}" for line in group.explain())]
    return "\n".join(lines)


def show(record: Record, last: int) -> str:
    """Describes the last calls of one rank, one per line.

    Args:
        record: The record of the rank.
        last: The number of calls.
    """
    lines = [f"rank {record['rank']}, process {record['process']} on {record['host']}:"]
    for entry in record["entries"][-last:] if last > 0 else []:
        group = entry["process_group"][0]
        lines.append(f"    {_call(entry)} of group '{group}': {_state(entry, record)}")
    return "\n".join(lines)


def to_pytorch(records: Sequence[Record], folder: str | Path) -> None:
    """Writes files for ``torch.distributed.flight_recorder.fr_trace``.

    That tool supports only the operations of NCCL, so these files use their names. A
    receive from any rank does not have a name.

    Args:
        records: The records of the ranks.
        folder: The target folder; it is created if it is missing.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for each in records:
        entries = []
        for entry in each["entries"]:
            name, *peers = entry["profiling_name"].partition(":")[2].split(" ")
            if name == "recvAnysource":
                continue
            state = entry["state"]
            if state == "failed":
                began = entry["time_discovered_started_ns"]
                state = "started" if began else "scheduled"
            named = {
                "profiling_name": " ".join([f"nccl:{_NAMES.get(name, name)}", *peers]),
                "process_group": tuple(entry["process_group"]),
                "state": state,
            }
            entries.append({**entry, **named})
        dump = {key: each[key] for key in ("version", "pg_config")}
        with (target / f"rank_{each['rank']}").open("wb") as file:
            pickle.dump({**dump, "entries": entries}, file)


def _groups(records: Sequence[Record]) -> list[tuple[str, tuple[int, ...]]]:
    """Returns names and ranks of the groups. Parts of a split group share a name."""
    found: dict[tuple[str, tuple[int, ...]], None] = {}
    for each in records:
        for group in each["pg_config"].values():
            found[group["name"], tuple(json.loads(group["ranks"]))] = None
    return list(found)


class _Group:
    """The calls of a group's ranks, as far as they have a record."""

    def __init__(
        self, name: str, ranks: tuple[int, ...], records: Sequence[Record]
    ) -> None:
        self.name = name
        self.ranks = ranks
        found = [
            each
            for each in records
            if each["rank"] in ranks
            and name in each["pg_config"]
            and tuple(json.loads(each["pg_config"][name]["ranks"])) == ranks
        ]
        last = max(found, key=lambda each: each["time_ns"])
        token = last["pg_config"][name]["token"]
        self.records = {
            each["rank"]: each
            for each in found
            if each["pg_config"][name]["token"] == token
        }
        self.others = [
            each["rank"] for each in found if each["rank"] not in self.records
        ]
        # The number of collectives that each rank has called. The record keeps the
        # last.
        self.called: dict[int, int] = {}
        self.collectives: dict[int, dict[int, Entry]] = {}
        self.messages: dict[int, list[Entry]] = {}
        for rank, each in self.records.items():
            # A destroyed group may have had the same name.
            config = each["pg_config"][name]
            own = [e for e in each["entries"] if e["pg_id"] == config["pg_id"]]
            self.called[rank] = config["collectives"]
            self.collectives[rank] = {
                entry["collective_seq_id"]: entry
                for entry in own
                if not entry["is_p2p"]
            }
            self.messages[rank] = [entry for entry in own if entry["is_p2p"]]

    def __str__(self) -> str:
        first = next(iter(self.records.values()), None)
        text = first["pg_config"][self.name]["desc"] if first else ""
        named = f"'{self.name}'" + (f" ({text})" if text else "")
        return f"{named} of ranks {_listed(self.ranks)}"

    def explain(self) -> Iterator[str]:
        """Yields the lines of the explanation."""
        found = [*self._explain_collectives(), *self._explain_messages()]
        if self.others:
            yield (
                f"the record of {_ranks(self.others)} belongs to an earlier group of "
                "this name and is not compared: restarted ranks create a new group"
            )
        with_record = {*self.records, *self.others}
        without = [rank for rank in self.ranks if rank not in with_record]
        if without and found:
            yield (
                f"{_ranks(without)} left no record: the process was killed, or none of "
                "its collectives has failed yet"
            )
        if found:
            yield from found
        elif any(self.collectives.values()) or any(self.messages.values()):
            yield "all recorded calls are complete"
        else:
            yield "nothing was called"

    def _explain_collectives(self) -> Iterator[str]:
        """Yields the problem of the first incomplete collective."""
        for number in sorted(set().union(*self.collectives.values())):
            came = {
                rank: each[number]
                for rank, each in self.collectives.items()
                if number in each
            }
            # A call that is no longer kept has succeeded.
            missing = [rank for rank, last in self.called.items() if last < number]
            kinds: dict[tuple[object, ...], list[int]] = {}
            for rank, entry in came.items():
                kinds.setdefault(_kind(entry), []).append(rank)
            if len(kinds) > 1:
                yield f"the ranks called different collectives as number {number}:"
            elif missing:
                yield f"{_ranks(missing)} did not call number {number}:"
            elif all(entry["state"] == "completed" for entry in came.values()):
                continue
            else:
                order = sorted(came, key=lambda rank: _created(came[rank]))
                first, last = order[0], order[-1]
                seconds = (_created(came[last]) - _created(came[first])) / 1e9
                yield f"number {number} is not complete:"
                if seconds > 0.01:
                    yield f"    rank {last} came {seconds:.3f} s after rank {first}"
            for ranks in sorted(kinds.values()):
                for rank in ranks:
                    yield f"    {self._describe(rank, came[rank])}"
            for rank in missing:
                last, own = self.called[rank], self.collectives[rank]
                if last in own:
                    yield f"    {self._describe(rank, own[last])}, its last call"
                elif last > 0:
                    yield f"    rank {rank}: number {last}, completed, its last call"
                else:
                    yield f"    rank {rank} has called no collective"
            return

    def _explain_messages(self) -> Iterator[str]:
        """Yields the state of both sides for each message that is under way."""
        for rank, entries in self.messages.items():
            waiting = [
                entry
                for entry in entries
                if entry["time_discovered_started_ns"] and entry["state"] != "completed"
            ]
            for entry in waiting[:4]:  # later ones may fail because of the first
                yield self._describe(rank, entry)
                yield from self._explain_message(rank, entry)

    def _explain_message(self, rank: int, entry: Entry) -> Iterator[str]:
        kind, peers = entry["profiling_name"].partition(":")[2].split(" ")
        if kind == "recvAnysource":
            return
        peer = self.ranks[int(peers.replace("<-", "->").split("->")[1])]
        if peer not in self.records or peer == rank:
            return
        local = {each: place for place, each in enumerate(self.ranks)}
        counterpart = (
            f"occl:recv {local[peer]}<-{local[rank]}"
            if kind == "send"
            else f"occl:send {local[peer]}->{local[rank]}"
        )
        others = [
            other
            for other in self.messages[peer]
            if other["profiling_name"] == counterpart
            and other["state"] != "completed"
            and other["tag"] == entry["tag"]
        ]
        what = "received" if kind == "send" else "sent"
        if others:
            yield f"    {self._describe(peer, others[0])}"
        else:
            yield f"    rank {peer} has {what} nothing for it with tag {entry['tag']}"

    def _describe(self, rank: int, entry: Entry) -> str:
        where = _place(entry)
        state = _state(entry, self.records[rank])
        at = f", called at {where}" if where else ""
        return f"rank {rank}: {_call(entry)}, {state}{at}"


def _kind(entry: Entry) -> tuple[object, ...]:
    """The parts of a call that must be equal on all ranks."""
    name = entry["profiling_name"]
    short = name.partition(":")[2]
    given = sum(map(math.prod, entry["input_sizes"]))
    got = sum(map(math.prod, entry["output_sizes"]))
    if short in _GIVE_OTHERS | _BOTH_OTHER:
        given = 0
    if short in _GET_OTHERS | _BOTH_OTHER:
        got = 0
    types = {*entry["input_dtypes"], *entry["output_dtypes"]}
    return name, given, got, tuple(sorted(types))


def _call(entry: Entry) -> str:
    """``all_reduce number 2 of [4] Float``."""
    name = entry["profiling_name"].partition(":")[2]
    number = entry["p2p_seq_id" if entry["is_p2p"] else "collective_seq_id"]
    sides = []
    for side in ("input", "output"):
        pairs = zip(entry[f"{side}_sizes"], entry[f"{side}_dtypes"], strict=True)
        sides.append(", ".join(starmap("{} {}".format, pairs)))
    given, got = sides
    text = given if given == got or not got else f"{given} to {got}" if given else got
    tag = f" with tag {entry['tag']}" if "tag" in entry else ""
    return f"{name} number {number}{f' of {text}' if text else ''}{tag}"


def _created(entry: Entry) -> int:
    time: int = entry["time_created_ns"]
    return time


def _state(entry: Entry, record: Record) -> str:
    """The state of the call when the record was written."""

    def ago(time: str) -> str:
        return f"{(record['time_ns'] - entry[time]) / 1e9:.3f} s before this"

    if entry["state"] == "scheduled":
        return f"called {ago('time_created_ns')}, but its stream has not reached it"
    if entry["state"] == "started":
        return f"has waited since {ago('time_discovered_started_ns')}"
    if not entry["time_discovered_started_ns"]:
        return "failed before its stream reached it"
    begin, end = (
        entry[f"time_discovered_{what}_ns"] for what in ("started", "completed")
    )
    took = f"after {(end - begin) / 1e9:.3f} s"
    return f"{entry['state']} {took}, {ago('time_discovered_completed_ns')}"


def _place(entry: Entry) -> str:
    """The program line of the call, if known."""
    for frame in entry["frames"]:
        if (
            "/torch/" not in frame["filename"]
            and "/lib/python" not in frame["filename"]
        ):
            return f"{frame['filename']}:{frame['line']} in {frame['name']}"
    return ""


def _listed(ranks: Sequence[int]) -> str:
    if len(ranks) > 1:
        return f"{', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
    return str(ranks[0])


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {_listed(ranks)}"
