# SPDX-License-Identifier: BSD-3-Clause
"""The memory history, as PyTorch's memory viewer reads and shows it."""

from __future__ import annotations

import base64
import gc
import json
import pickle
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.cuda import _memory_viz

from support.programs import run

memory = torch.openreg.memory

MIB = 1 << 20


@pytest.fixture(autouse=True)
def recording() -> Iterator[None]:
    """Starts with an empty cache, and stops every recording."""
    gc.collect()
    torch.openreg.synchronize()
    torch.openreg.empty_cache()
    yield
    memory._record_memory_history(enabled=None)


def allocate_here(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="openreg")


def actions(snapshot: dict[str, Any], device: int = 0) -> list[str]:
    return [entry["action"] for entry in snapshot["device_traces"][device]]


def names(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["name"] for frame in frames]


def block_of(x: torch.Tensor, snapshot: dict[str, Any]) -> dict[str, Any]:
    (block,) = (
        block
        for segment in snapshot["segments"]
        for block in segment["blocks"]
        if block["address"] == x.data_ptr()
    )
    return dict(block)


def test_history_has_each_action_with_size_address_and_stack() -> None:
    memory._record_memory_history(stacks="python")
    x = allocate_here(3 * MIB)
    address = x.data_ptr()
    del x
    torch.openreg.empty_cache()
    snapshot = memory._snapshot()
    assert actions(snapshot) == [
        "segment_alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "segment_free",
        "snapshot",
    ]
    trace = snapshot["device_traces"][0]
    sizes = [20 * MIB, 3 * MIB, 3 * MIB, 3 * MIB, 20 * MIB]
    assert [entry["size"] for entry in trace[:-1]] == sizes
    assert {entry["addr"] for entry in trace[:-1]} == {address}
    assert {entry["stream"] for entry in trace} == {0}
    assert names(trace[1]["frames"])[:2] == [
        "allocate_here",
        "test_history_has_each_action_with_size_address_and_stack",
    ]
    frame = trace[1]["frames"][0]
    assert frame["filename"] == __file__
    assert frame["line"] == allocate_here.__code__.co_firstlineno + 1
    times = [entry["time_us"] for entry in trace]
    assert times == sorted(times)
    assert actions(snapshot, 1) == ["snapshot"]


def test_snapshot_has_segments_and_blocks_in_order() -> None:
    memory._record_memory_history(stacks="python")
    side = torch.openreg.Stream()
    x = allocate_here(1000)
    y = allocate_here(2 * MIB)
    with torch.openreg.stream(side):
        z = allocate_here(MIB)
    snapshot = memory._snapshot()
    segments = snapshot["segments"]
    assert torch.openreg.memory_snapshot() == segments
    assert [segment["address"] for segment in segments] == sorted(
        segment["address"] for segment in segments
    )
    assert sum(each["total_size"] for each in segments) == (
        torch.openreg.memory_reserved()
    )
    assert sum(each["allocated_size"] for each in segments) == (
        torch.openreg.memory_allocated()
    )
    assert sorted(each["segment_type"] for each in segments) == [
        "large",
        "small",
        "small",
    ]
    for segment in segments:
        assert sum(each["size"] for each in segment["blocks"]) == segment["total_size"]
        end = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == end
            end += block["size"]
    block = block_of(x, snapshot)
    assert (block["size"], block["requested_size"]) == (1024, 1000)
    assert block["state"] == "active_allocated"
    assert "allocate_here" in names(block["frames"])
    assert block_of(y, snapshot)["size"] == 2 * MIB
    assert {each["stream"] for each in segments} == {0, side.stream_id}
    assert z.numel() == MIB


def test_block_of_an_output_has_the_stack_of_the_operator() -> None:
    x = torch.ones(100, 100, device="openreg")
    memory._record_memory_history(stacks="python")
    y, z = x + 1, torch.hypot(x, x)
    snapshot = memory._snapshot()
    for result in (y, z):
        assert names(block_of(result, snapshot)["frames"])[0] == (
            "test_block_of_an_output_has_the_stack_of_the_operator"
        )
    assert block_of(x, snapshot)["frames"] == []


def test_block_that_waits_for_a_stream_is_awaiting_free() -> None:
    side = torch.openreg.Stream()
    x = allocate_here(512)
    address = x.data_ptr()
    x.record_stream(side)
    del x
    states = [
        block["state"]
        for segment in torch.openreg.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == address
    ]
    assert states == ["active_awaiting_free"]


def test_state_keeps_stacks_of_memory_in_use_and_no_history() -> None:
    memory._record_memory_history("state", stacks="python")
    x = allocate_here(512)
    snapshot = memory._snapshot()
    assert names(block_of(x, snapshot)["frames"])[0] == "allocate_here"
    assert snapshot["device_traces"] == [[], []]


@pytest.mark.parametrize(
    ("context", "block", "alloc", "free"),
    [
        (None, False, False, False),
        ("state", True, False, False),
        ("alloc", True, True, True),  # a free has the stack of its allocation
        ("all", True, True, True),
    ],
)
def test_context_selects_the_recorded_stacks(
    context: str | None, block: bool, alloc: bool, free: bool
) -> None:
    memory._record_memory_history(context=context, stacks="python")
    kept = allocate_here(512)
    allocate_here(1024)
    snapshot = memory._snapshot()
    trace = snapshot["device_traces"][0]
    entries = {entry["action"]: entry for entry in trace}
    assert bool(block_of(kept, snapshot)["frames"]) is block
    assert bool(entries["alloc"]["frames"]) is alloc
    frees = names(entries["free_requested"]["frames"])
    assert bool(frees) is free
    assert ("allocate_here" in frees) is (context == "alloc")


def test_history_keeps_the_last_entries() -> None:
    memory._record_memory_history(max_entries=5, stacks="python")
    for size in range(1, 20):
        allocate_here(512 * size)
    trace = memory._snapshot()["device_traces"][0]
    assert len(trace) == 5
    assert [entry["size"] for entry in trace[-4:-1]] == [512 * 19] * 3


def test_history_continues_until_it_is_cleared_or_stopped() -> None:
    memory._record_memory_history(stacks="python")
    x = allocate_here(512)
    memory._record_memory_history(stacks="python")
    assert "alloc" in actions(memory._snapshot())
    memory._record_memory_history(stacks="python", clear_history=True)
    assert actions(memory._snapshot()) == ["snapshot"]
    memory._record_memory_history(enabled=None)
    del x
    assert memory._snapshot()["device_traces"] == [[], []]


def test_actions_can_be_skipped() -> None:
    memory._record_memory_history(
        stacks="python", skip_actions=["alloc", "free_completed", "segment_alloc"]
    )
    allocate_here(512)
    assert actions(memory._snapshot()) == ["free_requested", "snapshot"]


def test_running_out_of_memory_is_in_the_history() -> None:
    memory._record_memory_history(stacks="python")
    free, total = torch.openreg.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError):
        allocate_here(total + 1)
    (entry,) = (
        each
        for each in memory._snapshot()["device_traces"][0]
        if each["action"] == "oom"
    )
    assert entry["device_free"] == free
    assert entry["size"] == total + 1
    assert "addr" not in entry
    assert names(entry["frames"])[0] == "allocate_here"


def test_cpp_frames_are_recorded_if_asked_for() -> None:
    memory._record_memory_history(stacks="all")
    x = allocate_here(512)
    frames = names(block_of(x, memory._snapshot())["frames"])
    assert any("::" in name for name in frames)  # a function of PyTorch's libraries
    assert "allocate_here" in frames


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"enabled": "yes"}, ValueError, "enabled must be one of None, 'state', 'all'"),
        ({"context": "none"}, ValueError, "context must be one of None, 'state'"),
        ({"stacks": "cpp"}, ValueError, "stacks must be one of 'python', 'all'"),
        ({"max_entries": 0}, ValueError, "max_entries must be from 1 to"),
        ({"max_entries": 2.0}, TypeError, "max_entries must be an int, but got 2.0"),
        ({"skip_actions": ["x"]}, ValueError, "skip_actions must be one of 'alloc'"),
    ],
)
def test_wrong_argument_is_refused(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        memory._record_memory_history(**arguments)


def train_one_step() -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    ).to("openreg")
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(32, 64, device="openreg")
    model(x).square().mean().backward()
    optimizer.step()
    torch.openreg.synchronize()


VIEWS = {
    "trace_plot": "Active Memory Timeline",
    "segment_plot": "Allocator State History",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", VIEWS)
def test_viewer_of_pytorch_shows_a_training_step(tmp_path: Path, kind: str) -> None:
    dump, page = tmp_path / "step.pickle", tmp_path / "step.html"
    memory._record_memory_history(stacks="python")
    train_one_step()
    memory._dump_snapshot(dump)
    command = (sys.executable, "-m", "torch.cuda._memory_viz", kind)
    done = run(*command, dump, "-o", page)
    assert done.returncode == 0, done.stderr
    html = page.read_text()
    (files,) = re.findall(r"const local_files = (.*)", html)
    (file,) = json.loads(files)
    snapshot = pickle.loads(base64.b64decode(file["base64"]))
    assert snapshot == pickle.loads(dump.read_bytes())
    assert VIEWS[kind] in html
    called = {
        name
        for entry in snapshot["device_traces"][0]
        for name in names(entry["frames"])
    }
    assert {"train_one_step", "forward", "step", "backward"} <= called


def test_text_tools_of_pytorch_read_the_snapshot(tmp_path: Path) -> None:
    dump = tmp_path / "step.pickle"
    memory._record_memory_history(stacks="python")
    train_one_step()
    memory._dump_snapshot(dump)
    snapshot = pickle.loads(dump.read_bytes())
    assert "segments: " in _memory_viz.segsum(snapshot)
    assert "free_requested" not in _memory_viz.trace(snapshot)
    assert _memory_viz.trace(snapshot).startswith("Device 0")


def annotated(snapshot: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["name"], each["stage"]) for each in snapshot["external_annotations"]]


def test_history_has_the_ranges_of_the_thread() -> None:
    with torch.profiler.record_function("before"):
        memory._record_memory_history()
        with torch.profiler.record_function("step"):
            kept = allocate_here(MIB)
    snapshot = memory._snapshot()
    assert annotated(snapshot) == [("step", "START"), ("step", "END")]
    begin, end = snapshot["external_annotations"]
    assert begin["device"] == 0
    (allocated,) = (
        entry["time_us"]
        for entry in snapshot["device_traces"][0]
        if entry["action"] == "alloc"
    )
    assert begin["time_us"] <= allocated <= end["time_us"]
    memory._record_memory_history(enabled=None)
    with torch.profiler.record_function("after"):
        pass
    assert annotated(memory._snapshot()) == []
    del kept


@pytest.mark.parametrize("everywhere", [False, True])
def test_history_has_the_ranges_of_all_threads_on_request(everywhere: bool) -> None:
    def work() -> None:
        with torch.profiler.record_function("other"):
            pass

    memory._record_memory_history(global_record_annotations=everywhere)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with torch.profiler.record_function("own"):
        pass
    ranges = [name for name, stage in annotated(memory._snapshot()) if stage == "END"]
    assert ranges == (["other", "own"] if everywhere else ["own"])


def test_history_keeps_the_latest_ranges() -> None:
    memory._record_memory_history(max_entries=3)
    for name in "abc":
        with torch.profiler.record_function(name):
            pass
    latest = [("b", "END"), ("c", "START"), ("c", "END")]
    assert annotated(memory._snapshot()) == latest
    memory._record_memory_history(max_entries=3, clear_history=True)
    assert annotated(memory._snapshot()) == []
