# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the virtual clock: overlap, waits, graphs and compiled functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import openreg_predict
from openreg_predict import Call, Prediction, Record, TensorFacts, load_device
from openreg_predict._analysis.fusion import Fusion, fuse
from openreg_predict._analysis.works import works_of
from openreg_predict._clock.clock import Clock, Timeline
from openreg_predict._devices.host import Host
from openreg_predict._records.record import (
    Fork,
    Join,
    Mark,
    Op,
    Region,
    Replay,
    Sync,
    Wait,
)
from openreg_predict._works.work import Work, contiguous

torch.set_num_threads(1)

HOST = Host(
    operator=1.0,
    view=0.1,
    launch=0.5,
    synchronize=0.25,
    event=0.0,
    thread=0.0,
    in_graph=0.125,
    graph=2.0,
    compiled=0.5,
    region=0.0,
)


def op(stream: int = 0, thread: int = 0, wait: str = "", **more: object) -> Op:
    call = Call("mul", {}, [])
    return Op(call, thread, 0, stream, wait, **more)  # type: ignore[arg-type]


def run(*events: object, time: float = 10.0) -> Timeline:
    """Returns the times if every kernel takes as long."""
    record = Record(list(events))  # type: ignore[arg-type]
    works = {
        i: Work("mul", "pointwise", "f32")
        for i, event in enumerate(events)
        if isinstance(event, Op)
    }
    return Clock(record, works, lambda _: time, HOST, Fusion()).run()


def run_kinds(
    events: list[Any], kinds: list[str], seconds: dict[str, float]
) -> Timeline:
    """Returns the times if the operators have these kinds, in their order."""
    places = [i for i, event in enumerate(events) if isinstance(event, Op)]
    works = {i: Work("mul", kind, "f32") for i, kind in zip(places, kinds, strict=True)}
    return Clock(Record(events), works, lambda w: seconds[w.kind], HOST, Fusion()).run()


def starts(line: Timeline) -> list[float]:
    return [span.start for span in line.spans]


def test_a_kernel_starts_after_its_launch_and_after_its_stream() -> None:
    line = run(op(), op())
    assert starts(line) == [1.5, 11.5]
    assert line.host == [1.0, 2.0]
    assert [span.delay for span in line.spans] == ["host", "stream"]


def test_a_host_that_is_slower_than_the_device_decides() -> None:
    assert starts(run(op(), op(), op(), time=0.25)) == [1.5, 2.5, 3.5]


def test_a_waiting_operator_stops_the_host_until_its_end() -> None:
    line = run(op(), op(wait="item"), op())
    assert line.host == [1.0, 21.75, 22.75]
    assert starts(line)[2] == 23.25


def test_kernels_of_two_streams_share_the_device_and_collectives_do_not() -> None:
    assert starts(run(op(0), op(1))) == [1.5, 11.5]
    events = [op(0), op(1)]
    works = {
        0: Work("mul", "pointwise", "f32"),
        1: Work("all_reduce", "collective", "f32"),
    }
    line = Clock(Record(list(events)), works, lambda _: 10.0, HOST, Fusion()).run()
    assert starts(line) == [1.5, 2.5]


def test_a_stream_waits_for_the_mark_of_another_one() -> None:
    line = run(op(0), Mark(0, 0, 0, 0), Wait(0, 0, 0, 1), op(1))
    assert starts(line) == [1.5, 11.5]
    assert line.spans[1].delay == "event"


def test_a_mark_covers_only_earlier_work() -> None:
    line = run(op(0), Mark(0, 0, 0, 0), op(0), Sync(0, 0, -1, 0))
    assert line.host[-1] == 11.75


def test_a_stream_that_waits_does_not_delay_another_one() -> None:
    # The kernel of stream 1 is launched earlier, and ready later.
    copy = op(0, transfer="HtoD", pinned=True)
    events = [copy, Mark(0, 0, 0, 0), Wait(0, 0, 0, 1), op(1), op(2)]
    kinds = ["transfer", "pointwise", "pointwise"]
    line = run_kinds(events, kinds, {"transfer": 30.0, "pointwise": 10.0})
    assert starts(line) == [1.5, 31.5, 3.5]


def test_a_thread_has_a_clock_of_its_own() -> None:
    line = run(Fork(0, 1), op(0, 0), op(1, 1), op(0, 0), Join(0, 1), time=0.125)
    assert [round(x, 3) for x in sorted(starts(line))] == [1.5, 1.625, 2.5]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 3, 0, 1)])
def test_the_order_in_which_threads_ran_does_not_count(order: tuple[int, ...]) -> None:
    parts = [op(0, 1), op(0, 1), op(1, 2), op(1, 2)]
    line = run(Fork(0, 1), Fork(0, 2), *(parts[i] for i in order))
    found = sorted((span.start, span.stream) for span in line.spans)
    assert found == [(1.5, 0), (11.5, 1), (21.5, 0), (31.5, 1)]


def test_a_graph_replays_its_kernels_with_one_launch() -> None:
    from openreg_predict._records.record import Capture

    line = run(
        Capture(7, 0, True), op(), op(), Capture(7, 0, False), Replay(7, 0, 0, 0)
    )
    assert line.host[-1] == 4.0
    assert starts(line) == [4.5, 14.625]


def test_asynchronous_collectives_end_before_their_result_is_used() -> None:
    tensor = TensorFacts((4,), (1,), "f32", 5, "openreg")
    collective = Op(
        Call("all_reduce", {"tensors": [tensor]}, []), ranks=2, is_async=True
    )
    user = Op(Call("mul", {"self": tensor}, []))
    events = [collective, op(), user]
    kinds = ["collective", "pointwise", "pointwise"]
    line = run_kinds(events, kinds, {"collective": 30.0, "pointwise": 10.0})
    assert starts(line) == [1.5, 2.5, 31.5]


# ---- compiled functions


def fused(work: Callable[..., object], *sizes: tuple[int, ...]) -> list[Work]:
    """Returns the kernels of a compiled function."""
    tensors = [torch.ones(size, device="openreg") for size in sizes]
    compiled = torch.compile(work, backend="eager")
    with openreg_predict.record() as record:
        result = compiled(*tensors)
    del result
    works = works_of(record)
    fusion = fuse(record, works)
    merged = {
        i for i, event in enumerate(record.events) if isinstance(event, Op)
    } - fusion.merged
    kernels = [fusion.kernels[i].work for i in sorted(merged) if i in fusion.kernels]
    return [each for each in kernels if each is not None and each.kind != "view"]


def test_elementwise_operators_form_one_kernel_that_reads_its_inputs_once() -> None:
    (kernel,) = fused(lambda x, y: (x * y + x).exp() * 2, (100, 100), (100, 100))
    assert kernel.read == 2 * 40000
    assert kernel.written == 40000
    assert kernel.compiled


def test_a_norm_and_what_follows_form_one_kernel() -> None:
    (kernel,) = fused(lambda x: torch.softmax(x * 2, -1) + 1, (64, 128))
    assert kernel.kind == "norm"
    assert kernel.read == 64 * 128 * 4
    assert kernel.written >= 64 * 128 * 4


def test_a_product_separates_kernels() -> None:
    kernels = fused(lambda x: (x.exp() @ x).exp(), (64, 64))
    assert [each.operator for each in kernels] == ["exp", "exp"]


def test_a_cycle_is_not_formed() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        return (y @ x) * y  # needs the product, which needs y

    assert [each.operator for each in fused(work, (64, 64))] == ["exp", "mul"]


def test_complex_operators_are_separate_kernels_as_inductor_makes_them() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        rotated = torch.view_as_complex(x.exp().sin()) * 2j
        return torch.view_as_real(rotated).cos().exp()

    kernels = fused(work, (64, 2))
    assert [each.operator for each in kernels] == ["fused exp sin", "fused cos exp"]


def test_compiled_regions_cost_less_than_eager_ones() -> None:
    def work(x: torch.Tensor) -> torch.Tensor:
        return ((x * 2).exp() + 1).sin().sum()

    x = torch.ones(1000, 1000, device="openreg")
    with openreg_predict.record() as eager:
        work(x)
    with openreg_predict.record() as compiled:
        torch.compile(work, backend="eager")(x)
    assert sum(isinstance(e, Region) for e in compiled.events) == 2
    times = [each.predict("t4").step.value for each in (eager, compiled)]
    assert times[1] < 0.5 * times[0]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_checkpoints_in_compiled_functions_compute_only_what_is_read(
    is_compiled: bool,
) -> None:
    """The backward pass of the sum reads nothing, and the one of exp its result."""
    from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

    def work(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda x: x.sin().exp() + 3, x, use_reentrant=False)  # type: ignore[no-any-return]

    call = torch.compile(work, backend="eager") if is_compiled else work
    x = torch.ones(2**12, device="openreg", requires_grad=True)
    with openreg_predict.record() as record, set_checkpoint_early_stop(False):
        call(x).sum().backward()
    kernels = [
        span.work.operator
        for span in record.predict("t4").timeline.spans
        if getattr(record.events[span.index], "phase", "") == "backward"
    ]
    assert kernels == (
        ["fused sin exp mul", "fused cos mul"]
        if is_compiled
        else ["sin", "exp", "add", "mul", "cos", "mul"]
    )


def test_flex_attention_in_a_compiled_function_reads_all_of_its_tensors() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def work(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return flex_attention(q, k, v).cos()  # type: ignore[union-attr]

    inputs = [
        torch.ones(1, 2, 16, 8, device="openreg", requires_grad=True) for _ in range(3)
    ]
    call = torch.compile(work, backend="eager", fullgraph=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        with openreg_predict.record() as record:
            call(*inputs).sum().backward()
    names = [span.work.operator for span in record.predict("t4").timeline.spans]
    assert names[-2:] == ["fused sin neg mul", "flex_attention_backward"]


# ---- predictions


def train(steps: int = 3) -> Record:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).to("openreg")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with openreg_predict.record() as record:
        for _ in range(steps):
            model(torch.ones(32, 64, device="openreg")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.openreg.synchronize()
    return record


@pytest.fixture(scope="module")
def prediction() -> Prediction:
    return train().predict("h100-sxm", find_steps=True)


def test_steps_are_found(prediction: Prediction) -> None:
    assert prediction.steps == 3
    assert prediction.step.value * 2 < prediction.total.value


def test_steps_are_found_if_every_second_one_logs() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    with openreg_predict.record(dry=True) as record:
        model.to("openreg")
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for step in range(8):
            loss = model(torch.ones(8, 16, device="openreg")).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 2:
                loss.exp().item()
    assert record.predict("t4", find_steps=True).steps in (6, 8)


def test_the_parts_of_a_step_add_up(prediction: Prediction) -> None:
    assert sum(prediction.bound.values()) == pytest.approx(prediction.step.value)
    assert sum(each.share for each in prediction.classes) == pytest.approx(1)
    assert sum(each.share for each in prediction.modules) == pytest.approx(1)


def test_small_kernels_are_bound_by_the_host(prediction: Prediction) -> None:
    assert max(prediction.bound, key=lambda name: prediction.bound[name]) == "host"
    assert prediction.what_if["no host or launch time"] < prediction.step.value


def test_the_interval_contains_the_value(prediction: Prediction) -> None:
    step = prediction.step
    assert 0 < step.low < step.value < step.high < 4 * step.low


def test_equal_records_give_equal_bits() -> None:
    found = [train().predict("a100-sxm-80").to_dict() for _ in range(2)]
    assert found[0] == found[1]


def test_a_faster_memory_makes_large_elementwise_work_faster() -> None:
    with openreg_predict.record(dry=True) as record:
        torch.empty(2**28, device="openreg").exp()
    device = load_device("h100-sxm")
    one = record.predict(device)
    two = record.predict(device.scaled(memory_bandwidth=2))
    assert 1.8 < one.step.value / two.step.value < 2.1
    assert one.bound["memory"] > 0.9 * one.step.value
    assert one.what_if["2x memory bandwidth"] == two.step.value


def test_products_count_for_the_utilization() -> None:
    with openreg_predict.record(dry=True) as record:
        x = torch.empty(8192, 8192, device="openreg", dtype=torch.bfloat16)
        for _ in range(10):
            x = x @ x
    prediction = record.predict("h100-sxm")
    assert 0.4 < prediction.mfu < 1
    assert prediction.bound["compute"] > 0.8 * prediction.step.value


def test_operators_without_a_class_are_listed() -> None:
    facts = contiguous((1000,), "f32")
    record = Record([Op(Call("made_up", {"self": facts}, [facts], namespace="mine"))])
    (share,) = record.predict("t4").unclassified
    assert (share.name, share.share) == ("made_up", 1.0)


def test_devices_are_compared() -> None:
    with openreg_predict.record(dry=True) as record:
        x = torch.empty(4096, 4096, device="openreg")
        x @ x
    comparison = record.compare(["t4", "h100-sxm"])
    lines = comparison.table().splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("h100-sxm")


def test_a_trace_has_the_kernels(tmp_path, prediction: Prediction) -> None:  # type: ignore[no-untyped-def]
    import json

    prediction.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
    assert len(kernels) == len(prediction.timeline.spans)
    assert {"addmm", "threshold_backward"} <= {e["name"] for e in kernels}
