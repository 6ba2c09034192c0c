# SPDX-License-Identifier: BSD-3-Clause
"""The record of a run: what the program asked for, without times and without a device.

Events are in the order of the host. A thread is 0 for the program's first thread, which
autograd's threads work for; streams are numbered per device in the order of their use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from openreg_predict._works.work import Call, TensorFacts

FORMAT = 3
OWNERS = (
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "temporaries",
    "buffers",
    "other",
)


@dataclass(slots=True)
class Op:
    """An operator on a device, a copy between devices, or a collective.

    Attributes:
        call: The operator with the metadata of its tensors.
        thread: The number of the host thread.
        device: The index of the device.
        stream: The number of the stream.
        wait: Why the host waits for the result on CUDA, or ``""``.
        module: The index of the module in :attr:`RecordedRun.modules`.
        phase: ``forward``, ``backward`` or ``optimizer``.
        region: The number of the compiled region, or -1. A region's backward pass has
            the next number.
        transfer: ``HtoD``, ``DtoH`` or ``DtoD`` for a copy between devices, or ``""``.
        pinned: Whether the host memory of a transfer is pinned.
        ranks: The size of the group of a collective, or 0.
        is_async: Whether a collective runs concurrently until its result is used.
        group: The ranks and the name of the group of a collective that all of them
            begin together, or ``""``.
    """

    call: Call
    thread: int = 0
    device: int = 0
    stream: int = 0
    wait: str = ""
    module: int = 0
    phase: str = "forward"
    region: int = -1
    transfer: str = ""
    pinned: bool = False
    ranks: int = 0
    is_async: bool = False
    group: str = ""


@dataclass(slots=True)
class Meet:
    """A collective on host tensors, for which the thread waits."""

    thread: int
    group: str


@dataclass(slots=True)
class HostOps:
    """Consecutive operators on host tensors."""

    thread: int
    count: int = 1


@dataclass(slots=True)
class Alloc:
    """A storage that comes to exist, or gets memory again."""

    storage: int
    size: int
    device: int = 0
    stream: int = 0
    phase: str = "forward"


@dataclass(slots=True)
class Free:
    """A storage that ends, or gives its memory back.

    Attributes:
        storage: The number of the storage.
        backward: Whether autograd releases it while it runs a backward pass.
    """

    storage: int
    backward: bool = False


@dataclass(slots=True)
class Mark:
    """An event that is recorded in a stream; ``mark`` is its unique number."""

    mark: int
    thread: int
    device: int
    stream: int


@dataclass(slots=True)
class Wait:
    """A stream that waits for a mark."""

    mark: int
    thread: int
    device: int
    stream: int


@dataclass(slots=True)
class Sync:
    """The host waits for a mark, a stream, or all streams of a device (stream -1)."""

    thread: int
    device: int
    stream: int = -1
    mark: int = -1


@dataclass(slots=True)
class Fork:
    """A thread starts another one."""

    thread: int
    child: int


@dataclass(slots=True)
class Join:
    """A thread waits for the end of another one."""

    thread: int
    child: int


@dataclass(slots=True)
class Capture:
    """The begin of the capture of a graph, or its end."""

    graph: int
    thread: int
    begins: bool


@dataclass(slots=True)
class Replay:
    """The launch of a captured graph in a stream."""

    graph: int
    thread: int
    device: int
    stream: int


@dataclass(slots=True)
class Region:
    """The call of a compiled function, or its end; with or without CUDA graphs."""

    region: int
    thread: int
    graphs: bool = False
    ends: bool = False


@dataclass(slots=True)
class Enter:
    """The call of an outermost module."""

    module: int
    thread: int


Event = (
    Op
    | HostOps
    | Meet
    | Alloc
    | Free
    | Mark
    | Wait
    | Sync
    | Fork
    | Join
    | Capture
    | Replay
    | Region
    | Enter
)
_KINDS: dict[str, type[Any]] = {
    each.__name__: each
    for each in (
        Op,
        HostOps,
        Meet,
        Alloc,
        Free,
        Mark,
        Wait,
        Sync,
        Fork,
        Join,
        Capture,
        Replay,
        Region,
        Enter,
    )
}


class RecordFileError(ValueError):
    """A file is not a record, or one of another version."""


@dataclass
class RecordedRun:
    """The events of a run.

    Attributes:
        events: The events, in the order of the host.
        initial: Storages that existed when the recording began.
        modules: The names of modules; the first is ``""``, for code outside of modules.
        owners: The kind of data in each storage for which it is known.
        assumed: Values that a dry run had to assume: the operator and how often.
        problems: Parts of the run that the recording could not see.
        dry: Whether nothing was computed.
        rank: The rank of the process in the default group.
    """

    events: list[Event] = field(default_factory=list)
    initial: list[Alloc] = field(default_factory=list)
    modules: list[str] = field(default_factory=lambda: [""])
    owners: dict[int, str] = field(default_factory=dict)
    assumed: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    dry: bool = False
    rank: int = 0

    def ops(self) -> Iterator[Op]:
        """Returns the operators on devices."""
        return (each for each in self.events if isinstance(each, Op))

    def save(self, path: str | Path) -> None:
        """Writes the record, one event per line of JSON."""
        head = {
            "openreg_predict_record": FORMAT,
            "modules": self.modules,
            "owners": list(self.owners.items()),
            "assumed": self.assumed,
            "problems": self.problems,
            "dry": self.dry,
            "rank": self.rank,
            "initial": [_plain(each) for each in self.initial],
        }
        with Path(path).open("w", encoding="utf-8") as file:
            for line in (head, *map(_encode, self.events)):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a record that :meth:`save` wrote.

        Raises:
            RecordFileError: If the file is not such a record.
        """
        with Path(path).open(encoding="utf-8") as file:
            try:
                head = json.loads(next(file, ""))
                version = head["openreg_predict_record"]
            except (ValueError, KeyError, TypeError) as error:
                raise RecordFileError(f"{path} is not a saved record") from error
            if version != FORMAT:
                raise RecordFileError(
                    f"{path} has format {version}; this version reads {FORMAT}"
                )
            events = [_decode(json.loads(line)) for line in file]
        return cls(
            events,
            [Alloc(*each) for each in head["initial"]],
            head["modules"],
            dict(head["owners"]),
            head["assumed"],
            head["problems"],
            head["dry"],
            head["rank"],
        )


def _plain(event: Any) -> list[Any]:
    return [getattr(event, each.name) for each in fields(event)]


def _encode(event: Event) -> list[Any]:
    values = _plain(event)
    if isinstance(event, Op):
        call = event.call
        values[0] = [
            call.name,
            {name: _pack(value) for name, value in call.arguments.items()},
            _pack(list(call.results)),
            call.is_view,
            sorted(call.tags),
            call.namespace,
        ]
    return [type(event).__name__, *values]


def _decode(line: list[Any]) -> Event:
    kind, *values = line
    if kind == "Op":
        name, arguments, results, is_view, tags, namespace = values[0]
        values[0] = Call(
            name,
            {key: _unpack(value) for key, value in arguments.items()},
            _unpack(results),
            is_view,
            frozenset(tags),
            namespace,
        )
    event: Event = _KINDS[kind](*values)
    return event


def _pack(value: Any) -> Any:
    """Returns a value for JSON: tensors become mappings."""
    if isinstance(value, TensorFacts):
        return {
            "t": [value.shape, value.stride, value.dtype, value.storage, value.device]
        }
    if isinstance(value, (list, tuple)):
        return [_pack(each) for each in value]
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, dict):
        shape, stride, dtype, storage, device = value["t"]
        return TensorFacts(tuple(shape), tuple(stride), dtype, storage, device)
    if isinstance(value, list):
        return [_unpack(each) for each in value]
    return value
