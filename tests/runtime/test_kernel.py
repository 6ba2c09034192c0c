# SPDX-License-Identifier: BSD-3-Clause
"""Python callables as kernels: the GIL, failures, lifetimes."""

from __future__ import annotations

import ctypes
import threading
import weakref

import pytest

import openreg_runtime as runtime


class Thing:
    """An object that supports weak references."""


def test_exception_is_raised_once_at_the_next_wait() -> None:
    stream = runtime.Stream()
    ran = []
    stream.launch(lambda: [][1])
    stream.launch(ran.append, 1)
    with pytest.raises(runtime.OpenRegError) as caught:
        stream.synchronize()
    assert "IndexError: list index out of range" in str(caught.value)
    assert caught.value.name == "orErrorLaunchFailure"
    assert caught.value.code == 8
    assert ran == []  # the work behind the failure was dropped
    stream.launch(ran.append, 2)
    stream.synchronize()
    assert ran == [2]


def test_query_raises_the_failure_and_leaves_it() -> None:
    stream = runtime.Stream()
    event = runtime.Event()
    stream.launch(lambda: 1 / 0)
    event.record(stream)

    def query_until_idle() -> None:
        while not stream.query():
            pass

    for _ in range(2):
        with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
            event.synchronize()
        with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
            event.query()
        with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
            query_until_idle()
    with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
        stream.synchronize()


def test_freeing_memory_does_not_swallow_a_failure() -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(16)
    stream.launch(lambda: 1 / 0)
    del block
    with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
        stream.synchronize()


def test_exception_without_text_is_reported_by_its_type() -> None:
    stream = runtime.Stream()

    def kernel() -> None:
        raise KeyError

    stream.launch(kernel)
    with pytest.raises(runtime.OpenRegError, match=r"KeyError$"):
        stream.synchronize()


@pytest.mark.differs_in_process("kernels", run=False)
def test_kernel_reaches_device_memory() -> None:
    stream = runtime.Stream(1)
    block = runtime.Buffer(8, device=1)
    stream.launch(lambda: ctypes.memset(block.kernel_address, 7, block.size))
    out = bytearray(8)
    block.copy_to(out, stream)
    assert out == bytes([7] * 8)


def test_current_device_in_a_kernel_is_that_of_its_stream() -> None:
    seen = []
    stream = runtime.Stream(1)
    stream.launch(lambda: seen.append(runtime.current_device()))
    stream.launch(runtime.set_device, 0)
    stream.synchronize()
    assert seen == [runtime.Device(1)]
    assert runtime.current_device() == runtime.Device(0)


def test_arguments_are_released_before_the_wait_returns() -> None:
    stream = runtime.Stream()
    thing = Thing()
    reference = weakref.ref(thing)
    stream.launch(lambda _: None, thing)
    del thing
    stream.synchronize()
    assert reference() is None


def test_host_function_runs_in_the_order_of_the_stream() -> None:
    stream = runtime.Stream()
    order: list[str] = []
    stream.launch(order.append, "kernel")
    stream.launch_host(order.append, "function")
    stream.launch(order.append, "kernel")
    stream.synchronize()
    assert order == ["kernel", "function", "kernel"]


def test_exception_in_a_host_function_is_raised_once() -> None:
    stream = runtime.Stream()
    stream.launch_host(lambda: 1 / 0)
    with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError") as caught:
        stream.synchronize()
    assert caught.value.name == "orErrorLaunchFailure"
    stream.synchronize()


def test_arguments_of_a_host_function_are_released_with_it() -> None:
    stream = runtime.Stream()
    thing = Thing()
    reference = weakref.ref(thing)
    stream.launch_host(lambda _: None, thing)
    del thing
    stream.synchronize()
    assert reference() is None


def test_last_reference_to_a_buffer_may_go_on_the_stream(latch) -> None:
    device = runtime.Device(0)
    stream = runtime.Stream(0)
    before = device.free_memory
    held = latch(stream)
    stream.launch(lambda _: None, runtime.Buffer(1024, device))
    assert device.free_memory == before - 1024
    held.release()
    stream.synchronize()
    while device.free_memory != before:  # another thread frees it
        device.synchronize()


def test_kernel_may_delete_a_buffer() -> None:
    device = runtime.Device(0)
    stream = runtime.Stream(0)
    before = device.free_memory
    blocks = [runtime.Buffer(1024, device)]
    stream.launch(blocks.clear)
    stream.synchronize()
    while device.free_memory != before:
        device.synchronize()


@pytest.mark.parametrize("launch", ["launch", "launch_host"])
def test_kernel_may_not_wait_for_its_own_stream(launch: str) -> None:
    stream = runtime.Stream()
    getattr(stream, launch)(stream.synchronize)
    with pytest.raises(runtime.OpenRegError, match="cannot wait for its own stream"):
        stream.synchronize()


def test_last_reference_to_a_pinned_buffer_may_go_on_the_stream() -> None:
    stream = runtime.Stream()
    stream.launch(lambda _: None, runtime.PinnedBuffer(1024))
    stream.synchronize()
    # The fixture no_leak waits for the thread that frees it.


def test_kernel_may_launch_and_wait_elsewhere() -> None:
    outer, inner = runtime.Stream(0), runtime.Stream(1)
    order: list[str] = []

    def kernel() -> None:
        inner.launch(order.append, "inner")
        inner.synchronize()
        order.append("outer")

    outer.launch(kernel)
    outer.synchronize()
    assert order == ["inner", "outer"]


def test_every_wait_releases_the_gil(latch) -> None:
    """Each wait ends only if another Python thread can run."""
    stream = runtime.Stream(0)
    event = runtime.Event()
    pinned = runtime.PinnedBuffer(8)

    def waits():
        yield stream.synchronize
        yield event.synchronize
        yield runtime.Device(0).synchronize
        yield runtime.synchronize
        yield lambda: runtime.Buffer(8, 0)  # freed immediately
        yield lambda: runtime.PinnedBuffer(8)
        yield lambda: runtime.Buffer(8, 0).copy_to(bytearray(8), stream)
        yield lambda: runtime.Buffer(8, 0).copy_from(pinned, stream)

    for wait in waits():
        held = latch(stream)
        event.record(stream)
        with held.released_by_a_thread():
            wait()
        stream.synchronize()


def test_many_threads_on_one_stream_lose_nothing() -> None:
    stream = runtime.Stream()
    counts = [0]

    def kernel() -> None:
        counts[0] += 1

    def work() -> None:
        for i in range(200):
            stream.launch(kernel)
            if i % 20 == 0:
                stream.synchronize()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.synchronize()
    assert counts == [1600]


def test_ctrl_c_in_a_kernel_is_raised_by_the_wait(run_script) -> None:
    done = run_script(
        """
        import signal
        import sys

        import openreg_runtime as runtime

        # A shell that starts the tests in the background ignores the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def interrupted():
            signal.raise_signal(signal.SIGINT)
            for _ in range(1_000_000):
                pass
            ran.append("to its end")

        ran = []
        stream = runtime.Stream()
        try:
            stream.launch(interrupted)
        except KeyboardInterrupt as interrupt:
            frames = []
            traceback = interrupt.__traceback__
            while traceback is not None:
                frames.append(traceback.tb_frame.f_code.co_name)
                traceback = traceback.tb_next
            print(frames)
        stream.launch(ran.append, "next")
        stream.synchronize()
        print(ran, sys.getrefcount(interrupted))
        """,
        OPENREG_LAUNCH_BLOCKING="1",  # the main thread runs the kernel, in its wait
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split("\n") == ["['<module>', 'interrupted']", "['next'] 2", ""]


def test_keyboard_interrupt_of_a_kernel_on_a_worker_is_its_failure() -> None:
    stream = runtime.Stream()
    event = runtime.Event()
    ended = threading.Event()

    def fails() -> None:
        ended.set()
        raise KeyboardInterrupt("of the kernel itself")

    stream.launch(fails)
    event.record(stream)
    ended.wait()  # on the worker: this thread runs no kernel here
    with pytest.raises(runtime.OpenRegError, match="KeyboardInterrupt: of the kernel"):
        event.synchronize()
    with pytest.raises(runtime.OpenRegError, match="KeyboardInterrupt: of the kernel"):
        stream.synchronize()
