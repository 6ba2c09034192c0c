# SPDX-License-Identifier: BSD-3-Clause
"""The error of a kernel follows its data: every read of a result raises."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F

from support.failing_training import FIRST, PROGRAMS, SECOND, forget_failures
from support.latches import Latches
from support.programs import Program

Failed = Callable[[], torch.Tensor]
TESTS = str(Path(__file__).parents[1])
NO_GRAPHS = pytest.mark.differs_in_process("graphs", run=False)


@pytest.fixture
def failed(latch: Latches) -> Iterator[Failed]:
    """Returns a result on the current stream whose kernel fails after a while."""

    def make() -> torch.Tensor:
        table = torch.ones(10, 4, device=FIRST)
        good, bad = (torch.full((8,), index, device=FIRST) for index in (1, 999))
        F.embedding(good, table)  # caches the shape of the result
        hold = latch(current())
        result = F.embedding(bad, table)
        hold.release()
        return result

    yield make
    forget_failures()


def current(device: str = FIRST) -> torch.Stream:
    return torch.accelerator.current_stream(device)


def recorded(stream: torch.Stream) -> torch.Event:
    event = torch.Event(FIRST)
    event.record(stream)
    return event


def pinned_copy(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(x.shape, pin_memory=True).copy_(x, non_blocking=True)


# ---- ways to read a result, each of which has to raise


def item(failed: Failed) -> Any:
    return failed().sum().item()


def cpu(failed: Failed) -> Any:
    return failed().cpu()


def text(failed: Failed) -> Any:
    return repr(failed())


def equal(failed: Failed) -> Any:
    result = failed()
    return torch.equal(result, torch.zeros_like(result))


def nonzero(failed: Failed) -> Any:
    return failed().nonzero().shape


def operator_on_the_calling_thread(failed: Failed) -> Any:
    result = failed()
    # The next operator is small and waits its turn.
    return result.mul_(2).max().item()


def item_on_the_other_device(failed: Failed) -> Any:
    return failed().to(SECOND).sum().item()


def cpu_from_the_other_device(failed: Failed) -> Any:
    return failed().to(SECOND).cpu()


def bool_on_the_other_device(failed: Failed) -> Any:
    return bool((failed().to(SECOND) > 0).any())


def save_from_the_other_device(failed: Failed) -> Any:
    return torch.save(failed().to(SECOND), io.BytesIO())


def synchronize_the_other_device(failed: Failed) -> Any:
    failed().to(SECOND)
    return torch.accelerator.synchronize(SECOND)


def there_and_back(failed: Failed) -> Any:
    result = failed().to(SECOND)
    with torch.Stream(FIRST):
        return result.to(FIRST).sum().item()


def event_synchronize(failed: Failed) -> Any:
    host = pinned_copy(failed())
    recorded(current()).synchronize()
    return host


def event_query(failed: Failed) -> Any:
    host = pinned_copy(failed())
    event = recorded(current())
    while not event.query():
        pass
    return host


def stream_query(failed: Failed) -> Any:
    host = pinned_copy(failed())
    while not current().query():
        pass
    return host


def event_of_the_other_device(failed: Failed) -> Any:
    host = pinned_copy(failed().to(SECOND))
    event = torch.Event(SECOND)
    event.record(current(SECOND))
    event.synchronize()
    return host


def elapsed_time(failed: Failed) -> Any:
    start, end = (torch.Event(FIRST, enable_timing=True) for _ in range(2))
    start.record(current())
    failed()
    end.record(current())
    while True:
        try:
            return start.elapsed_time(end)
        except RuntimeError as error:
            if "must be completed" not in str(error):
                raise


def wait_stream(failed: Failed) -> Any:
    result = failed()
    side = torch.Stream(FIRST)
    side.wait_stream(current())
    with side:
        return result.cpu()


def wait_event(failed: Failed) -> Any:
    result = failed()
    side = torch.Stream(FIRST)
    side.wait_event(recorded(current()))
    with side:
        return result.sum().item()


def chain_of_streams(failed: Failed) -> Any:
    result = failed()
    middle, last = torch.Stream(FIRST), torch.Stream(FIRST)
    middle.wait_stream(current())
    with middle:
        doubled = result * 2
    last.wait_stream(middle)
    with last:
        return doubled.sum().item()


def failure_on_a_side_stream(failed: Failed) -> Any:
    side = torch.Stream(FIRST)
    with side:
        result = failed()
    current().wait_stream(side)
    return result.sum().item()


def another_thread(failed: Failed) -> Any:
    result = failed()
    event = recorded(current())
    errors: list[BaseException] = []

    def read() -> None:
        side = torch.Stream(FIRST)
        side.wait_event(event)
        try:
            with side:
                result.sum().item()
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    for error in errors:
        raise error


def backward_on_a_side_stream(failed: Failed) -> Any:
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return failed() * gradient

    x = torch.ones(8, 4, device=FIRST, requires_grad=True)
    side = torch.Stream(FIRST)
    side.wait_stream(current())
    with side:
        loss = Broken.apply(x).sum()
    current().wait_stream(side)
    loss.backward()
    assert x.grad is not None
    return x.grad.sum().item()


def model_on_two_devices(failed: Failed) -> Any:
    layer = nn.Linear(4, 2).to(SECOND)
    loss = layer(failed().to(SECOND)).square().mean()
    loss.backward()
    torch.optim.SGD(layer.parameters(), 0.1).step()
    return loss.item()


def upload_behind_it(failed: Failed) -> Any:
    failed()
    uploaded = torch.ones(8, 4).to(FIRST)
    with torch.Stream(FIRST):  # the host has waited for the upload
        return uploaded.sum().item()


def graph_input(failed: Failed) -> Any:
    static = torch.zeros(8, 4, device=FIRST)
    with torch.Stream(FIRST):
        graph = torch.accelerator.Graph()
        with graph:
            result = static + 1
        static.copy_(failed())
        graph.replay()
        event = recorded(current())
    current().wait_event(event)
    return result.to(SECOND).sum().item()


def kernel_of_a_graph(failed: Failed) -> Any:
    table = torch.ones(10, 4, device=FIRST)
    indices = torch.zeros(8, dtype=torch.long, device=FIRST)
    F.embedding(indices, table)
    side = torch.Stream(FIRST)
    side.wait_stream(current())
    with side:
        graph = torch.accelerator.Graph()
        with graph:
            result = F.embedding(indices, table) + 1
        indices.fill_(999)
        graph.replay()
    current().wait_stream(side)
    return result.sum().item()


WAYS: list[Any] = [
    item,
    cpu,
    text,
    equal,
    nonzero,
    operator_on_the_calling_thread,
    item_on_the_other_device,
    cpu_from_the_other_device,
    bool_on_the_other_device,
    save_from_the_other_device,
    synchronize_the_other_device,
    there_and_back,
    event_synchronize,
    event_query,
    stream_query,
    event_of_the_other_device,
    elapsed_time,
    wait_stream,
    wait_event,
    chain_of_streams,
    failure_on_a_side_stream,
    another_thread,
    backward_on_a_side_stream,
    model_on_two_devices,
    upload_behind_it,
    pytest.param(graph_input, marks=NO_GRAPHS),
    pytest.param(kernel_of_a_graph, marks=NO_GRAPHS),
]


@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
def test_result_of_a_failed_kernel_cannot_be_read(
    read: Callable[[Failed], Any], failed: Failed
) -> None:
    with pytest.raises(RuntimeError, match="index out of range"):
        read(failed)


# ---- unaffected work


def test_stream_that_waits_for_nothing_of_it_is_not_affected(failed: Failed) -> None:
    x = torch.arange(8.0, device=FIRST)
    side = torch.Stream(FIRST)
    side.wait_stream(current())
    failed()
    with side:
        assert x.sum().item() == 28


def test_stream_works_again_once_the_error_was_raised(failed: Failed) -> None:
    x = torch.arange(2.0**18, device=FIRST)  # so large that work is enqueued
    failed()
    x.add_(1)  # dropped
    with pytest.raises(RuntimeError, match="index out of range"):
        torch.accelerator.synchronize(FIRST)
    assert x[:8].tolist() == list(range(8))
    assert x.add_(1)[:8].tolist() == list(range(1, 9))


def test_event_is_good_again_once_it_is_recorded_after_the_error(
    failed: Failed,
) -> None:
    event = torch.Event(FIRST)
    failed()
    event.record(current())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="index out of range"):
            event.synchronize()
    with pytest.raises(RuntimeError, match="index out of range"):
        current().synchronize()
    event.record(current())
    event.synchronize()
    assert event.query()


def test_error_that_reached_both_devices_is_raised_once_by_each(
    failed: Failed,
) -> None:
    failed().to(SECOND)
    for device in (FIRST, SECOND):
        with pytest.raises(RuntimeError, match="index out of range"):
            torch.accelerator.synchronize(device)
        torch.accelerator.synchronize(device)


def test_loss_of_a_device_fails_streams_of_others_that_wait_for_it(
    interpreter: Program,
) -> None:
    ended = interpreter(
        f"""
        import sys

        sys.path.insert(0, {TESTS!r})

        import torch

        import openreg_runtime as runtime
        from support.latches import Latch

        x = torch.ones(1000, device="openreg:0")
        latch = Latch(runtime.Device(0).default_stream)
        y = x.mul_(2).to("openreg:1", non_blocking=True)
        runtime.Device(0).lose()
        latch.release()
        try:
            print("read", y.sum().item())
        except torch.AcceleratorError as error:
            print("orErrorDeviceLost" in str(error))
        print(torch.ones(2, device="openreg:1").sum().item())
        """
    )
    assert ended.stdout == "True\n2.0\n", ended


@pytest.mark.differs_in_process("shared memory", run=False)
@pytest.mark.parametrize("on_side_stream", [False, True])
def test_tensor_that_is_sent_leaves_the_error_to_its_program(
    failed: Failed, on_side_stream: bool
) -> None:
    stream = torch.Stream(FIRST) if on_side_stream else current()
    here, there = mp.Pipe()
    queue = mp.get_context("spawn").Queue()
    with stream:
        result = failed()
        with pytest.raises(RuntimeError, match="index out of range"):
            here.send(result)
        queue.put(result)  # on a thread of the queue
        with pytest.raises(RuntimeError, match=r"could not share it: .*out of range"):
            queue.get(timeout=30)
        with pytest.raises(RuntimeError, match="index out of range"):
            result.sum().item()
    assert not there.poll()
    queue.close()
    queue.join_thread()
    forget_failures()
    here.send(torch.ones(2, device=FIRST))
    assert there.recv().tolist() == [1, 1]


# ---- sweeps


@pytest.mark.parametrize("inline_bytes", ["0", "65536"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[NO_GRAPHS] * (n == "graph")) for n in PROGRAMS]
)
@pytest.mark.timeout(180)
def test_training_raises_wherever_a_launch_fails(
    name: str, inline_bytes: str, interpreter: Program
) -> None:
    ended = interpreter(
        f"""
        import sys

        sys.path.insert(0, {TESTS!r})

        from support.failing_training import sweep

        launches, raised, silent = sweep({name!r})
        print(launches > 20, raised >= launches - 6, silent)
        """,
        OPENREG_INLINE_BYTES=inline_bytes,
    )
    assert ended.stdout == "True True []\n", ended
