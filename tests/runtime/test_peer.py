# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that access the memory of another device."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

import openreg_runtime as runtime


@pytest.fixture
def access() -> Iterator[None]:
    """Lets kernels of device 0 access the memory of device 1."""
    runtime.Device(0).enable_peer_access(1)
    yield
    runtime.Device(0).disable_peer_access(1)


def write_in_kernel(device: int, block: runtime.Buffer) -> None:
    """Sets the bytes of ``block`` to 7 in a kernel of ``device``."""
    stream = runtime.Stream(device)
    stream.launch(lambda: ctypes.memset(block.kernel_address, 7, block.size))
    stream.synchronize()


def test_devices_can_be_given_access_to_each_other_only() -> None:
    first, second = runtime.Device(0), runtime.Device(1)
    assert first.can_access_peer(second)
    assert second.can_access_peer(0)
    assert not first.can_access_peer(first)


@pytest.mark.differs_in_process("kernels", run=False)
def test_kernel_needs_access_to_the_peer() -> None:
    block = runtime.Buffer(8, device=1)
    with pytest.raises(runtime.OpenRegError, match="device 0 has no access"):
        write_in_kernel(0, block)


@pytest.mark.differs_in_process("kernels", run=False)
def test_kernel_with_access_writes_to_the_peer(access) -> None:
    block = runtime.Buffer(8, device=1)
    write_in_kernel(0, block)
    out = bytearray(8)
    block.copy_to(out)
    assert out == b"\7" * 8


@pytest.mark.differs_in_process("kernels", run=False)
def test_access_is_one_way(access) -> None:
    with pytest.raises(runtime.OpenRegError, match="device 1 has no access"):
        write_in_kernel(1, runtime.Buffer(8, device=0))


def test_copies_between_devices_need_no_access() -> None:
    first, second = runtime.Buffer(4, 0), runtime.Buffer(4, 1)
    first.copy_from(b"abcd")
    second.copy_from(first)
    out = bytearray(4)
    second.copy_to(out)
    assert out == b"abcd"


def test_access_is_enabled_and_disabled_once(access) -> None:
    device = runtime.Device(0)
    with pytest.raises(runtime.OpenRegError) as caught:
        device.enable_peer_access(runtime.Device(1))
    assert caught.value.name == "orErrorPeerAccessAlreadyEnabled"
    with pytest.raises(runtime.OpenRegError) as caught:
        runtime.Device(1).disable_peer_access(0)
    assert caught.value.name == "orErrorPeerAccessNotEnabled"
    assert caught.value.code == 15


def test_peer_access_to_the_device_itself_is_refused() -> None:
    with pytest.raises(runtime.OpenRegError, match="expected another device") as caught:
        runtime.Device(0).enable_peer_access(0)
    assert caught.value.name == "orErrorInvalidDevice"


def test_environment_can_make_devices_that_have_no_access(run_script) -> None:
    done = run_script(
        """
        import openreg_runtime as runtime

        print(runtime.Device(0).can_access_peer(1))
        try:
            runtime.Device(0).enable_peer_access(1)
        except runtime.OpenRegError as error:
            print(error.name)
        """,
        OPENREG_PEER_ACCESS="0",
    )
    assert done.stdout.splitlines() == ["False", "orErrorNotSupported"], done.stderr
