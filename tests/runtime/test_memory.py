# SPDX-License-Identifier: BSD-3-Clause
"""Device memory and pinned memory."""

from __future__ import annotations

import array
import threading

import pytest

import openreg_runtime as runtime

DATA = bytes(range(100))


@pytest.mark.parametrize(
    "source", [bytes(DATA), bytearray(DATA), memoryview(DATA), array.array("b", DATA)]
)
def test_copy_takes_every_contiguous_source(source: object) -> None:
    block = runtime.Buffer(100)
    block.copy_from(source)
    out = bytearray(100)
    block.copy_to(out)
    assert out == DATA


@pytest.mark.parametrize("on_stream", [False, True])
def test_copy_between_devices_and_pinned_memory(on_stream: bool) -> None:
    stream = runtime.Stream()
    order = {"stream": stream} if on_stream else {}
    pinned = runtime.PinnedBuffer(100)
    memoryview(pinned)[:] = DATA
    first, second = runtime.Buffer(100, 0), runtime.Buffer(100, 1)
    result = runtime.PinnedBuffer(100)
    first.copy_from(pinned, **order)
    second.copy_from(first, **order)
    second.copy_to(result, **order)
    stream.synchronize()
    assert bytes(result) == DATA


def test_copy_in_part_uses_the_start() -> None:
    block = runtime.Buffer(8)
    block.fill(1)
    block.copy_from(b"\5\6")
    out = bytearray(3)
    block.copy_to(out)
    assert out == b"\5\6\1"


def test_copy_past_the_end_names_the_block() -> None:
    block = runtime.Buffer(10)
    with pytest.raises(runtime.OpenRegError, match=r"11 bytes .* block of 10 bytes"):
        block.copy_from(bytes(11))
    with pytest.raises(runtime.OpenRegError, match=r"11 bytes .* block of 10 bytes"):
        block.copy_to(bytearray(11))


def test_copy_of_an_object_without_memory_is_refused() -> None:
    block = runtime.Buffer(10)
    with pytest.raises(TypeError, match="bytes-like"):
        block.copy_from(3)
    with pytest.raises(TypeError, match="read-only"):
        block.copy_to(bytes(10))
    with pytest.raises(ValueError, match="contiguous"):
        block.copy_from(memoryview(bytes(20))[::2])


def test_pinned_copy_on_a_stream_does_not_wait(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(100)
    block.copy_from(DATA)
    pinned = runtime.PinnedBuffer(100)
    memoryview(pinned)[:] = bytes(100)
    held = latch(stream)
    block.copy_to(pinned, stream)
    assert bytes(pinned) == bytes(100)
    held.release()
    stream.synchronize()
    assert bytes(pinned) == DATA


def test_pageable_copy_on_a_stream_waits(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(4)
    held = latch(stream)
    block.fill(9, stream)
    out = bytearray(4)
    threading.Thread(target=held.release).start()
    block.copy_to(out, stream)
    assert out == b"\t\t\t\t"


def test_memory_of_a_pending_copy_stays_alive(latch) -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(100)
    pinned = runtime.PinnedBuffer(100)
    memoryview(pinned)[:] = DATA
    held = latch(stream)
    block.copy_from(pinned, stream)
    del pinned
    others = [runtime.PinnedBuffer(100) for _ in range(10)]
    for other in others:
        memoryview(other)[:] = bytes(100)
    held.release()
    out = bytearray(100)
    block.copy_to(out, stream)
    assert out == DATA


def test_fill_sets_every_byte() -> None:
    block = runtime.Buffer(1000)
    block.fill(255)
    out = bytearray(1000)
    block.copy_to(out)
    assert out == b"\xff" * 1000


@pytest.mark.parametrize("value", [-1, 256])
def test_fill_with_a_value_outside_a_byte_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=f"value is {value}, expected a byte"):
        runtime.Buffer(1).fill(value)


def test_buffer_has_size_device_and_address() -> None:
    block = runtime.Buffer(64, device=runtime.Device(1))
    assert (block.size, block.device) == (64, runtime.Device(1))
    assert block.address % 512 == 0
    assert repr(block) == "Buffer(size=64, device=1)"


@pytest.mark.differs_in_process("kernels", run=False)
def test_kernels_have_an_address_of_their_own() -> None:
    block = runtime.Buffer(64, device=1)
    assert block.kernel_address != block.address


def test_buffer_protocol_is_refused_with_the_reason() -> None:
    block = runtime.Buffer(64, device=1)
    for read in (memoryview, bytes):
        with pytest.raises(BufferError, match=r"memory of openreg:1.*copy_to"):
            read(block)


def test_buffer_larger_than_the_device_raises_with_its_numbers() -> None:
    device = runtime.Device(0)
    with pytest.raises(runtime.OpenRegError, match="device 0 cannot allocate") as e:
        runtime.Buffer(device.total_memory + 1, device)
    assert e.value.name == "orErrorMemoryAllocation"
    assert str(device.free_memory) in str(e.value)


def test_memory_goes_back_with_the_object() -> None:
    device = runtime.Device(0)
    before = device.free_memory
    for _ in range(3):
        block = runtime.Buffer(device.total_memory // 2, device)
        del block
    assert device.free_memory == before


@pytest.mark.parametrize("kind", [runtime.Buffer, runtime.PinnedBuffer])
def test_negative_size_raises(kind: type) -> None:
    with pytest.raises(ValueError, match="size is -1, expected 0 or more bytes"):
        kind(-1)


def test_empty_buffers_can_be_copied() -> None:
    block, pinned = runtime.Buffer(0), runtime.PinnedBuffer(0)
    assert len(memoryview(pinned)) == 0
    assert (block.address, block.kernel_address) == (0, 0)
    block.copy_from(b"")
    block.copy_to(pinned)
    block.fill(1)


def test_pinned_memory_is_writable_bytes() -> None:
    pinned = runtime.PinnedBuffer(4)
    view = memoryview(pinned)
    view[:] = b"abcd"
    del pinned
    assert bytes(view) == b"abcd"
