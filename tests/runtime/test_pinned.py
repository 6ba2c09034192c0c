# SPDX-License-Identifier: BSD-3-Clause
"""Temporarily pinned host memory of other objects."""

from __future__ import annotations

import array
import contextlib

import pytest

import openreg_runtime as runtime
from openreg_runtime import failures, pinned

DATA = bytes(range(200))


def test_copy_from_pinned_memory_does_not_wait(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(200)
    memory = bytearray(DATA)
    with pinned(memory):
        assert runtime.resource_usage().host_registrations == 1
        held = latch(stream)
        block.copy_from(memory, stream)
        assert not stream.query()
        held.release()
    out = bytearray(200)
    block.copy_to(out)
    assert out == DATA


def test_end_waits_for_the_work_without_the_gil(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(200)
    block.copy_from(DATA)
    memory = bytearray(200)
    pin = contextlib.ExitStack()
    pin.enter_context(pinned(memory))
    held = latch(stream)
    block.copy_to(memory, stream)
    with held.released_by_a_thread():
        pin.close()
    assert memory == DATA


def test_memory_can_not_change_its_size_while_it_is_pinned() -> None:
    memory = bytearray(8)
    with pinned(memory), pytest.raises(BufferError):
        memory.extend(b"more")
    memory.extend(b"more")


def test_part_of_an_object_can_be_pinned() -> None:
    memory = array.array("i", range(100))
    with pinned(memoryview(memory)[10:20]):
        assert runtime.resource_usage().host_registrations == 1


def test_pinned_memory_can_not_be_pinned_again() -> None:
    memory = bytearray(8)
    for again in (memory, memoryview(memory)[4:], runtime.PinnedBuffer(8)):
        with (
            pinned(memory),
            pytest.raises(runtime.OpenRegError) as caught,
            pinned(again),
        ):
            pass
        assert caught.value.name == "orErrorHostMemoryAlreadyRegistered"
        assert caught.value.code == 16


def test_memory_that_cannot_be_pinned_is_refused() -> None:
    refused = [
        (bytes(8), TypeError, "must not be read-only"),
        (3, TypeError, "bytes-like"),
        (memoryview(bytearray(8))[::2], ValueError, "contiguous"),
        (bytearray(), runtime.OpenRegError, "orHostRegister"),
        (runtime.Buffer(8), BufferError, "the host cannot read"),
    ]
    for memory, error, reason in refused:
        with pytest.raises(error, match=reason), pinned(memory):
            pass


def test_end_that_takes_too_long_keeps_the_memory_until_the_work_is_done(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(200)
    block.copy_from(DATA)
    memory = bytearray(200)
    held = latch(stream)
    with failures.wait_timeout(0.01):
        with pytest.raises(runtime.OpenRegError) as caught, pinned(memory):
            block.copy_to(memory, stream)
        assert caught.value.name == "orErrorTimeout"
        del caught  # its traceback refers to the context
    with pytest.raises(BufferError):
        memory.extend(b"more")
    held.release()
    stream.synchronize()
    assert memory == DATA
