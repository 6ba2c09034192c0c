# SPDX-License-Identifier: BSD-3-Clause
"""Blocks and events shared by two processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator

import pytest

import openreg_runtime as runtime


class Child:
    """A Python process that exchanges lines with the test.

    The script uses ``say(text)`` and ``hear()``.
    """

    PRELUDE = """
        import sys
        import openreg_runtime as runtime

        def say(text):
            print(text, flush=True)

        def hear():
            return sys.stdin.readline().rstrip()
    """

    def __init__(self, source: str) -> None:
        program = textwrap.dedent(self.PRELUDE) + textwrap.dedent(source)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, text: str) -> None:
        """Sends a line to the process."""
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """Receives a line; empty once the process has ended."""
        return self._process.stdout.readline().rstrip()

    def kill(self) -> None:
        """Kills the process."""
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        """Waits for the end and returns the exit status."""
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()


@pytest.fixture
def child() -> Iterator[Callable[[str], Child]]:
    """Returns a function that starts processes, which must succeed unless the test ends
    them."""
    made: list[Child] = []

    def make(source: str) -> Child:
        made.append(Child(source))
        return made[-1]

    yield make
    assert [each.end() for each in made] in ([0], [-9])


@pytest.mark.differs_in_process("shared memory", run=False)
def test_block_is_shared_both_ways(child) -> None:
    block = runtime.Buffer(1000, device=1)
    block.fill(1)
    other = child(
        """
        block = runtime.Buffer.from_ipc(bytes.fromhex(hear()))
        out = bytearray(block.size)
        block.copy_to(out)
        say(f"{block!r} {set(out)} {runtime.resource_usage().ipc_mappings}")
        block.fill(2)
        del block
        say(runtime.resource_usage().ipc_mappings)
        """
    )
    handle = block.ipc_handle()
    assert (type(handle), len(handle)) == (bytes, 64)
    other.say(handle.hex())
    assert other.hear() == "Buffer(size=1000, device=1) {1} 1"
    assert other.hear() == "0"
    out = bytearray(1000)
    block.copy_to(out)
    assert set(out) == {2}


@pytest.mark.differs_in_process("shared memory", run=False)
def test_block_that_is_freed_while_it_is_open_reaches_no_later_one(child) -> None:
    block = runtime.Buffer(1000)
    other = child(
        """
        block = runtime.Buffer.from_ipc(bytes.fromhex(hear()))
        say("open")
        hear()
        block.fill(2)
        say("written")
        """
    )
    other.say(block.ipc_handle().hex())
    assert other.hear() == "open"
    del block
    later = runtime.Buffer(1000)
    later.fill(1)
    other.say("write")
    assert other.hear() == "written"
    out = bytearray(1000)
    later.copy_to(out)
    assert set(out) == {1}


@pytest.mark.differs_in_process("shared memory", run=False)
def test_kernel_reaches_the_block_of_another_process(child) -> None:
    block = runtime.Buffer(64)
    other = child(
        """
        import ctypes
        block = runtime.Buffer.from_ipc(bytes.fromhex(hear()))
        stream = runtime.Stream()
        stream.launch(ctypes.memset, block.kernel_address, 3, block.size)
        stream.synchronize()
        say("done")
        """
    )
    other.say(block.ipc_handle().hex())
    assert other.hear() == "done"
    out = bytearray(64)
    block.copy_to(out)
    assert set(out) == {3}


@pytest.mark.differs_in_process("shared memory", run=False)
def test_event_orders_the_work_of_two_processes(child, latch) -> None:
    block = runtime.Buffer(8)
    event = runtime.Event(interprocess=True)
    other = child(
        """
        block = runtime.Buffer.from_ipc(bytes.fromhex(hear()))
        event = runtime.Event.from_ipc(bytes.fromhex(hear()))
        stream = runtime.Stream()
        stream.wait_event(event)
        pinned = runtime.PinnedBuffer(8)
        block.copy_to(pinned, stream)
        say(f"{event.query()} {stream.query()}")
        stream.synchronize()
        say(f"{bytes(pinned)} {event.query()}")
        """
    )
    stream = runtime.Stream()
    held = latch(stream)
    block.fill(65, stream)
    event.record(stream)
    other.say(block.ipc_handle().hex())
    other.say(event.ipc_handle().hex())
    assert other.hear() == "False False"
    held.release()
    assert other.hear() == "b'AAAAAAAA' True"


def test_wait_for_an_event_of_another_process_releases_the_gil(child) -> None:
    """The other process continues only after a signal from a thread of this one."""
    other = child(
        """
        import threading
        event = runtime.Event(interprocess=True)
        gate = threading.Event()
        stream = runtime.Stream()
        stream.launch(gate.wait)
        event.record(stream)
        say(event.ipc_handle().hex())
        hear()
        gate.set()
        hear()
        """
    )

    event = runtime.Event.from_ipc(bytes.fromhex(other.hear()))
    assert not event.query()
    thread = threading.Thread(target=other.say, args=["go on"])
    thread.start()
    event.synchronize()
    thread.join()
    assert event.query()
    other.say("end")


def test_wait_ends_when_the_process_that_recorded_ends(child) -> None:
    other = child(
        """
        import threading
        event = runtime.Event(interprocess=True)
        stream = runtime.Stream()
        stream.launch(threading.Event().wait)
        event.record(stream)
        say(event.ipc_handle().hex())
        hear()
        """
    )
    event = runtime.Event.from_ipc(bytes.fromhex(other.hear()))
    assert not event.query()
    other.kill()
    with pytest.raises(runtime.OpenRegError) as caught:
        event.synchronize()
    assert caught.value.name == "orErrorUnknown"


both_kinds = pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            "runtime.Buffer(8)",
            marks=pytest.mark.differs_in_process("shared memory", run=False),
        ),
        "runtime.Event(interprocess=True)",
    ],
)


@both_kinds
def test_handle_of_a_process_that_is_gone_is_refused(child, make: str) -> None:
    other = child(
        f"""
        thing = {make}
        say(type(thing).__name__)
        say(thing.ipc_handle().hex())
        hear()
        """
    )
    kind, handle = getattr(runtime, other.hear()), bytes.fromhex(other.hear())
    other.kill()
    with pytest.raises(runtime.OpenRegError) as caught:
        kind.from_ipc(handle)
    assert caught.value.name == "orErrorInvalidValue"


@both_kinds
def test_handle_of_this_process_is_refused(make: str) -> None:
    thing = eval(make)
    with pytest.raises(runtime.OpenRegError) as caught:
        type(thing).from_ipc(thing.ipc_handle())
    assert caught.value.name == "orErrorNotPermitted"


@pytest.mark.parametrize("kind", [runtime.Buffer, runtime.Event])
def test_handle_of_a_wrong_length_or_content_is_refused(kind: type) -> None:
    with pytest.raises(ValueError, match="handle has 3 bytes, expected 64"):
        kind.from_ipc(b"abc")
    with pytest.raises(runtime.OpenRegError) as caught:
        kind.from_ipc(bytes(64))
    assert caught.value.name == "orErrorInvalidValue"


def test_event_without_interprocess_has_no_handle() -> None:
    with pytest.raises(runtime.OpenRegError) as caught:
        runtime.Event().ipc_handle()
    assert caught.value.name == "orErrorInvalidHandle"


def test_event_for_other_processes_has_no_timing() -> None:
    with pytest.raises(runtime.OpenRegError) as caught:
        runtime.Event(timing=True, interprocess=True)
    assert caught.value.name == "orErrorInvalidValue"
