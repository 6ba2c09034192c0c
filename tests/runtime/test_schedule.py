# SPDX-License-Identifier: BSD-3-Clause
"""Schedules: lazy runs only awaited work, and a seed determines one order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import openreg_runtime as runtime
from openreg_runtime import schedule
from openreg_runtime._C import get_schedule

SEEDS = range(8)
NAMES = ["lazy", *(f"random:{seed}" for seed in SEEDS)]


def order(name: str, wait: str = "last") -> str:
    """Returns the letters of three streams in the order of their kernels."""
    ran: list[str] = []
    with schedule(name):
        streams = [runtime.Stream() for _ in range(3)]
        for _ in range(6):
            for stream, letter in zip(streams, "abc", strict=True):
                stream.launch(ran.append, letter)
        if wait == "last":
            streams[-1].synchronize()
    return "".join(ran)


def test_lazy_runs_nothing_before_a_wait() -> None:
    ran: list[int] = []
    with schedule("lazy"):
        stream = runtime.Stream()
        stream.launch(ran.append, 1)
        stream.launch_host(ran.append, 2)
        time.sleep(0.05)
        assert ran == []
        assert not stream.query()
        stream.synchronize()
        assert ran == [1, 2]


def test_lazy_runs_only_the_awaited_stream() -> None:
    ran: list[str] = []
    with schedule("lazy"):
        one, other = runtime.Stream(), runtime.Stream(device=1)
        one.launch(ran.append, "one")
        other.launch(ran.append, "other")
        other.synchronize()
        assert ran == ["other"]
    assert ran == ["other", "one"]  # the end of the context waits


def test_lazy_runs_the_work_before_an_awaited_event_of_another_stream() -> None:
    ran: list[str] = []
    with schedule("lazy"):
        one, other, third = (runtime.Stream() for _ in range(3))
        event = runtime.Event()
        one.launch(ran.append, "before")
        event.record(one)
        one.launch(ran.append, "after")
        third.launch(ran.append, "third")
        other.wait_event(event)
        other.launch(ran.append, "other")
        other.synchronize()
        assert ran == ["before", "other"]


def test_lazy_runs_the_work_before_an_event_that_the_host_awaits() -> None:
    ran: list[str] = []
    with schedule("lazy"):
        stream, event = runtime.Stream(), runtime.Event()
        stream.launch(ran.append, "before")
        event.record(stream)
        stream.launch(ran.append, "after")
        event.synchronize()
        assert ran == ["before"]


def test_lazy_runs_earlier_work_before_a_synchronous_copy() -> None:
    ran: list[str] = []
    block = runtime.Buffer(4)
    with schedule("lazy"):
        runtime.Device(0).default_stream.launch(ran.append, "before")
        block.copy_from(b"abcd")
        assert ran == ["before"]


@pytest.mark.parametrize("name", NAMES)
def test_program_that_polls_makes_progress(name: str) -> None:
    with schedule(name):
        stream, event = runtime.Stream(), runtime.Event()
        for _ in range(3):
            stream.launch(int)
        event.record(stream)
        end = time.monotonic() + 30
        while not event.query():
            time.sleep(0.0001)
            assert time.monotonic() < end


@pytest.mark.parametrize("name", NAMES)
def test_host_that_waits_outside_of_the_library_is_not_held_up(name: str) -> None:
    with schedule(name):
        stream, ran = runtime.Stream(), threading.Event()
        stream.launch_host(ran.set)
        assert ran.wait(30)


@pytest.mark.parametrize("name", NAMES)
def test_kernel_that_waits_for_the_host_holds_up_no_other_stream(name: str) -> None:
    with schedule(name):
        blocked, free, gate = runtime.Stream(), runtime.Stream(), threading.Event()
        ran: list[int] = []
        blocked.launch(gate.wait, 60)
        free.launch(ran.append, 1)
        free.synchronize()
        assert ran == [1]
        gate.set()


@pytest.mark.parametrize("name", NAMES)
def test_kernel_may_wait_for_another_stream(name: str) -> None:
    ran: list[str] = []
    with schedule(name):
        outer, inner = runtime.Stream(), runtime.Stream()

        def kernel() -> None:
            inner.launch(ran.append, "inner")
            inner.synchronize()
            ran.append("outer")

        outer.launch(kernel)
        outer.synchronize()
    assert ran == ["inner", "outer"]


@pytest.mark.parametrize("name", NAMES)
def test_each_stream_keeps_its_order(name: str) -> None:
    ran: list[tuple[int, int]] = []
    with schedule(name):
        streams = [runtime.Stream(device=i % 2) for i in range(4)]
        for number in range(10):
            for index, stream in enumerate(streams):
                stream.launch(ran.append, (index, number))
    for index in range(4):
        assert [n for i, n in ran if i == index] == list(range(10))


@pytest.mark.parametrize("name", NAMES)
def test_graph_gives_the_same_result(name: str) -> None:
    ran: list[str] = []
    with schedule(name):
        one, other = runtime.Stream(), runtime.Stream()
        fork, join = runtime.Event(), runtime.Event()
        one.begin_capture()
        one.launch(ran.append, "a")
        fork.record(one)
        other.wait_event(fork)
        other.launch(ran.append, "b")
        join.record(other)
        one.wait_event(join)
        one.launch(ran.append, "c")
        graph = one.end_capture()
        graph.launch(one)
        graph.launch(one)
        one.synchronize()
    assert ran == list("abcabc")


def test_seed_gives_one_order_in_twenty_runs() -> None:
    for seed in SEEDS:
        assert len({order(f"random:{seed}") for _ in range(20)}) == 1, seed


def test_seeds_give_different_orders() -> None:
    assert len({order(f"random:{seed}") for seed in range(20)}) > 10


def test_ranks_draw_different_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = set()
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        found = {order("random:3") for _ in range(5)}
        assert len(found) == 1
        orders |= found
    assert len(orders) > 1


def test_error_of_a_kernel_reaches_the_wait() -> None:
    def fail() -> None:
        raise ValueError("wrong")

    with schedule("lazy"):
        stream = runtime.Stream()
        stream.launch(fail)
        with pytest.raises(runtime.OpenRegError, match="wrong"):
            stream.synchronize()


def test_wait_has_its_time_limit() -> None:
    gate = threading.Event()
    with schedule("lazy"):
        stream = runtime.Stream()
        stream.launch(gate.wait, 60)
        with (
            runtime.failures.wait_timeout(0.3),
            pytest.raises(runtime.OpenRegError, match="after 300 ms"),
        ):
            stream.synchronize()
        gate.set()


def test_full_stream_makes_room() -> None:
    count = 17000  # more than a stream holds
    ran: list[int] = []
    with schedule("lazy"):
        stream = runtime.Stream()
        for i in range(count):
            stream.launch(ran.append, i)
    assert ran == list(range(count))


@pytest.mark.parametrize("name", ["", "Lazy", "random", "random:", "random:-1", "x"])
def test_other_names_are_refused(name: str) -> None:
    expected = "expected eager, lazy, or random:SEED with a whole number"
    with pytest.raises(runtime.OpenRegError, match=expected), schedule(name):
        pass


def test_schedule_is_eager_again_after_an_exception() -> None:
    with pytest.raises(ValueError, match="of the block"), schedule("lazy"):
        raise ValueError("of the block")
    stream, ran = runtime.Stream(), threading.Event()
    stream.launch(ran.set)
    assert ran.wait(30)


def test_loop_that_polls_and_submits_ends() -> None:
    with schedule("lazy"):
        one, other = runtime.Stream(), runtime.Stream()
        one.launch(lambda: None)
        event = runtime.Event()
        event.record(one)
        deadline = time.monotonic() + 30
        while not event.query():
            other.launch(lambda: None)
            assert time.monotonic() < deadline


def test_error_of_one_device_leaves_no_work_on_another() -> None:
    def fail() -> None:
        raise ValueError("of the kernel")

    ran: list[int] = []

    def launch_on_both() -> None:
        with schedule("lazy"):
            runtime.Stream(0).launch(fail)
            runtime.Stream(1).launch(ran.append, 1)

    with pytest.raises(runtime.OpenRegError, match="ValueError: of the kernel"):
        launch_on_both()
    assert ran == [1]
    assert get_schedule() == "eager"


def test_schedule_changes_only_while_streams_are_idle() -> None:
    from openreg_runtime._C import set_schedule

    gate, stream = threading.Event(), runtime.Stream()
    stream.launch(gate.wait, 60)
    with pytest.raises(runtime.OpenRegError, match="streams have pending work"):
        set_schedule("lazy")
    gate.set()
    stream.synchronize()


@pytest.mark.parametrize("name", ["later", "random:x"])
def test_environment_is_checked(run_python: Callable[..., object], name: str) -> None:
    ended = run_python(
        "import openreg_runtime; openreg_runtime.Device(0)", OPENREG_SCHEDULE=name
    )
    assert f"OPENREG_SCHEDULE='{name}' is not valid: expected eager" in ended.stderr


def test_environment_chooses_the_schedule(run_python: Callable[..., object]) -> None:
    ended = run_python(
        """
        import time
        from openreg_runtime import Stream
        ran = []
        stream = Stream()
        stream.launch(ran.append, 1)
        time.sleep(0.05)
        print(ran)
        """,
        OPENREG_SCHEDULE="lazy",
    )
    assert ended.stdout == "[]\n", ended.stderr


def test_blocking_launches_accept_only_eager(run_python: Callable[..., object]) -> None:
    ended = run_python(
        "import openreg_runtime; openreg_runtime.Device(0)",
        OPENREG_SCHEDULE="lazy",
        OPENREG_LAUNCH_BLOCKING="1",
    )
    assert "expected eager with OPENREG_LAUNCH_BLOCKING=1" in ended.stderr
