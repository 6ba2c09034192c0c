# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events, with the interface of ``torch.cuda``.

They are ``torch.Stream`` and ``torch.Event`` with a default device and the argument
order of ``torch.cuda``, and are interchangeable with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch._C._dynamo import eval_frame

from openreg_aten import _C

from ._lazy import is_initialized
from ._utils import IS_CUDA, device_type, valid_device_index

if TYPE_CHECKING:
    from typing import Self

    from torch.types import Device

_Stream = TypeVar("_Stream", bound="Stream")


class Stream(torch.Stream):
    """An ordered queue of work on a device. As ``torch.cuda.Stream``.

    New streams come from a pool of 32 per device and priority and are reused in turn.

    Args:
        device: Device, index or name; the current device by default or if the index is
            negative.
        priority: Lower numbers are more urgent; values out of range are clamped.
        **kwargs: ``stream_id``, ``device_index`` and ``device_type`` of an existing
            stream, instead of ``device``.

    Raises:
        RuntimeError: If the device or the stream does not exist.
        ValueError: If the device has another type.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Self:
        """Takes a stream from the device's pool, or wraps an existing one."""
        if kwargs:
            stream = super().__new__(cls, priority=priority, **kwargs)
            _check_device_type("Stream", stream)
            _C.check_stream(stream.stream_id, stream.device_index)
            return stream
        if isinstance(device, int) and device < 0:
            device = None
        place = torch.device(device_type(), valid_device_index(device))
        return super().__new__(cls, place, priority=priority)

    @property
    def priority(self) -> int:
        """Priority of the stream: a lower number is more urgent."""
        return _C.stream_priority(self.stream_id, self.device_index)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Returns the least and the greatest priority, which is the lower number.

        As ``torch.cuda.Stream.priority_range``.
        """
        return _C.stream_priority_range()

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks the present end of the queue.

        Args:
            event: Event to record; a new one by default.

        Returns:
            The event, recorded.

        Raises:
            TypeError: If ``event`` is not an event.
        """
        if event is None:
            event = torch.Event(device_type())
        _check_type("record_event: event", event, torch.Event)
        event.record(self)
        return event

    def wait_event(self, event: torch.Event) -> None:
        """Makes later work of this stream wait for an event.

        Args:
            event: The event. Its last record counts; without a record the stream does
                not wait.

        Raises:
            TypeError: If ``event`` is not an event.
        """
        _check_type("wait_event: event", event, torch.Event)
        event.wait(self)

    def wait_stream(self, stream: torch.Stream) -> None:
        """Makes later work of this stream wait for another stream.

        Args:
            stream: The stream, whose present work is awaited.

        Raises:
            TypeError: If ``stream`` is not a stream.
        """
        _check_type("wait_stream: stream", stream, torch.Stream)
        stream.record_event().wait(self)

    def __repr__(self) -> str:
        return f"<torch.openreg.Stream device={self.device} id={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream of another library. As ``torch.cuda.ExternalStream``.

    The library must keep the stream alive as long as PyTorch uses it or memory that was
    allocated on it.

    Args:
        stream_ptr: The runtime's ``orStream_t`` as a number, such as
            ``openreg_runtime.Stream.handle``; 0 is the default stream.
        device: Device on which it was made, index or name; the current one by default.

    Raises:
        RuntimeError: If the stream does not exist or belongs to another device.
        TypeError: If ``stream_ptr`` is not an int.
        ValueError: If ``stream_ptr`` is negative.
    """

    def __new__(cls, stream_ptr: int, device: Device = None) -> Self:
        """Wraps the stream with this handle."""
        _check_type("ExternalStream: stream_ptr", stream_ptr, int)
        if stream_ptr < 0:
            raise ValueError(
                f"ExternalStream: stream_ptr must be 0 or more, but got {stream_ptr}"
            )
        index = valid_device_index(device)
        return _wrap(cls, index, _C.external_stream(stream_ptr, index))


def get_stream_from_external(data_ptr: int, device: Device = None) -> Stream:
    """Returns a stream of another library.

    As ``torch.cuda.get_stream_from_external``; see :class:`ExternalStream`.

    Args:
        data_ptr: The runtime's ``orStream_t`` as a number.
        device: Device on which it was made, index or name; the current one by default.

    Raises:
        RuntimeError: If the stream does not exist or belongs to another device.
        TypeError: If ``data_ptr`` is not an int.
        ValueError: If ``data_ptr`` is negative.
    """
    stream = ExternalStream(data_ptr, device)
    return _wrap(Stream, stream.device_index, stream.stream_id)


class _EventOfDevice(type):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is not Event:
            return super().__instancecheck__(instance)
        return (
            isinstance(instance, torch.Event) and instance.device.type == device_type()
        )


class Event(torch.Event, metaclass=_EventOfDevice):
    """A point in a stream, for waits and timing. As ``torch.cuda.Event``.

    Every ``torch.Event`` of the device is an instance, and calling this class returns a
    ``torch.Event``, because the methods of ``torch.Event`` and ``torch.Stream`` do not
    accept subclasses. Calling a subclass returns an object of that subclass, which the
    methods of this class and of :class:`Stream` accept.

    Args:
        enable_timing: Whether ``elapsed_time`` (in milliseconds) may use it.
        blocking: Accepted for compatibility with CUDA: waits always block.
        interprocess: Must be false.
        external: Accepted for compatibility with CUDA, where it only affects graphs.

    Raises:
        NotImplementedError: If ``interprocess`` is true.
    """

    def __new__(  # type: ignore[misc]
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> torch.Event:
        """Creates an event, which belongs to the device of its first record."""
        del external
        if interprocess:
            raise NotImplementedError(
                "torch.openreg.Event: interprocess=True is not supported, an event "
                "stays within its process"
            )
        made: type[torch.Event] = torch.Event if cls is Event else cls
        return torch.Event.__new__(
            made, device_type(), enable_timing=enable_timing, blocking=blocking
        )

    def elapsed_time(self, end_event: torch.Event) -> float:
        """Returns the milliseconds from this event to another event.

        Args:
            end_event: An event that was recorded later.

        Raises:
            RuntimeError: If one of them is not completed or has another device type.
            TypeError: If ``end_event`` is not an event.
            ValueError: If one of them was not recorded, or was created without
                ``enable_timing``.
        """
        _check_type("elapsed_time: end_event", end_event, torch.Event)
        return _C.elapsed_time(self, end_event)


def current_stream(device: Device = None) -> Stream:
    """Returns the current stream. As ``torch.cuda.current_stream``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    index = valid_device_index(device)
    return _wrap(Stream, index, torch.accelerator.current_stream(index).stream_id)


def default_stream(device: Device = None) -> Stream:
    """Returns the default stream. As ``torch.cuda.default_stream``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If the device does not exist.
    """
    return _wrap(Stream, valid_device_index(device), 0)  # the id that PyTorch reserves


def set_stream(stream: torch.Stream | None) -> None:
    """Makes ``stream`` and its device current for this thread.

    As ``torch.cuda.set_stream``.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.

    Raises:
        TypeError: If ``stream`` is not a stream.
        ValueError: If it is a stream of another type of device.
    """
    if stream is not None:
        _check_type("set_stream: stream", stream, torch.Stream)
        _check_device_type("set_stream", stream)
        torch.accelerator.set_stream(stream)


def is_current_stream_capturing() -> bool:
    """Returns whether the current stream is being captured. Does not start devices.

    As ``torch.cuda.is_current_stream_capturing``.
    """
    return is_initialized() and torch.accelerator.current_stream().is_capturing()


def _sleep(cycles: int) -> None:
    """Enqueues a kernel that sleeps. As ``torch.cuda._sleep``.

    Args:
        cycles: The duration in cycles of a 1 GHz clock, which are nanoseconds; 0 or
            more.

    Raises:
        ValueError: If ``cycles`` is negative.
    """
    handle = current_stream().native_handle  # type: ignore[attr-defined]
    _C.sleep(handle, cycles)


class StreamContext:
    """Makes a stream current within a ``with`` statement.

    As ``torch.cuda.StreamContext``. The stream's device is current, too.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.

    Raises:
        TypeError: If ``stream`` is not a stream.
        ValueError: If it is a stream of another type of device.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        if stream is not None:
            _check_type("stream", stream, torch.Stream)
            _check_device_type("stream", stream)
        self.stream = stream
        self._previous: list[tuple[Stream, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            there = current_stream(self.stream.device)
            self._previous.append((there, current_stream()))
            set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None:
            # Sets this device's stream last, because that makes its device current
            # again.
            for previous in self._previous.pop():
                set_stream(previous)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Returns a context in which ``stream`` is current. As ``torch.cuda.stream``.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.
    """
    return StreamContext(stream)


_TYPES = torch._C._autograd.DeviceType
_DEVICE_TYPE = (_TYPES.CUDA if IS_CUDA else _TYPES.PrivateUse1).value


def _wrap(cls: type[_Stream], device: int, stream_id: int) -> _Stream:
    """Creates the object of an existing stream."""
    return torch.Stream.__new__(
        cls, stream_id=stream_id, device_index=device, device_type=_DEVICE_TYPE
    )


# Dynamo cannot trace it. As torch._dynamo.skip(), which would import Dynamo.
_wrap._torchdynamo_disable = True  # type: ignore[attr-defined]
eval_frame.set_code_exec_strategy(
    _wrap.__code__,
    eval_frame._FrameExecStrategy(
        eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT
    ),
)


def _check_type(argument: str, value: object, expected: type) -> None:
    # Checked here, because PyTorch accepts any object as an event or a stream.
    if not isinstance(value, expected):
        raise TypeError(
            f"{argument} must be of type {expected.__module__}.{expected.__qualname__}"
            f", but got {value!r}"
        )


def _check_device_type(function: str, stream: torch.Stream) -> None:
    if stream.device.type != device_type():
        raise ValueError(
            f"{function}: expected a stream of an {device_type()} device, but got one "
            f"of {stream.device}"
        )
