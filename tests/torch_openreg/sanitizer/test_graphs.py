# SPDX-License-Identifier: BSD-3-Clause
"""Graphs: a capture does not use memory, and each replay does."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError, UseAfterFreeError

from .programs import DEVICE, Access, line_of, new, race_of, use_after_free_of

ROOT = Path(__file__).parents[3]
Output = Callable[..., str]

pytestmark = [
    pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream"),
    pytest.mark.differs_in_process("graphs"),
]


@functools.cache
def capturing() -> torch.Stream:
    """Returns the stream of all captures: graphs share a pool's blocks on one
    stream."""
    return torch.Stream(DEVICE)


def captured(step: Callable[[], Any], **options: Any) -> tuple[Any, Any]:
    """Returns a graph of a step, and the results of the captured step."""
    graph = torch.accelerator.Graph(**options)
    with capturing(), graph:
        result = step()
    return graph, result


# ---- programs that order their replays


def replay(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    graph, y = captured(lambda: x * 2 + 1)
    graph.replay()
    graph.replay()
    assert (y + 1).tolist() == [4.0] * 8


def static_inputs_are_copied_before_each_replay(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = torch.zeros(8, device=DEVICE)
    graph, y = captured(lambda: x * 2)
    for i in range(3):
        x.copy_(torch.full((8,), float(i)))
        graph.replay()
        assert y.tolist() == [2.0 * i] * 8


def replay_on_a_side_stream_that_waits(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.zeros(8, device=DEVICE)
    graph, y = captured(lambda: x * 2)
    for _ in range(3):
        x.add_(1)
        side.wait_stream(main)
        with side:
            graph.replay()
        main.wait_stream(side)
        y.sum()


def two_graphs_of_one_pool_in_turn(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    first, y = captured(lambda: (x * 2).exp())
    second, z = captured(lambda: (y + 1).exp(), pool=first.pool())
    for _ in range(2):
        first.replay()
        second.replay()
    side.wait_stream(main)
    with side:
        z.sum()


def training_step(main: torch.Stream, side: torch.Stream) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.zeros(5, 4, device=DEVICE), torch.zeros(5, 1, device=DEVICE)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side.wait_stream(main)
    with side:
        for _ in range(2):
            step()
    main.wait_stream(side)
    graph, loss = captured(step)
    for _ in range(3):
        x.copy_(torch.randn(5, 4))
        graph.replay()
    loss.item()


def branches_that_fork_and_join(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)

    def step() -> torch.Tensor:
        here = torch.accelerator.current_stream()
        a = x * 2
        side.wait_stream(here)
        with side:
            b = a + 1
        c = a * 3
        here.wait_stream(side)
        return b + c

    graph, y = captured(step)
    graph.replay()
    x.add_(1)
    graph.replay()
    assert y.tolist() == [17.0] * 8


def replay_with_pinned_memory_and_waits(main: torch.Stream, side: torch.Stream) -> None:
    x, out = torch.ones(8).pin_memory(), torch.zeros(8).pin_memory()

    def step() -> torch.Tensor:
        y = x.to(DEVICE, non_blocking=True) * 2
        out.copy_(y, non_blocking=True)
        return y

    graph, y = captured(step)
    for i in range(3):
        x.fill_(i)
        graph.replay()
        assert y.cpu().tolist() == out.tolist() == [2.0 * i] * 8
        x.numpy()[:] = 7


def replays_of_one_graph_on_two_streams(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    graph, y = captured(lambda: x * 2)
    graph.replay()
    with side:  # launches of one graph run in sequence, on any streams
        graph.replay()
        y.sum()


def memory_that_the_capture_frees_and_uses_again(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(1000)
    graph, _ = captured(lambda: ((x + 1) * 2).exp().sum())
    other, z = captured(lambda: (x * 3).exp().sum(), pool=graph.pool())
    for _ in range(3):
        graph.replay()
        other.replay()
    assert z.item() > 0


def capture_beside_work_of_another_stream(
    main: torch.Stream, side: torch.Stream
) -> None:
    x, y = new(8), new(8)
    graph = torch.accelerator.Graph(capture_error_mode="relaxed")
    with side, graph:
        y.mul_(2)
        with main:
            x.add_(1)
            y.add_(1)  # nothing of the graph runs
    graph.replay()
    assert y.tolist() == [4.0] * 8


def input_that_is_kept_with_record_stream(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(1000)
    graph, _ = captured(lambda x=x: x * 2)
    side.wait_stream(main)
    with side:
        graph.replay()
    x.record_stream(side)
    del x
    torch.empty(1000, device=DEVICE).zero_()


def another_device(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.ones(8, device="openreg:1")
    graph = torch.accelerator.Graph()
    with torch.Stream("openreg:1"), graph:
        y = x * 2
    graph.replay()
    assert y.tolist() == [2.0] * 8


def graph_that_was_reset_and_captured_again(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    graph, _ = captured(lambda: x * 2)
    graph.replay()
    graph.reset()
    with torch.Stream(DEVICE), graph:
        y = x * 3
    graph.replay()
    assert y.tolist() == [3.0] * 8


RIGHT = [
    replay,
    static_inputs_are_copied_before_each_replay,
    replay_on_a_side_stream_that_waits,
    two_graphs_of_one_pool_in_turn,
    training_step,
    branches_that_fork_and_join,
    replay_with_pinned_memory_and_waits,
    replays_of_one_graph_on_two_streams,
    memory_that_the_capture_frees_and_uses_again,
    capture_beside_work_of_another_stream,
    input_that_is_kept_with_record_stream,
    another_device,
    graph_that_was_reset_and_captured_again,
]


@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.__name__)
def test_program_that_orders_its_replays_is_not_reported(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        program(main, side)


# ---- races of replays


def input_written_on_another_stream_during_the_replay(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    graph, _ = captured(lambda: x * 2)
    side.wait_stream(main)
    graph.replay()  # first
    with side:
        x.fill_(3)  # second


def output_read_on_another_stream_without_a_wait(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    graph, y = captured(lambda: x * 2)
    side.wait_stream(main)
    graph.replay()  # first
    with side:
        y.sum()  # second


def replay_before_its_input_is_written(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    graph, _ = captured(lambda: x * 2)
    side.wait_stream(main)
    with side:
        x.fill_(3)  # first
    graph.replay()  # second


def host_writes_to_a_pinned_input_during_the_replay(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = torch.ones(8).pin_memory()
    graph, _ = captured(lambda: x.to(DEVICE, non_blocking=True) * 2)
    graph.replay()  # first
    x.fill_(3)  # second


def host_reads_a_pinned_output_during_the_replay(
    main: torch.Stream, side: torch.Stream
) -> None:
    x, out = new(8), torch.zeros(8).pin_memory()
    graph, _ = captured(lambda: out.copy_(x * 2, non_blocking=True))
    graph.replay()  # first
    out.sum()  # second


def replays_of_two_graphs_of_one_pool_on_two_streams(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    first, y = captured(lambda: (x * 2).exp())
    del y
    second, _ = captured(lambda: (x + 1).exp(), pool=first.pool())
    side.wait_stream(main)
    first.replay()  # first
    with side:
        second.replay()  # second


def replays_of_two_graphs_that_write_to_one_tensor(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    first, _ = captured(lambda: x.mul_(2))
    second, _ = captured(lambda: x.add_(1))
    side.wait_stream(main)
    first.replay()  # first
    with side:
        second.replay()  # second


def branch_of_a_graph(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(8), new(8)

    def step() -> None:
        here = torch.accelerator.current_stream()
        side.wait_stream(here)
        with side:
            y.add_(1)
        x.add_(1)
        here.wait_stream(side)

    graph, _ = captured(step)
    third = torch.Stream(DEVICE)
    third.wait_stream(main)
    graph.replay()  # first
    with third:
        y.sum()  # second


WRONG = [
    input_written_on_another_stream_during_the_replay,
    output_read_on_another_stream_without_a_wait,
    replay_before_its_input_is_written,
    host_writes_to_a_pinned_input_during_the_replay,
    host_reads_a_pinned_output_during_the_replay,
    replays_of_two_graphs_of_one_pool_on_two_streams,
    replays_of_two_graphs_that_write_to_one_tensor,
    branch_of_a_graph,
]


@pytest.mark.parametrize("program", WRONG, ids=lambda program: program.__name__)
def test_race_of_a_replay_is_found_with_both_lines(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    error = race_of(program, main, side)
    for access in (error.previous, error.current):
        assert (access.captured is not None) == ("replay" in access.line)


def test_report_of_a_replay_names_the_operator_and_its_line_in_the_capture(
    main: torch.Stream, side: torch.Stream
) -> None:
    def program() -> None:
        x = new(8)  # allocated
        graph = torch.accelerator.Graph()
        with torch.Stream(DEVICE), graph:
            x.mul_(2)  # captured
        side.wait_stream(main)
        graph.replay()  # replayed
        with side:
            x.sum()

    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program()
    previous = found.value.previous
    assert previous.operator.startswith("aten::mul_.")
    assert (previous.writes, previous.arguments) == (True, ("self",))
    assert previous.where == "the default stream of openreg:0"
    assert previous.line == line_of(program, "replayed")
    assert previous.captured == line_of(program, "captured")
    assert found.value.allocated == line_of(program, "allocated")
    assert f"captured at {previous.captured}" in str(found.value)
    assert found.value.current.captured is None


def test_replay_that_is_reported_does_not_run(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        x = new(8)
        graph, _ = captured(lambda: x.mul_(2))
        side.wait_stream(main)
        with side:
            x.add_(1)
        with pytest.raises(UnsynchronizedAccessError):
            graph.replay()
        main.wait_stream(side)
        assert x.tolist() == [2.0] * 8
        graph.replay()
        assert x.tolist() == [4.0] * 8


# ---- memory that ends


def input_without_record_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(1000)  # allocated
    graph, _ = captured(lambda x=x: x * 2)
    side.wait_stream(main)
    with side:
        graph.replay()  # first
    del x  # freed
    y = torch.empty(1000, device=DEVICE)  # again
    y.zero_()  # second


def test_input_that_is_freed_and_used_again_during_a_replay_is_found(
    main: torch.Stream, side: torch.Stream
) -> None:
    use_after_free_of(input_without_record_stream, main, side)


def input_that_ends_before_a_replay(main: torch.Stream, side: torch.Stream) -> None:
    x = new(1000)  # allocated
    graph = torch.accelerator.Graph()
    with torch.Stream(DEVICE), graph:
        x * 2  # captured
    graph.replay()
    del x  # freed
    graph.replay()  # replayed


def test_replay_after_the_end_of_its_input_is_found(
    main: torch.Stream, side: torch.Stream
) -> None:
    program = input_that_ends_before_a_replay
    words = "keeps addresses"
    with pytest.raises(UseAfterFreeError, match=words) as found, sanitizer.enabled():
        program(main, side)
    error = found.value
    assert error.current.line == line_of(program, "replayed")
    assert error.previous.line == line_of(program, "captured")
    assert error.previously_allocated == line_of(program, "allocated")
    assert error.freed == line_of(program, "freed")


# ---- captures


def branches_without_a_join(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)

    def step() -> None:
        here = torch.accelerator.current_stream()
        side.wait_stream(here)
        with side:
            x.add_(1)  # first
        x.mul_(2)  # second
        here.wait_stream(side)

    captured(step)


def test_race_of_two_branches_is_found_in_the_capture(
    main: torch.Stream, side: torch.Stream
) -> None:
    program = branches_without_a_join
    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program(main, side)
    assert found.value.previous.line == line_of(program, "first")
    assert found.value.current.line == line_of(program, "second")


def test_block_that_another_branch_uses_is_not_freed_without_a_report(
    main: torch.Stream, side: torch.Stream
) -> None:
    def step() -> None:
        here = torch.accelerator.current_stream()
        x = new(1000)
        side.wait_stream(here)
        with side:
            x.sum()
        del x
        torch.empty(1000, device=DEVICE).zero_()
        here.wait_stream(side)

    with pytest.raises(UseAfterFreeError), sanitizer.enabled():
        captured(step)


def test_graph_from_before_the_sanitizer_is_not_checked(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(8)
    graph, y = captured(lambda: x * 2)
    with sanitizer.enabled():
        graph.replay()
        with side:
            y.sum()
    torch.accelerator.synchronize()


def test_graph_keeps_no_memory_of_the_analysis_after_its_end(
    main: torch.Stream,
) -> None:
    with sanitizer.enabled():
        analysis = sanitizer._mode._analysis
        x = new(8)
        for _ in range(20):
            graph, _ = captured(lambda: x * 2)
            graph.replay()
        del graph
        x.sum()
        assert len(analysis._captures) == 0


def test_capture_in_another_thread_is_seen(
    main: torch.Stream, side: torch.Stream
) -> None:
    results: list[Any] = []

    def work() -> None:
        x = new(8)
        side.wait_stream(torch.accelerator.current_stream())
        graph, _ = captured(lambda: x * 2)
        graph.replay()
        try:
            with side:
                x.fill_(3)
        except UnsynchronizedAccessError as error:
            results.append(error)

    with sanitizer.enabled():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(results) == 1


def test_example_of_the_documentation_is_not_reported(output: Output) -> None:
    source = (ROOT / "docs/examples/graphs.py").read_text("utf-8")
    assert output(source, OPENREG_SANITIZER="1") == "True"
