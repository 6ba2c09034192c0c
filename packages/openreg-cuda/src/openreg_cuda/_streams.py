# SPDX-License-Identifier: BSD-3-Clause
"""The bases of ``torch.cuda.Stream`` and ``torch.cuda.Event``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from torch._C import (
    Event,
    Stream,
    _accelerator_getStream,
    _accelerator_setStream,
)

from openreg_cuda import _sync_debug
from openreg_cuda._backend import CUDA, compiled, openreg
from openreg_cuda._refused import Refusal

if TYPE_CHECKING:
    from typing import Self

    import torch


class CudaStreamBase(Stream):
    """A stream of the device: a new one, an existing one, or another library's.

    Args:
        priority: Of a new stream: lower numbers are more urgent.
        stream_id: Number of an existing stream.
        device_index: Its device.
        device_type: 1, CUDA.
        stream_ptr: Handle of another library's stream on the current device.

    Raises:
        RuntimeError: If the stream does not exist.
        ValueError: If ``device_type`` is not CUDA's.
    """

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int = 0,
        device_type: int = 0,
        stream_ptr: int = 0,
    ) -> Self:
        """Takes a stream from the device's pool, or wraps an existing one."""
        if stream_ptr:
            device_index = openreg().current_device()
            stream_id = compiled().external_stream(stream_ptr, device_index)
            device_type = CUDA
        elif not (stream_id or device_index or device_type):
            index = openreg().current_device()
            return super().__new__(cls, f"cuda:{index}", priority=priority)
        if device_type != CUDA:
            raise ValueError(
                f"device_type: a stream of CUDA has the type {CUDA}, got {device_type}"
            )
        compiled().check_stream(stream_id, device_index)
        return super().__new__(
            cls,
            stream_id=stream_id,
            device_index=device_index,
            device_type=device_type,
        )

    def synchronize(self) -> None:
        """Waits for the work of the stream."""
        _sync_debug.check("Stream.synchronize")
        super().synchronize()

    @property
    def cuda_stream(self) -> int:
        """The handle of the runtime's stream: an ``orStream_t``, 0 by default."""
        return _handle(self)

    @property
    def priority(self) -> int:
        """The priority: a lower number is more urgent."""
        return int(compiled().stream_priority(self.stream_id, self.device_index))

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Returns the least and the greatest priority, which is the lower number."""
        return compiled().stream_priority_range()  # type: ignore[no-any-return]


class CudaEventBase(Event):
    """An event of the device.

    Args:
        enable_timing: Whether ``elapsed_time`` may use it.
        blocking: Waits always block.
        interprocess: Must be false.
        external: Ignored.

    Raises:
        NotImplementedError: If ``interprocess`` is true.
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Self:
        """Creates an event, which belongs to the device of its first record."""
        del external
        if interprocess:
            _EVENT_SHARING()
        return super().__new__(
            cls, "cuda", enable_timing=enable_timing, blocking=blocking
        )

    @property
    def device(self) -> torch.device | None:  # type: ignore[override]
        """The device of the first record, None before it."""
        return super().device if self.event_id else None

    @property
    def cuda_event(self) -> int:
        """The handle of the runtime's event, 0 before the first record."""
        return self.event_id

    def elapsed_time(self, other: torch.Event) -> float:
        """Returns the milliseconds to another event."""
        return float(compiled().elapsed_time(self, other))

    @classmethod
    def from_ipc_handle(cls, device: torch.device, ipc_handle: bytes) -> NoReturn:
        """Refuses: an event stays within its process."""
        del device, ipc_handle
        _EVENT_SHARING()

    def ipc_handle(self) -> NoReturn:
        """Refuses: an event stays within its process."""
        _EVENT_SHARING()


_EVENT_SHARING = Refusal(
    "torch.cuda.Event between processes", "a simulated event stays within its process"
)


def _handle(stream: torch.Stream) -> int:
    # As on CUDA, 0 is the default stream of the current device.
    return stream.native_handle if stream.stream_id else 0  # type: ignore[attr-defined]


def _packed(stream: torch.Stream) -> tuple[int, int, int]:
    return stream.stream_id, stream.device_index, stream.device_type


def _set_stream(stream_id: int, device_index: int, device_type: int) -> None:
    stream = CudaStreamBase(
        stream_id=stream_id, device_index=device_index, device_type=device_type
    )
    _accelerator_setStream(stream)


def _from_external(data_ptr: int, device_index: int) -> tuple[int, int, int]:
    number = compiled().external_stream(data_ptr, device_index) if data_ptr else 0
    return number, device_index, CUDA


NAMES: dict[str, object] = {
    "_CudaStreamBase": CudaStreamBase,
    "_CudaEventBase": CudaEventBase,
    "_cuda_getCurrentStream": lambda device: _packed(_accelerator_getStream(device)),
    "_cuda_getCurrentRawStream": lambda device: _handle(_accelerator_getStream(device)),
    "_cuda_getDefaultStream": lambda device: (0, device, CUDA),
    "_cuda_getStreamFromExternal": _from_external,
    "_cuda_setStream": _set_stream,
}
