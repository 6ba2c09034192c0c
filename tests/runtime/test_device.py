# SPDX-License-Identifier: BSD-3-Clause
"""Devices."""

from __future__ import annotations

import threading

import pytest

import openreg_runtime as runtime


def test_device_has_index_name_and_memory() -> None:
    device = runtime.Device(1)
    assert device.index == 1
    assert device.name == "OpenReg simulated device"
    assert device.capability == (0, 1)
    assert device.total_memory == runtime.setting("OPENREG_DEVICE_MEMORY").number
    block = runtime.Buffer(4096, device)
    assert device.free_memory == device.total_memory - block.size
    assert repr(device) == "Device(1)"


def test_cuda_devices_have_a_name_and_a_capability_of_their_own(run_script) -> None:
    source = """
        import openreg_runtime
        device = openreg_runtime.Device(0)
        print(device.name, device.capability)
        """
    done = run_script(source, OPENREG_DEVICE="cuda")
    assert done.stdout == "OpenReg simulated device (cuda) (8, 0)\n", done.stderr


def test_devices_are_equal_by_index() -> None:
    assert runtime.Device(1) == runtime.Device(1)
    assert runtime.Device(0) != runtime.Device(1)
    assert runtime.Device(0) != "Device(0)"
    assert len({runtime.Device(0), runtime.Device(0)}) == 1


@pytest.mark.parametrize("index", [-1, 2, 100])
def test_device_past_the_count_raises(index: int) -> None:
    uses = [
        lambda: runtime.Device(index),
        lambda: runtime.set_device(index),
        lambda: runtime.Stream(index),
        lambda: runtime.Buffer(1, index),
        lambda: runtime.synchronize(index),
    ]
    for use in uses:
        with pytest.raises(runtime.OpenRegError, match=f"device {index} does not") as e:
            use()
        assert e.value.name == "orErrorInvalidDevice"
    assert runtime.current_device() == runtime.Device(0)


def test_set_device_holds_for_this_thread_only() -> None:
    seen = []
    runtime.set_device(1)
    try:
        thread = threading.Thread(target=lambda: seen.append(runtime.current_device()))
        thread.start()
        thread.join()
        assert runtime.current_device() == runtime.Device(1)
        assert runtime.Buffer(1).device == runtime.Device(1)
        assert runtime.Stream().device == runtime.Device(1)
    finally:
        runtime.set_device(runtime.Device(0))
    assert seen == [runtime.Device(0)]


def test_synchronize_waits_for_the_device_only(latch) -> None:
    held = runtime.Stream(0)
    latch(held)
    done = []
    stream = runtime.Stream(1)
    stream.launch(done.append, 1)
    runtime.synchronize(1)
    assert done == [1]
    assert not held.query()


def test_synchronize_raises_a_failure_once() -> None:
    stream = runtime.Stream(1)
    stream.launch(lambda: 1 / 0)
    with pytest.raises(runtime.OpenRegError, match="ZeroDivisionError"):
        runtime.Device(1).synchronize()
    runtime.Device(1).synchronize()
