# SPDX-License-Identifier: BSD-3-Clause
"""Findings do not depend on timing, and name backward passes and threads."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable

import pytest
import torch
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError

from support.latches import Latches

from .programs import DEVICE, line_of, new, read_after_write, use_by_another_stream

Output = Callable[..., str]


def test_finding_does_not_depend_on_when_work_runs(
    main: torch.Stream, side: torch.Stream, latch: Latches
) -> None:
    read_after_write(main, main)  # operators are loaded by their first call
    latch()
    with pytest.raises(UnsynchronizedAccessError), sanitizer.enabled():
        read_after_write(main, side)


def test_program_continues_after_a_report(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        x = new(5)
        with side, pytest.raises(UnsynchronizedAccessError):
            x.mul_(2)
        side.wait_stream(main)
        with side:
            y = x * 3
        main.wait_stream(side)
        assert y.tolist() == [3.0] * 5


def test_pinned_memory_that_ended_is_forgotten(main: torch.Stream) -> None:
    with sanitizer.enabled():
        analysis = sanitizer._mode._analysis
        for size in range(1, 200):  # and no wait
            torch.ones(size).pin_memory().to(DEVICE, non_blocking=True)
        assert len(analysis._host_memory._cells) < 10


def test_report_keeps_no_tensor(main: torch.Stream, side: torch.Stream) -> None:
    gc.disable()
    try:
        with sanitizer.enabled():
            for program in (read_after_write, use_by_another_stream):
                before = torch.accelerator.memory_allocated()
                with pytest.raises(UnsynchronizedAccessError) as found:
                    program(main, side)
                del found
                assert torch.accelerator.memory_allocated() == before
    finally:
        gc.enable()


def test_backward_is_named_by_the_line_that_called_it(
    main: torch.Stream, side: torch.Stream
) -> None:
    weight = new(5).requires_grad_()

    def backward() -> None:
        (weight * weight).sum().backward()
        with side:
            assert weight.grad is not None
            side.wait_stream(main)
            weight.grad.zero_()  # first
        (weight * weight).sum().backward()  # second

    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        backward()
    assert found.value.previous.line == line_of(backward, "first")
    assert found.value.current.line == line_of(backward, "second")


def test_tensors_that_end_as_garbage_in_backward_do_not_deadlock(
    output: Output,
) -> None:
    source = """
import gc, torch
torch.openreg.sanitizer.enable()
weight = torch.ones(5, device="openreg", requires_grad=True)
def leave_garbage(gradient):
    cycle = [gradient.clone()]
    cycle.append(cycle)
weight.register_hook(leave_garbage)
for threshold in range(1, 201):  # so that it is collected here and there
    gc.set_threshold(threshold)
    (weight * weight).sum().backward()
print(weight.grad.tolist())
"""
    assert output(source) == str([400.0] * 5)


def test_backward_on_the_streams_of_forward_is_not_reported(
    main: torch.Stream, side: torch.Stream
) -> None:
    def forward_and_backward() -> list[float]:
        weight = new(5).requires_grad_()
        copy = weight.clone()
        side.wait_stream(main)
        with side:
            half = copy * 2
        main.wait_stream(side)
        half.record_stream(main)
        (half * copy).sum().backward()
        assert weight.grad is not None
        return weight.grad.tolist()

    with sanitizer.enabled():
        assert forward_and_backward() == [4.0] * 5


def test_threads_that_start_meanwhile_are_seen(
    main: torch.Stream, side: torch.Stream
) -> None:
    found: list[UnsynchronizedAccessError] = []
    x = new(5)

    def use() -> None:
        try:
            with side:
                x.zero_()
        except UnsynchronizedAccessError as error:
            found.append(error)

    with sanitizer.enabled():
        x.add_(1)
        for _ in range(2):
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
    assert len(found) == 2  # a function that was not called does not order anything
    for error in found:
        assert error.current.line.endswith("x.zero_()")
        assert error.previous.line.endswith("x.add_(1)")
    assert threading.getprofile() is None


def test_many_threads_at_once_are_not_reported(side: torch.Stream) -> None:
    failures: list[BaseException] = []

    def compute() -> None:
        try:
            with torch.Stream(DEVICE):
                for size in range(1, 30):
                    x = new(size, size).requires_grad_()
                    (x @ x).relu().sum().backward()
        except BaseException as error:
            failures.append(error)
            raise

    with sanitizer.enabled():
        threads = [threading.Thread(target=compute) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_thread_outlives_the_sanitizer(main: torch.Stream, side: torch.Stream) -> None:
    go, results = threading.Event(), []

    def use() -> None:
        go.wait()
        read_after_write(main, side)
        results.append("done")

    with sanitizer.enabled():
        thread = threading.Thread(target=use)
        thread.start()
    go.set()
    thread.join()
    assert results == ["done"]


def test_profiler_of_threads_is_kept(main: torch.Stream) -> None:
    seen: list[str] = []

    def profile(frame: object, event: str, arg: object) -> None:
        seen.append(event)

    threading.setprofile(profile)
    try:
        with sanitizer.enabled():
            thread = threading.Thread(target=lambda: new(3).sum())
            thread.start()
            thread.join()
        assert threading.getprofile() is profile
        assert "call" in seen
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]
    assert sys.getprofile() is None
