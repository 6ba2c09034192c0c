# SPDX-License-Identifier: BSD-3-Clause
"""The device in torch.profiler: kernels, copies, ranges and arrows."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

import openreg_runtime
from profiler.conftest import BOTH, WORK, Trace

TraceOf = Callable[[profile], Trace]


@pytest.fixture(autouse=True)
def warm() -> None:
    """Warms up, so that one-time work of the first operators comes before."""
    for index in range(torch.openreg.device_count()):
        x = torch.ones(8, 8, device=f"openreg:{index}")
        (x @ x).sum().item()


def rows(result: profile) -> dict[str, Any]:
    """Returns the rows of operators, without kernels."""
    return {
        row.key: row
        for row in result.key_averages()
        if row.device_type == DeviceType.CPU
    }


def test_operators_have_the_time_of_their_kernels(trace_of: TraceOf) -> None:
    x = torch.rand(200, 200, device="openreg")
    with profile(activities=BOTH) as result:
        for _ in range(3):
            torch.relu(x @ x)
    found = rows(result)
    kernels = Counter(trace_of(result).names())
    assert kernels["mm_kernel"] == 3
    for name in ("aten::mm", "aten::relu"):
        assert found[name].count == 3
        assert found[name].device_time_total > 0
    # Inner operators count for the outer one: matmul has no kernel, but the time of mm.
    assert found["aten::matmul"].self_device_time_total == 0
    assert (
        found["aten::matmul"].device_time_total
        == found["aten::mm"].self_device_time_total
    )
    assert "OPENREG total" in result.key_averages().table()


def test_every_launch_is_there_once(trace_of: TraceOf) -> None:
    x = torch.rand(10, device="openreg")
    with profile(activities=BOTH) as result:
        for _ in range(50):
            x = x + 1
    assert Counter(trace_of(result).names()) == {"add_kernel": 50}


def test_kernel_is_one_operator_not_those_it_is_made_of() -> None:
    x = torch.rand(4, 8, device="openreg")
    with profile(activities=BOTH) as result:
        torch.nn.functional.softmax(x @ x.t(), dim=-1).cumsum(0)
    on_device = {row.key for row in result.key_averages()}
    with profile(activities=[ProfilerActivity.CPU]) as reference:
        y = x.cpu()
        torch.nn.functional.softmax(y @ y.t(), dim=-1).cumsum(0)
    on_cpu = {row.key for row in reference.key_averages()}
    made_of = {"aten::_softmax.out", "aten::cumsum.out", "aten::resize_"}
    assert on_device & made_of <= on_cpu


@pytest.mark.parametrize("use", [BOTH, (ProfilerActivity.OPENREG,)])
def test_work_of_a_stream_is_in_order_and_does_not_overlap(
    trace_of: TraceOf, use: tuple[ProfilerActivity, ...]
) -> None:
    streams = [torch.Stream("openreg:0") for _ in range(2)]
    tensors = [torch.rand(300, 300, device="openreg") for _ in streams]
    torch.openreg.synchronize()
    with profile(activities=use) as result:
        for _ in range(20):
            for i, stream in enumerate(streams):
                with stream:
                    tensors[i] = (tensors[i] @ tensors[i]).div_(300)
    trace = trace_of(result)
    lanes = {event["tid"] for event in trace.work}
    numbers = {
        openreg_runtime.Stream.from_handle(stream.stream_id).number
        for stream in streams
    }
    assert lanes == numbers
    for lane in lanes:
        work = [event for event in trace.of("kernel") if event["tid"] == lane]
        assert [event["name"] for event in work] == ["mm_kernel", "div__kernel"] * 20
        for one, other in itertools.pairwise(work):
            # Traces have microseconds with three digits.
            assert one["ts"] + one["dur"] <= other["ts"] + 0.002
            assert one["args"]["correlation"] < other["args"]["correlation"]
    assert all(event["args"]["queued (us)"] >= 0 for event in trace.work)


def test_devices_and_threads_have_lanes_of_their_own(trace_of: TraceOf) -> None:
    def work(index: int) -> None:
        x = torch.rand(64, 64, device=f"openreg:{index}")
        for _ in range(5):
            x = x @ x

    with profile(activities=[ProfilerActivity.OPENREG]) as result:
        threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trace = trace_of(result)
    products = [event for event in trace.work if event["name"] == "mm_kernel"]
    assert Counter(event["pid"] for event in products) == {0: 5, 1: 10}
    calls = trace.of("privateuse1_runtime")
    callers = {event["args"]["correlation"]: event["tid"] for event in calls}
    assert len({callers[event["args"]["correlation"]] for event in products}) == 3


def test_arrows_lead_from_the_call_to_the_kernel(trace_of: TraceOf) -> None:
    x = torch.rand(64, 64, device="openreg")
    with profile(activities=BOTH) as result:
        (x @ x).exp()
    trace = trace_of(result)
    arrows = [event for event in trace.events if event.get("cat") == "ac2g"]
    starts = {event["id"]: event for event in arrows if event["ph"] == "s"}
    ends = {event["id"]: event for event in arrows if event["ph"] == "f"}
    correlations = {event["args"]["correlation"] for event in trace.work}
    assert starts.keys() == ends.keys() == correlations
    operators = {event["args"]["External id"] for event in trace.of("cpu_op")}
    for event in trace.work:
        assert event["args"]["External id"] in operators
        assert ends[event["args"]["correlation"]]["pid"] == event["pid"]


def test_copies_have_direction_bytes_and_bandwidth(trace_of: TraceOf) -> None:
    pageable, pinned = torch.rand(1000), torch.rand(1000).pin_memory()
    x = torch.empty(1000, device="openreg")
    y = torch.empty(1000, device="openreg")
    with profile(activities=BOTH) as result:
        x.copy_(pageable)
        x.copy_(pinned, non_blocking=True)
        y.copy_(x)
        pageable.copy_(x)
        pinned.copy_(x)
    copies = trace_of(result).of("gpu_memcpy")
    assert [event["name"] for event in copies] == [
        "Memcpy HtoD (Pageable -> Device)",
        "Memcpy HtoD (Pinned -> Device)",
        "Memcpy DtoD (Device -> Device)",
        "Memcpy DtoH (Device -> Pageable)",
        "Memcpy DtoH (Device -> Pinned)",
    ]
    for event in copies:
        assert event["args"]["bytes"] == 4000
        seconds = event["dur"] * 1e-6
        bandwidth = event["args"]["memory bandwidth (GB/s)"]
        assert bandwidth == pytest.approx(4000 / seconds / 1e9, rel=0.02)


def test_copy_between_devices_is_on_the_lane_of_the_source(trace_of: TraceOf) -> None:
    x = torch.rand(100, device="openreg:0")
    y = torch.empty(100, device="openreg:1")
    with profile(activities=BOTH) as result:
        y.copy_(x)
        torch.openreg.synchronize(1)
    (copy,) = trace_of(result).of("gpu_memcpy")
    assert (copy["name"], copy["pid"]) == ("Memcpy DtoD (Device -> Device)", 0)


def test_memset_of_the_runtime_is_shown(trace_of: TraceOf) -> None:
    buffer = openreg_runtime.Buffer(512)
    with profile(activities=BOTH) as result:
        buffer.fill(1)
    (fill,) = trace_of(result).of("gpu_memset")
    assert (fill["name"], fill["args"]["bytes"]) == ("Memset (Device)", 512)


def test_ranges_are_on_the_device_around_their_kernels(trace_of: TraceOf) -> None:
    x = torch.rand(64, 64, device="openreg")
    with profile(activities=BOTH) as result:
        with record_function("outer"):
            x = x + 1
            with record_function("inner"):
                x = x @ x
            x = x + 1
        x = x.exp()
    trace = trace_of(result)
    ranges = {event["name"]: event for event in trace.of("gpu_user_annotation")}
    assert ranges.keys() == {"outer", "inner"}
    work = {event["name"]: event for event in trace.work}

    def contains(name: str, kernel: str) -> bool:
        around, inside = ranges[name], work[kernel]
        return (
            around["ts"] <= inside["ts"] + 0.002
            and inside["ts"] + inside["dur"] <= around["ts"] + around["dur"] + 0.002
        )

    assert contains("outer", "mm_kernel")
    assert contains("inner", "mm_kernel")
    assert not contains("inner", "add_kernel")
    assert not contains("outer", "exp_kernel")


def test_kernel_of_python_has_the_name_of_its_function(trace_of: TraceOf) -> None:
    def my_kernel() -> None:
        pass

    stream = openreg_runtime.Device(0).default_stream
    with profile(activities=BOTH) as result:
        stream.launch(my_kernel)
    (name,) = trace_of(result).names()
    assert name.endswith("my_kernel")


def test_work_that_is_not_finished_at_the_end_is_included(
    trace_of: TraceOf, latch: Callable[..., Any]
) -> None:
    x = torch.rand(100, 100, device="openreg")
    held = latch(openreg_runtime.Device(0).default_stream)
    with profile(activities=BOTH) as result:
        for _ in range(4):
            x = x @ x
        timer = threading.Timer(0.05, held.release)
        timer.start()
    timer.join()
    assert trace_of(result).names() == ["mm_kernel"] * 4


def test_work_of_another_device_at_the_end_is_included(
    trace_of: TraceOf, latch: Callable[..., Any]
) -> None:
    x = torch.rand(100, 100, device="openreg:1")
    held = latch(openreg_runtime.Device(1).default_stream)
    with profile(activities=BOTH) as result:
        x = x @ x
        timer = threading.Timer(0.05, held.release)
        timer.start()
    timer.join()
    assert trace_of(result).names() == ["mm_kernel"]


@pytest.mark.skipif(
    os.environ.get("OPENREG_LAUNCH_BLOCKING") == "1",
    reason="the launch itself reports the failure: test_modes.py has that",
)
def test_failed_kernel_is_marked_and_still_reported(trace_of: TraceOf) -> None:
    def fails() -> None:
        raise ValueError("no")

    # Uses a device other than the current one, for which torch.profiler itself waits.
    stream = openreg_runtime.Stream(1)
    with profile(activities=[ProfilerActivity.OPENREG]) as result:
        stream.launch(fails)
        stream.launch(lambda: None)
    failed = [event for event in trace_of(result).work if "error" in event["args"]]
    # The second one is dropped.
    errors = [event["args"]["error"] for event in failed]
    assert errors == ["orErrorLaunchFailure"] * 2
    assert failed[0]["name"].endswith("fails")
    # The profile has waited for the stream, but did not consume its failure.
    with pytest.raises(openreg_runtime.OpenRegError, match="ValueError: no"):
        stream.synchronize()


def test_kernels_take_no_longer_than_events_around_them(
    trace_of: TraceOf, latch: Callable[..., Any]
) -> None:
    x = torch.rand(400, 400, device="openreg")
    begun, ended = (torch.Event("openreg", enable_timing=True) for _ in range(2))
    held = latch(openreg_runtime.Device(0).default_stream)
    with profile(activities=BOTH) as result:
        begun.record()
        for _ in range(5):
            x = (x @ x).div_(400)
        ended.record()
        held.release()
        torch.openreg.synchronize()
    elapsed = begun.elapsed_time(ended) * 1000
    summed = sum(event["dur"] for event in trace_of(result).of("kernel"))
    assert 0.5 * elapsed < summed <= elapsed


def test_trace_is_in_the_format_of_chrome(trace_of: TraceOf) -> None:
    x = torch.rand(64, 64, device="openreg", requires_grad=True)
    with (
        profile(activities=BOTH, profile_memory=True) as result,
        record_function("a range, of the program"),
    ):
        (x @ x).sum().backward()
    trace = trace_of(result)
    assert trace.whole["schemaVersion"] == 1
    assert len(trace.whole["deviceProperties"]) == torch.openreg.device_count()
    for event in trace.events:
        assert event["ph"] in "XMsfi", event
        assert isinstance(event["name"], str)
        assert "pid" in event
        assert "tid" in event
        assert isinstance(event["ts"], (int, float))
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] in "sf":
            assert "id" in event
    named = {
        (event["pid"], event["tid"], event["args"]["name"])
        for event in trace.events
        if event["name"] == "thread_name"
    }
    assert (0, 0, "stream 0 (default)") in named


def test_events_of_a_lane_nest_or_follow_each_other(trace_of: TraceOf) -> None:
    """Perfetto drops an event that begins in another one and ends after it."""
    x = torch.rand(64, 64, device="openreg", requires_grad=True)
    side = torch.Stream("openreg:0")
    with profile(activities=BOTH) as result, record_function("a range"):
        with side:
            torch.rand(64, 64, device="openreg").exp()
        (x @ x).relu().sum().backward()
        x.detach().cpu()
    lanes = defaultdict(list)
    for event in trace_of(result).events:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append(event)
    number = openreg_runtime.Stream.from_handle(side.stream_id).number
    assert lanes.keys() >= {(0, 0), (0, number)}
    for events in lanes.values():
        around: list[float] = []
        for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
            # Traces have microseconds with three digits.
            while around and around[-1] <= event["ts"] + 0.002:
                around.pop()
            ended = event["ts"] + event["dur"]
            assert not around or ended <= around[-1] + 0.002, event
            around.append(ended)


@pytest.mark.parametrize(
    ("types", "categories"),
    [
        (["GPU_MEMCPY"], ["gpu_memcpy"]),
        (["CONCURRENT_KERNEL"], ["kernel"]),
        (
            ["CONCURRENT_KERNEL", "GPU_USER_ANNOTATION"],
            ["kernel", "gpu_user_annotation"],
        ),
        (
            ["CONCURRENT_KERNEL", "GPU_MEMCPY", "PRIVATEUSE1_RUNTIME"],
            ["kernel", "gpu_memcpy", "privateuse1_runtime"],
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("with_host", [True, False])
def test_only_types_that_are_asked_for_are_recorded(
    trace_of: TraceOf, types: list[str], categories: list[str], with_host: bool
) -> None:
    of_host = [ProfilerActivity.CPU] if with_host else []
    x = torch.rand(64, 64, device="openreg")
    with (
        profile(activities=[*of_host, {ProfilerActivity.OPENREG: types}]) as result,
        record_function("a range"),
    ):
        (x @ x).cpu()
    trace = trace_of(result)
    found = {
        event["cat"]
        for event in trace.of(*WORK, "gpu_user_annotation", "privateuse1_runtime")
    }
    if with_host:  # PyTorch requests calls together with the host's
        assert found == {*categories, "privateuse1_runtime"}
    else:  # ranges belong to the host
        assert found == {*categories} - {"gpu_user_annotation"}
    arrows = [event for event in trace.events if event.get("cat") == "ac2g"]
    ends = Counter(event["ph"] for event in arrows)
    assert ends["s"] == ends["f"]
    assert (ends["s"] > 0) == ("privateuse1_runtime" in found)


def test_stacks_have_the_time_of_the_device(tmp_path: Path) -> None:
    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    x = torch.rand(200, 200, device="openreg")
    # Otherwise PyTorch records no operator stacks, on any device.
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)
    with profile(
        activities=BOTH, with_stack=True, experimental_config=verbose
    ) as result:
        product(x)
    path = tmp_path / "stacks"
    result.export_stacks(str(path), "self_privateuse1_time_total")
    stacks = [line.rsplit(" ", 1) for line in path.read_text().splitlines()]
    assert any(
        stack.endswith("_product") and int(microseconds) > 0
        for stack, microseconds in stacks
    )
    (row,) = (
        row for row in result.key_averages(group_by_stack_n=1) if row.key == "aten::mm"
    )
    assert row.stack[0].endswith(": product")
    assert row.self_device_time_total > 0


def test_profile_of_the_host_records_nothing_of_the_device(trace_of: TraceOf) -> None:
    x = torch.rand(8, device="openreg")
    with (
        profile(activities=[ProfilerActivity.CPU]) as result,
        openreg_runtime.activity.record() as recording,  # no other code does
    ):
        x = x + 1
        torch.openreg.synchronize()  # it may have been enqueued
    assert trace_of(result).work == []
    assert [each.name for each in recording.take() if each.kind == "kernel"] == [
        "aten::add"
    ]


def test_profile_during_another_recording_warns_that_it_is_incomplete(
    trace_of: TraceOf, capfd: pytest.CaptureFixture[str]
) -> None:
    x = torch.rand(8, device="openreg")
    with (
        openreg_runtime.activity.record() as recording,
        profile(activities=BOTH) as result,
    ):
        x = x + 1
    assert "activity recording is already enabled" in capfd.readouterr().err
    assert trace_of(result).work == []
    names = [each.name for each in recording.take() if each.kind == "kernel"]
    assert names == ["aten::add"]


@pytest.mark.differs_in_process("occl")
def test_collective_has_its_name(output: Callable[..., str]) -> None:
    source = """
    import json, tempfile
    from pathlib import Path
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile
    dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
    x = torch.ones(1000, device="openreg")
    dist.all_reduce(x)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as p:
        dist.all_reduce(x)
        torch.openreg.synchronize()
    path = Path(tempfile.mkdtemp(), "trace.json")
    p.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    print([e["name"] for e in events
           if e.get("cat") == "kernel" and e["name"].startswith("occl")])
    dist.destroy_process_group()
    """
    assert output(source) == "['occl:all_reduce']"
