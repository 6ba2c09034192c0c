# SPDX-License-Identifier: BSD-3-Clause
"""The virtual time of a run as a trace in Chrome's format, which Perfetto displays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openreg_predict._records.record import HostOps, Op

if TYPE_CHECKING:
    from openreg_predict._reports.prediction import Prediction

_US = 1e6


def write_trace(prediction: Prediction, path: Path) -> None:
    """Writes the kernels of each stream, and the host's calls and waits."""
    record = prediction.analysis.record
    events: list[dict[str, Any]] = [
        _named(0, None, "process_name", "host"),
    ]
    devices = sorted({span.device for span in prediction.timeline.spans})
    for device in devices:
        name = f"{prediction.device.id} {device}"
        events.append(_named(1 + device, None, "process_name", name))
    for number, span in enumerate(prediction.timeline.spans):
        op = record.events[span.index]
        assert isinstance(op, Op)
        lane = (
            span.stream if span.engine == "compute" else f"{span.stream} {span.engine}"
        )
        facts = {
            "class": span.work.kind,
            "module": record.modules[op.module],
            "flops": span.work.flops,
            "bytes": span.work.bytes,
            "after": span.delay,
        }
        place = {"pid": 1 + span.device, "tid": f"stream {lane}"}
        events.append(_span(span.work.operator, span.start, span.end, place, facts))
        flow = {"cat": "launch", "name": "launch", "id": number}
        host = {"pid": 0, "tid": f"thread {op.thread}"}
        events.append({"ph": "s", "ts": span.launched * _US, **flow, **host})
        events.append({"ph": "f", "bp": "e", "ts": span.start * _US, **flow, **place})
    events += _host(prediction)
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")


def _host(prediction: Prediction) -> list[dict[str, Any]]:
    """Returns the calls of the host's threads, and their waits."""
    found = []
    last: dict[int, float] = {}
    for event, now in zip(
        prediction.analysis.record.events, prediction.timeline.host, strict=True
    ):
        thread = getattr(event, "thread", None)
        if thread is None:
            continue
        begin = last.get(thread, 0.0)
        if isinstance(event, (Op, HostOps)) and now > begin:
            name = event.call.name if isinstance(event, Op) else "host operators"
            place = {"pid": 0, "tid": f"thread {thread}"}
            found.append(_span(name, begin, now, place, {}))
        last[thread] = max(now, begin)
    for thread, begin, end in prediction.timeline.waits:
        place = {"pid": 0, "tid": f"thread {thread} waits"}
        found.append(_span("wait", begin, end, place, {}))
    return found


def _span(
    name: str, begin: float, end: float, place: dict[str, Any], facts: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": begin * _US, "dur": (end - begin) * _US}
    return {"ph": "X", "name": name, **times, **place, "args": facts}


def _named(pid: int, tid: str | None, kind: str, name: str) -> dict[str, Any]:
    event: dict[str, Any] = {
        "ph": "M",
        "pid": pid,
        "name": kind,
        "args": {"name": name},
    }
    return event if tid is None else event | {"tid": tid}
