# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer finds uses of memory without an order, with their lines; no others."""

from __future__ import annotations

import functools
import gc
import inspect
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError, UseAfterFreeError
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
)

from openreg_runtime import Device

Interpreter = Callable[..., subprocess.CompletedProcess[str]]
Output = Callable[..., str]
Program = Callable[[torch.Stream, torch.Stream], object]

DEVICE = "openreg:0"


@pytest.fixture
def main() -> torch.Stream:
    return torch.accelerator.current_stream()


@pytest.fixture
def side() -> torch.Stream:
    return torch.Stream(DEVICE)


@pytest.fixture(autouse=True)
def cache_is_empty() -> Iterator[None]:
    """Each test allocates from the same state."""
    gc.collect()
    torch.accelerator.empty_cache()
    yield
    assert not sanitizer.is_enabled()
    assert _get_current_dispatch_mode() is None


new = functools.partial(torch.ones, device=DEVICE)


def line_of(program: Callable[..., object], mark: str) -> str:
    """Returns the line of a function that has a comment, as a report names it."""
    lines, first = inspect.getsourcelines(program)
    (offset,) = (i for i, line in enumerate(lines) if f"# {mark}" in line)
    return f"{__file__}:{first + offset}: {lines[offset].strip()}"


# ---- what it finds: the lines with comments


def write_after_write(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.empty(7, device=DEVICE)
    x.fill_(1)  # first
    with side:
        x.zero_()  # second


def read_after_write(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)  # first
    with side:
        x + 1  # second


def write_after_read(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        y = x * 2  # first
    x.add_(y.shape[0])  # second


def wait_for_an_event_that_came_before(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    event = main.record_event()
    x.mul_(2)  # first
    side.wait_event(event)
    with side:
        x.sum()  # second


def part_of_a_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    side.wait_stream(main)
    x[5:] = 3  # first
    with side:
        x[2:6].sum()  # second


def parts_with_gaps(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    side.wait_stream(main)
    x[:, :5].zero_()  # first
    with side:
        x[:, 4:].add_(1)  # second


def list_of_tensors(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(3), new(4)
    side.wait_stream(main)
    torch._foreach_mul_([x, y], 2)  # first
    with side:
        torch._foreach_add([y], 1)  # second


def argument_for_the_result(main: torch.Stream, side: torch.Stream) -> None:
    x, result = new(5), torch.empty(5, device=DEVICE)
    side.wait_stream(main)
    torch.exp(x, out=result)  # first
    with side:
        result.sum()  # second


def sparse_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.eye(4, device=DEVICE)
    x = x.to_sparse()  # first
    with side:
        x * 2  # second


def jagged_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.nested.nested_tensor_from_jagged(
        new(5, 2), torch.tensor([0, 2, 5]).to(DEVICE)
    )
    side.wait_stream(main)
    y = x * 2  # first
    with side:
        y + 1  # second


def another_device(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.ones(3, device="openreg:1")  # first
    torch.openreg.synchronize(0)
    with torch.Stream("openreg:1"):
        x + 1  # second


def copy_within_the_device(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(9), new(9)
    side.wait_stream(main)
    with side:
        y.copy_(x, non_blocking=True)  # first
    x.zero_()  # second


def host_reads_before_a_copy_is_done(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.zeros(6, pin_memory=True)
    host.copy_(new(6), non_blocking=True)  # first
    side.synchronize()
    host.sum()  # second


def host_reads_a_new_tensor(main: torch.Stream, side: torch.Stream) -> None:
    host = new(6).to("cpu", non_blocking=True)  # first
    host[2].item()  # second


def host_writes_before_a_copy_is_done(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.ones(6).pin_memory()
    x = host.to(DEVICE, non_blocking=True)  # first
    host.zero_()  # second
    x.sum()


def copies_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        host = new(6).to("cpu", non_blocking=True)  # first
        host.reshape(2, 3).sum()  # second


def parts_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(3, 4).t()  # first
        with side:
            x.reshape(12)  # second


FOUND = [
    copies_in_inference_mode,
    parts_in_inference_mode,
    write_after_write,
    read_after_write,
    write_after_read,
    wait_for_an_event_that_came_before,
    part_of_a_tensor,
    parts_with_gaps,
    list_of_tensors,
    argument_for_the_result,
    sparse_tensor,
    jagged_tensor,
    another_device,
    copy_within_the_device,
    host_reads_before_a_copy_is_done,
    host_reads_a_new_tensor,
    host_writes_before_a_copy_is_done,
]


@pytest.mark.parametrize("program", FOUND, ids=lambda program: program.__name__)
def test_use_without_an_order_is_found_with_both_lines(
    program: Program, main: torch.Stream, side: torch.Stream
) -> None:
    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program(main, side)
    error = found.value
    assert not isinstance(error, UseAfterFreeError)
    assert error.previous.line == line_of(program, "first")
    assert error.current.line == line_of(program, "second")
    assert error.current.line in str(error)
    assert error.previous.line in str(error)


def test_report_names_operators_arguments_and_streams(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled(), side:
        with main:
            x = new(3)
        y = torch.empty_like(x)
        with pytest.raises(UnsynchronizedAccessError) as found:
            torch.sub(y, x)
    previous, current = found.value.previous, found.value.current
    assert previous.operator.startswith("aten::ones(")
    assert (previous.writes, previous.arguments) == (True, ("output",))
    assert previous.where == "the default stream of openreg:0"
    assert current.operator.startswith("aten::sub.Tensor(")
    assert (current.writes, current.arguments) == (False, ("other",))
    assert current.where == f"stream {side.stream_id} of openreg:0"
    assert found.value.address == x.data_ptr()
    assert found.value.allocated == previous.line
    for access in (previous, current):
        assert access.operator in str(found.value)
        assert access.where in str(found.value)


# ---- memory that is used again


def use_by_another_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(100)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    del x  # freed
    y = torch.empty(100, device=DEVICE)  # again
    y.zero_()  # second


def smaller_part_of_the_memory(main: torch.Stream, side: torch.Stream) -> None:
    x = new(15_000)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    del x  # freed
    y = new(14_000)  # again  # second
    y.sum()


def stream_that_waits_after_it_was_recorded(
    main: torch.Stream, side: torch.Stream
) -> None:
    x, other = new(100), torch.Stream(DEVICE)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    x.record_stream(other)
    del x  # freed
    other.wait_stream(side)
    y = torch.empty(100, device=DEVICE)  # again
    y.zero_()  # second


def memory_of_a_stream_used_by_another(main: torch.Stream, side: torch.Stream) -> None:
    x = new(100)  # allocated
    x.mul_(2)  # first
    del x  # freed
    y = torch.empty(100, device=DEVICE)  # again
    with side:
        y.zero_()  # second


@pytest.mark.parametrize(
    "program",
    [
        use_by_another_stream,
        smaller_part_of_the_memory,
        stream_that_waits_after_it_was_recorded,
        memory_of_a_stream_used_by_another,
    ],
    ids=lambda program: program.__name__,
)
def test_use_after_free_is_found_with_the_lines_of_its_memory(
    program: Program, main: torch.Stream, side: torch.Stream
) -> None:
    with pytest.raises(UseAfterFreeError) as found, sanitizer.enabled():
        program(main, side)
    error = found.value
    assert error.previous.line == line_of(program, "first")
    assert error.current.line == line_of(program, "second")
    assert error.previously_allocated == line_of(program, "allocated")
    assert error.freed == line_of(program, "freed")
    assert error.allocated == line_of(program, "again")
    by_record_stream = program is not memory_of_a_stream_used_by_another
    assert ("record_stream" in str(error)) == by_record_stream


# ---- what it does not report


def wait_of_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        x.add_(1)
    main.wait_stream(side)
    x.sum()


def wait_of_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_event(main.record_event())
    with side:
        x.zero_()


def wait_along_a_chain(main: torch.Stream, side: torch.Stream) -> None:
    third = torch.Stream("openreg:1")
    x = new(7)
    third.wait_stream(main)
    side.wait_stream(third)
    with side:
        x.zero_()


def wait_of_the_host_for_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    main.synchronize()
    with side:
        x.zero_()


def wait_of_the_host_for_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    main.record_event().synchronize()
    with side:
        x.zero_()


def wait_of_the_host_for_a_device(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    torch.accelerator.synchronize()
    with side:
        x.zero_()


def host_asks_for_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    while not main.query():
        pass
    with side:
        x.zero_()


def host_asks_for_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    event = main.record_event()
    while not event.query():
        pass
    with side:
        x.zero_()


def host_measures_time(main: torch.Stream, side: torch.Stream) -> None:
    start, end = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
    start.record(main)
    x = new(7)
    end.record(main)
    while not end.query():
        pass
    start.elapsed_time(end)
    with side:
        x.zero_()


def host_reads_a_value(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    x.sum().item()
    with side:
        x.zero_()


def copy_that_blocks(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.arange(5).to(DEVICE)
    with side:
        x.add_(1)
        y = x.cpu()
    x.zero_()
    y.sum()


def copy_to_the_host_and_a_wait(main: torch.Stream, side: torch.Stream) -> None:
    host = new(4).to("cpu", non_blocking=True)
    main.synchronize()
    host.sum()


def pinned_memory_in_turn(main: torch.Stream, side: torch.Stream) -> None:
    for n in range(20):
        host = torch.full((100,), n).pin_memory()
        host.to(DEVICE, non_blocking=True)


def copies_of_one_stream(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.zeros(6, pin_memory=True)
    for _ in range(3):
        host.copy_(new(6), non_blocking=True)
    host.copy_(new(6))
    host.sum()


def copy_between_devices(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.ones(5, device="openreg:1").to(DEVICE)
    y = torch.empty(5, device="openreg:1").copy_(x)
    x.zero_()
    y.add_(1)


def reads_on_both(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        x.sum()
    x.sum()


def different_halves(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    side.wait_stream(main)
    for half, other in ((x[:3], x[3:]), (x[:, :3], x[:, 3:]), (x.T[::2], x.T[1::2])):
        half.zero_()
        with side:
            other.add_(1)
        main.wait_stream(side)
        side.wait_stream(main)


def metadata_only(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    with side:
        torch.zeros_like(x), torch.empty_like(x), x.new_ones(3), x.view(-1).shape
        x.is_pinned(), x.detach(), x.expand(2, 6, 8), torch.Tensor.is_same_size(x, x)


def no_elements(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(0), new(3)[3:]
    with side:
        x.zero_(), y.zero_()


def recorded_stream(main: torch.Stream, side: torch.Stream) -> None:
    for _ in range(20):
        x = new(100)
        side.wait_stream(main)
        with side:
            x.sum()
        x.record_stream(side)


def wait_before_the_memory_is_used_again(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(100)
    side.wait_stream(main)
    with side:
        x.sum()
    del x
    y = torch.empty(100, device=DEVICE)
    main.wait_stream(side)
    y.zero_()


def memory_that_the_device_had_back(main: torch.Stream, side: torch.Stream) -> None:
    size = 6_000_000  # a segment of its own, whatever other tests have left
    address = new(size).data_ptr()
    torch.accelerator.empty_cache()
    with side:
        assert new(size).data_ptr() == address


def random_numbers(main: torch.Stream, side: torch.Stream) -> None:
    torch.rand(5, device=DEVICE)
    with side:
        torch.rand(5, device=DEVICE)


def numbers_of_the_host(main: torch.Stream, side: torch.Stream) -> None:
    two = torch.tensor(2.0)
    x = new(3) * two
    two.fill_(3)
    with side:
        new(3) * two
    x.sum()


def waits_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(5)
        x.to("cpu")
        with side:
            x.zero_()


def metadata_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(3, 4)
        with side:
            torch.empty(4, device=DEVICE).expand_as(x)


def argument_of_an_operator_that_was_not_called(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(5)
    with side, pytest.raises(UnsynchronizedAccessError):
        x.mul_(2)
    x.add_(1)


def tensors_without_memory(main: torch.Stream, side: torch.Stream) -> None:
    with FakeTensorMode():
        x = new(3) * 2
        with side, sanitizer.enabled():
            assert x.add_(new(3)).shape == (3,)


NOT_REPORTED = [
    waits_in_inference_mode,
    metadata_in_inference_mode,
    argument_of_an_operator_that_was_not_called,
    tensors_without_memory,
    wait_of_a_stream,
    wait_of_an_event,
    wait_along_a_chain,
    wait_of_the_host_for_a_stream,
    wait_of_the_host_for_an_event,
    wait_of_the_host_for_a_device,
    host_asks_for_a_stream,
    host_asks_for_an_event,
    host_measures_time,
    host_reads_a_value,
    copy_that_blocks,
    copy_to_the_host_and_a_wait,
    pinned_memory_in_turn,
    copies_of_one_stream,
    copy_between_devices,
    reads_on_both,
    different_halves,
    metadata_only,
    no_elements,
    recorded_stream,
    wait_before_the_memory_is_used_again,
    memory_that_the_device_had_back,
    random_numbers,
    numbers_of_the_host,
]


@pytest.mark.parametrize("program", NOT_REPORTED, ids=lambda program: program.__name__)
def test_program_with_an_order_is_not_reported(
    program: Program, main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        program(main, side)


def train(side: torch.Stream, *, record: bool, wait: bool) -> list[float]:
    """Prepares batches on a side stream and trains on the default one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    main = torch.accelerator.current_stream()
    losses = []
    for _ in range(6):
        batch = torch.randn(32, 8).pin_memory()
        # Probabilities, as no kernel fails for those that another overwrote.
        target = torch.rand(32, 4).softmax(1).pin_memory()
        with side:
            x = batch.to(DEVICE, non_blocking=True)
            y = target.to(DEVICE, non_blocking=True)
            x = (x - x.mean(0)) / x.std(0)
        if wait:
            main.wait_stream(side)
        if record:
            x.record_stream(main)
            y.record_stream(main)
        optimizer.zero_grad()
        with torch.autocast("openreg", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def test_training_with_two_streams_is_not_reported(side: torch.Stream) -> None:
    with sanitizer.enabled():
        losses = train(side, record=True, wait=True)
    assert losses == train(side, record=True, wait=True)


def test_training_without_record_stream_is_reported(side: torch.Stream) -> None:
    with pytest.raises(UseAfterFreeError, match="record_stream"), sanitizer.enabled():
        train(side, record=False, wait=True)


def test_training_without_a_wait_is_reported(side: torch.Stream) -> None:
    with pytest.raises(UnsynchronizedAccessError), sanitizer.enabled():
        train(side, record=True, wait=False)


# ---- when the sanitizer is on


def test_finding_does_not_depend_on_when_work_runs(
    main: torch.Stream, side: torch.Stream
) -> None:
    read_after_write(main, main)  # operators are loaded by their first call
    latch = threading.Event()
    Device(0).default_stream.launch(latch.wait)
    try:
        with pytest.raises(UnsynchronizedAccessError), sanitizer.enabled():
            read_after_write(main, side)
    finally:
        latch.set()


def test_program_goes_on_after_a_report(main: torch.Stream, side: torch.Stream) -> None:
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
    assert len(found) == 2  # what was not called orders nothing
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


def test_enabling_twice_is_enabling_once(
    main: torch.Stream, side: torch.Stream
) -> None:
    for _ in range(2):
        sanitizer.enable()
        sanitizer.enable()
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
        sanitizer.disable()
        assert not sanitizer.is_enabled()
        sanitizer.disable()
        read_after_write(main, side)


def test_blocks_in_blocks_end_with_the_last(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        x = new(4)
        with sanitizer.enabled():
            pass
        with pytest.raises(UnsynchronizedAccessError), side:
            x.zero_()
    sanitizer.enable()
    with sanitizer.enabled():
        sanitizer.disable()
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
    read_after_write(main, side)


def test_block_leaves_the_sanitizer_as_it_is_then(
    main: torch.Stream, side: torch.Stream
) -> None:
    sanitizer.enable()
    with sanitizer.enabled():
        sanitizer.disable()
    assert not sanitizer.is_enabled()
    assert _get_current_dispatch_mode() is None
    with sanitizer.enabled():
        sanitizer.enable()
    try:
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
    finally:
        sanitizer.disable()


def test_thread_leaves_what_another_disabled(
    main: torch.Stream, side: torch.Stream
) -> None:
    sanitizer.enable()
    thread = threading.Thread(target=sanitizer.disable)
    thread.start()
    thread.join()
    assert not sanitizer.is_enabled()
    read_after_write(main, side)
    sanitizer.disable()
    assert _get_current_dispatch_mode() is None


def test_block_ends_with_an_exception_of_the_program(
    main: torch.Stream, side: torch.Stream
) -> None:
    def fail() -> None:
        new(3).sum()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), sanitizer.enabled():
        fail()
    read_after_write(main, side)


def test_failed_operator_is_the_programs_error(main: torch.Stream) -> None:
    with sanitizer.enabled():
        with pytest.raises(RuntimeError, match="size"):
            new(3) + new(4)
        assert new(3).tolist() == [1.0] * 3


def test_disabling_below_another_mode_is_an_error() -> None:
    class Other(TorchDispatchMode):  # type: ignore[no-untyped-call]
        pass

    sanitizer.enable()
    try:
        with Other(), pytest.raises(RuntimeError, match="Other"):
            sanitizer.disable()
        assert sanitizer.is_enabled()
    finally:
        sanitizer.disable()


def test_work_before_it_was_enabled_is_unknown(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(4)
    with sanitizer.enabled(), side:
        x.zero_()


def test_nothing_is_installed_until_it_is_enabled(output: Output) -> None:
    source = """
import sys
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode
x = torch.ones(3, device="openreg")
print("torch.cuda._sanitizer" in sys.modules, _get_current_dispatch_mode())
print(sum(len(registry.callback_list) for name, registry
          in vars(torch.openreg._gpu_trace).items() if name.endswith("Callbacks")))
"""
    assert output(source).split() == ["False", "None", "0"]


USE = """
import torch
x = torch.ones(3, device="openreg")
with torch.Stream("openreg"):
    x.zero_()
"""


def test_environment_enables_it(interpreter: Interpreter) -> None:
    result = interpreter(USE, OPENREG_SANITIZER="1")
    assert result.returncode == 1
    error = "torch_openreg.openreg.sanitizer._errors.UnsynchronizedAccessError"
    assert re.search(f"^{re.escape(error)}: possible data race", result.stderr, re.M)
    assert "<string>:5" in result.stderr
    for off in ({}, {"OPENREG_SANITIZER": "0"}):
        assert interpreter(USE, **off).returncode == 0


def test_wrong_value_of_the_variable_is_named(interpreter: Interpreter) -> None:
    result = interpreter(USE, OPENREG_SANITIZER="yes")
    assert result.returncode == 1
    text = "environment variable OPENREG_SANITIZER='yes' is not valid: expected 0 or 1"
    assert text in result.stderr


def test_missing_mechanism_is_named(interpreter: Interpreter) -> None:
    source = """
import torch
try:
    torch.openreg.sanitizer.enable()
except RuntimeError as error:
    print(error)
print(torch.openreg.sanitizer.is_enabled())
"""
    result = interpreter(source, OPENREG_DISABLE="gpu_trace")
    assert result.stdout.splitlines() == [
        "the sanitizer needs the mechanism gpu_trace, which OPENREG_DISABLE leaves out",
        "False",
    ]


def test_forked_child_is_left_alone(output: Output) -> None:
    source = """
import os, torch
x = torch.ones(3, device="openreg").to("cpu", non_blocking=True)
child = os.fork()
if not child:
    torch.ones(4).sum()
    print(torch.openreg.sanitizer.is_enabled(), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert output(source, OPENREG_SANITIZER="1") == "False\n0"


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "del x, y, thread"])
def test_process_ends_with_work_pending(interpreter: Interpreter, ending: str) -> None:
    source = f"""
import threading, torch
x = torch.ones(300, 300, device="openreg", requires_grad=True)
y = torch.ones(1 << 18).pin_memory()
for _ in range(30):
    y.to("openreg", non_blocking=True)
    (x @ x).sum().backward()
thread = threading.Thread(target=lambda x=x: [(x @ x).sum() for _ in range(20)])
thread.start()
print("pending", flush=True)
{ending}
"""
    result = interpreter(source, OPENREG_SANITIZER="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "pending\n", "")
