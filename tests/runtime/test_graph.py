# SPDX-License-Identifier: BSD-3-Clause
"""Stream captures and graphs."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

import openreg_runtime as runtime


def test_launch_runs_the_captured_calls() -> None:
    stream = runtime.Stream()
    order: list[str] = []
    stream.begin_capture()
    assert stream.capture_status == "active"
    stream.launch(order.append, "a")
    stream.launch_host(order.append, "b")
    graph = stream.end_capture()
    assert stream.capture_status == "none"
    assert (order, graph.node_count) == ([], 2)
    graph.launch(stream)
    graph.launch()
    runtime.synchronize()
    assert order == ["a", "b"] * 2


def test_copies_read_current_memory_at_each_launch() -> None:
    stream = runtime.Stream()
    buffer = runtime.Buffer(4)
    source, result = runtime.PinnedBuffer(4), runtime.PinnedBuffer(4)
    stream.begin_capture()
    buffer.copy_from(source, stream)
    buffer.copy_to(result, stream)
    graph = stream.end_capture()
    for value in (b"abcd", b"efgh"):
        memoryview(source)[:] = value
        graph.launch(stream)
        stream.synchronize()
        assert bytes(result) == value


def test_graph_keeps_the_arguments_of_its_kernels() -> None:
    class Kept:
        def run(self) -> None:
            pass

    stream = runtime.Stream()
    kept = Kept()
    alive = weakref.ref(kept)
    stream.begin_capture()
    stream.launch(kept.run)
    graph = stream.end_capture()
    del kept
    gc.collect()
    assert alive() is not None
    graph.launch(stream)
    stream.synchronize()
    del graph
    gc.collect()
    assert alive() is None


def test_events_join_another_stream_to_the_capture() -> None:
    stream, other = runtime.Stream(), runtime.Stream(device=1)
    order: list[int] = []
    fork, join = runtime.Event(), runtime.Event()
    stream.begin_capture()
    stream.launch(order.append, 1)
    fork.record(stream)
    other.wait_event(fork)
    assert other.capture_status == "active"
    other.launch(order.append, 2)
    join.record(other)
    stream.wait_event(join)
    stream.launch(order.append, 3)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    assert order == [1, 2, 3]


def test_wait_fails_the_capture() -> None:
    stream = runtime.Stream()
    stream.begin_capture()
    with pytest.raises(
        runtime.OpenRegError, match="operation not permitted when stream is capturing"
    ):
        stream.synchronize()
    assert stream.capture_status == "invalidated"
    with pytest.raises(
        runtime.OpenRegError,
        match="failed due to a previous error during capture: a captured stream was",
    ):
        stream.end_capture()
    assert stream.capture_status == "none"


def test_errors_of_wrong_calls_name_accepted_values() -> None:
    with pytest.raises(ValueError, match="mode: expected 'global', 'thread_local'"):
        runtime.Stream().begin_capture("local")
    with pytest.raises(runtime.OpenRegError, match="default stream of its device"):
        runtime.Device(0).default_stream.begin_capture()
    with pytest.raises(runtime.OpenRegError, match="is not being captured"):
        runtime.Stream().end_capture()


def test_graph_is_written_to_a_file(tmp_path: Path) -> None:
    stream = runtime.Stream()
    buffer = runtime.Buffer(64)
    stream.begin_capture("relaxed")
    buffer.fill(1, stream)
    graph = stream.end_capture()
    graph.dump(str(tmp_path / "graph.dot"))
    assert "set of 64 bytes, device 0" in (tmp_path / "graph.dot").read_text()
