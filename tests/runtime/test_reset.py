# SPDX-License-Identifier: BSD-3-Clause
"""Lost and reset devices, and their objects."""

from __future__ import annotations

import weakref

import pytest

import openreg_runtime as runtime
from openreg_runtime import failures


class Thing:
    """An object that supports weak references."""


@pytest.fixture
def device() -> runtime.Device:
    return runtime.Device(1)


def test_lost_device_fails_every_use_until_the_end(device) -> None:
    stream, event, block = (
        runtime.Stream(device),
        runtime.Event(),
        runtime.Buffer(8, device),
    )
    event.record(stream)
    uses = [
        device.synchronize,
        lambda: device.free_memory,
        lambda: runtime.Stream(device),
        lambda: runtime.Buffer(8, device),
        lambda: stream.launch(int),
        lambda: stream.launch_host(int),
        stream.synchronize,
        stream.query,
        lambda: stream.wait_event(event),
        lambda: event.record(stream),
        lambda: block.fill(1),
        lambda: block.copy_to(bytearray(8)),
        lambda: block.copy_from(bytes(8), stream),
    ]
    with failures.lost_device(device) as lost:
        assert lost == device
        for use in uses:
            with pytest.raises(runtime.OpenRegError, match="device 1 was lost") as e:
                use()
            assert e.value.name == "orErrorDeviceLost"
        runtime.Buffer(8, 0).fill(1)  # the other device still works
    runtime.Buffer(8, device).fill(1)


def test_lost_device_drops_queued_work(latch, device) -> None:
    stream = runtime.Stream(device)
    held = latch(stream)
    ran = []
    stream.launch(ran.append, 1)
    stream.launch_host(ran.append, 2)
    with failures.lost_device(device):
        held.release()
    assert ran == []


def test_references_of_dropped_work_are_released(latch, device) -> None:
    stream = runtime.Stream(device)
    held = latch(stream)
    kernel, function = Thing(), Thing()
    references = [weakref.ref(kernel), weakref.ref(function)]
    stream.launch(lambda _: None, kernel)
    stream.launch_host(lambda _: None, function)
    runtime.Buffer(64, device).copy_from(runtime.PinnedBuffer(64), stream)
    del kernel, function
    assert None not in [reference() for reference in references]
    with failures.lost_device(device):
        held.release()
    assert [reference() for reference in references] == [None, None]


def test_reset_ends_buffers_and_streams_but_not_events(device) -> None:
    stream, event, block = (
        runtime.Stream(device),
        runtime.Event(),
        runtime.Buffer(100, device),
    )
    event.record(stream)
    device.reset()
    assert event.query()
    with pytest.raises(runtime.OpenRegError) as caught:
        stream.launch(int)
    assert caught.value.name == "orErrorInvalidHandle"
    uses = [
        lambda: block.address,
        lambda: block.kernel_address,
        lambda: block.fill(1),
        lambda: block.copy_from(bytes(1)),
        lambda: runtime.Buffer(100).copy_from(block),
    ]
    for use in uses:
        with pytest.raises(
            runtime.OpenRegError, match="device 1 was reset, which ended this block"
        ) as caught:
            use()
        assert caught.value.name == "orErrorInvalidValue"


def test_old_buffer_does_not_free_the_block_that_took_its_place(device) -> None:
    old = runtime.Buffer(4096, device)
    address = old.address
    device.reset()
    new = runtime.Buffer(4096, device)
    assert new.address == address
    del old
    new.fill(7)
    out = bytearray(4096)
    new.copy_to(out)
    assert out == b"\7" * 4096


def test_reset_restores_failure_and_limits(device) -> None:
    device.memory_limit = 2**20
    device.wait_timeout = 30
    device.lose()
    device.reset()
    assert device.memory_limit == device.free_memory == device.total_memory
    assert device.wait_timeout is None
    device.synchronize()


def test_reset_leaves_the_default_stream_usable(device) -> None:
    stream = device.default_stream
    stream.launch(lambda: 1 / 0)
    device.reset()
    ran = []
    stream.launch(ran.append, 1)
    stream.synchronize()
    assert ran == [1]


def test_reset_waits_for_the_running_kernel_without_the_gil(latch, device) -> None:
    stream = runtime.Stream(device)
    held = latch(stream)
    with held.released_by_a_thread():
        device.reset()


def test_reset_that_takes_too_long_leaves_the_device_lost(latch, device) -> None:
    held = latch(runtime.Stream(device))
    device.wait_timeout = 0.01
    with pytest.raises(runtime.OpenRegError) as caught:
        device.reset()
    assert caught.value.name == "orErrorTimeout"
    with pytest.raises(runtime.OpenRegError) as caught:
        runtime.Buffer(8, device)
    assert caught.value.name == "orErrorDeviceLost"
    held.release()
    device.wait_timeout = None
    device.reset()


def test_kernel_may_not_reset_its_own_device(device) -> None:
    stream = runtime.Stream(device)
    block = runtime.Buffer(8, device)
    stream.launch(device.reset)
    with pytest.raises(runtime.OpenRegError, match="cannot wait for its own stream"):
        stream.synchronize()
    block.fill(1)  # nothing was reset


def test_error_of_a_lost_device_names_the_cause(device) -> None:
    stream = runtime.Stream(device)
    stream.launch(device.lose)
    with pytest.raises(runtime.OpenRegError, match=r"device 1 was lost") as caught:
        stream.synchronize()
    assert caught.value.code == 12
    device.reset()
