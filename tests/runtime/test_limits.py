# SPDX-License-Identifier: BSD-3-Clause
"""Limits of a device: memory, and the time that calls wait."""

from __future__ import annotations

import pytest

import openreg_runtime as runtime
from openreg_runtime import failures

MIB = 2**20


@pytest.fixture
def device() -> runtime.Device:
    return runtime.Device(1)


def test_memory_limit_fails_larger_allocations_and_is_restored(device) -> None:
    with failures.memory_limit(MIB, device):
        assert device.memory_limit == MIB
        assert device.free_memory == MIB
        with pytest.raises(
            runtime.OpenRegError, match=f"{MIB} of its {MIB} bytes are free"
        ) as caught:
            runtime.Buffer(MIB + 1, device)
        assert caught.value.name == "orErrorMemoryAllocation"
        runtime.Buffer(MIB, device)
    assert device.memory_limit == device.total_memory
    runtime.Buffer(MIB + 1, device)


def test_memory_limit_below_current_use_waits_for_frees(device) -> None:
    block = runtime.Buffer(2 * MIB, device)
    with failures.memory_limit(MIB, device):
        assert device.free_memory == 0
        with pytest.raises(runtime.OpenRegError):
            runtime.Buffer(1, device)
        del block
        runtime.Buffer(1, device)


def test_memory_limit_is_the_device_s_own_and_nests() -> None:
    runtime.set_device(1)
    try:
        with failures.memory_limit(2 * MIB):
            with failures.memory_limit(MIB):
                assert runtime.Device(1).memory_limit == MIB
            assert runtime.Device(1).memory_limit == 2 * MIB
            assert runtime.Device(0).memory_limit == runtime.Device(0).total_memory
    finally:
        runtime.set_device(0)


def test_memory_limit_outside_its_range_raises(device) -> None:
    with pytest.raises(ValueError, match="memory_limit is -1, expected 0 or more"):
        device.memory_limit = -1
    too_much = device.total_memory + 1
    with pytest.raises(runtime.OpenRegError, match=f"value {too_much} is too large"):
        device.memory_limit = too_much
    assert device.memory_limit == device.total_memory


def test_wait_beyond_the_limit_raises_and_the_work_continues(latch, device) -> None:
    stream = runtime.Stream(device)
    event = runtime.Event()
    block = runtime.Buffer(4, device)
    ran = []
    held = latch(stream)
    stream.launch(ran.append, 1)
    event.record(stream)
    waits = [
        stream.synchronize,
        device.synchronize,
        event.synchronize,
        lambda: block.copy_to(bytearray(4), stream),
    ]
    with failures.wait_timeout(0.01, device):
        for wait in waits:
            with pytest.raises(runtime.OpenRegError, match="10 ms") as caught:
                wait()
            assert caught.value.name == "orErrorTimeout"
            assert caught.value.code == 13
        assert ran == []
        assert not stream.query()
    held.release()
    stream.synchronize()
    assert ran == [1]


def test_wait_timeout_is_restored(device) -> None:
    assert device.wait_timeout is None
    with failures.wait_timeout(1.5, device):
        assert device.wait_timeout == 1.5
        with failures.wait_timeout(None, device):
            assert device.wait_timeout is None
        assert device.wait_timeout == 1.5
    assert device.wait_timeout is None


def test_wait_timeout_is_rounded_up_to_milliseconds(device) -> None:
    with failures.wait_timeout(0.0001, device):
        assert device.wait_timeout == 0.001


@pytest.mark.parametrize("seconds", [0, -1, 86401, float("nan"), float("inf")])
def test_wait_timeout_that_is_not_accepted_raises(device, seconds: float) -> None:
    with pytest.raises(ValueError, match="expected seconds greater than 0"):
        device.wait_timeout = seconds
    assert device.wait_timeout is None


def test_block_that_can_not_be_freed_in_time_is_freed_later(latch, device) -> None:
    stream = runtime.Stream(device)
    block = runtime.Buffer(1024, device)
    held = latch(stream)
    with failures.wait_timeout(0.005, device):
        del block
    assert runtime.resource_usage().device_blocks == 1
    held.release()
    while runtime.resource_usage().device_blocks > 0:  # another thread frees it
        stream.synchronize()


def test_pinned_block_that_can_not_be_freed_in_time_is_freed_later(latch) -> None:
    stream = runtime.Stream(0)
    pinned = runtime.PinnedBuffer(1024)
    held = latch(stream)
    with failures.wait_timeout(0.005, 0):
        del pinned
    assert runtime.resource_usage().host_blocks == 1
    held.release()
    while runtime.resource_usage().host_blocks > 0:
        stream.synchronize()


def test_timeout_of_the_environment_holds_for_every_device(run_script) -> None:
    done = run_script(
        """
        import threading
        import openreg_runtime as runtime

        print([runtime.Device(i).wait_timeout for i in range(2)])
        gate = threading.Event()
        stream = runtime.Stream(1)
        stream.launch(gate.wait)
        try:
            stream.synchronize()
        except runtime.OpenRegError as error:
            print(error.name)
        gate.set()
        """,
        OPENREG_WAIT_TIMEOUT="20",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0.02, 0.02]", "orErrorTimeout"]


def test_waits_with_a_limit_release_the_gil(latch, device) -> None:
    """The wait ends only if another Python thread can run."""
    stream = runtime.Stream(device)
    held = latch(stream)
    with failures.wait_timeout(40, device), held.released_by_a_thread():
        stream.synchronize()
