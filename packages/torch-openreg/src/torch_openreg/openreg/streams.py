# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events of the devices, in the manner of ``torch.cuda``.

They are ``torch.Stream`` and ``torch.Event`` with the device filled in and the order of
arguments that ``torch.cuda`` has, so either kind works wherever the other does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ._utils import device_type, valid_device_index

if TYPE_CHECKING:
    from typing import Self

    from torch.types import Device


class Stream(torch.Stream):
    """A queue of work on one device, done in order. As ``torch.cuda.Stream``.

    Args:
        device: Device, index or name; the current device by default.
        priority: Lower numbers go first; out of range, the nearest one is taken.
        **kwargs: ``stream_id``, ``device_index`` and ``device_type`` of a stream that
            exists, instead of ``device``.

    Raises:
        RuntimeError: If there is no device of this index.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Self:
        """Takes a stream from the device's pool, or wraps the one that exists."""
        if kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        place = torch.device(device_type(), valid_device_index(device))
        return super().__new__(cls, place, priority=priority)

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks the present end of the queue.

        Args:
            event: Event to record; a new one by default.

        Returns:
            The event, recorded.
        """
        if event is None:
            event = torch.Event(device_type())
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"<torch.openreg.Stream device={self.device} id={self.stream_id:#x}>"


class _EventOfDevice(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, torch.Event) and instance.device.type == device_type()
        )


class Event(torch.Event, metaclass=_EventOfDevice):
    """A mark in a stream, to wait for or to measure time. As ``torch.cuda.Event``.

    Every ``torch.Event`` of the device is an instance. What a call returns is one too,
    since ``torch.Event.elapsed_time`` accepts no object of a subclass.

    Args:
        enable_timing: Whether ``elapsed_time`` (in milliseconds) may be asked of it.
        blocking: Accepted for the sake of code written for CUDA: waiting always blocks.
        interprocess: Must be false.

    Raises:
        NotImplementedError: If ``interprocess`` is true.
    """

    def __new__(  # type: ignore[misc]
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> torch.Event:
        """Makes an event that belongs to the device on which it is first recorded."""
        if interprocess:
            raise NotImplementedError(
                "torch.openreg.Event: interprocess=True is not supported, an event "
                "stays within its process"
            )
        return torch.Event(
            device_type(), enable_timing=enable_timing, blocking=blocking
        )


def current_stream(device: Device = None) -> Stream:
    """Returns the stream that work goes to. As ``torch.cuda.current_stream``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    stream = torch.accelerator.current_stream(valid_device_index(device))
    return _wrap(stream, stream.stream_id)


def default_stream(device: Device = None) -> Stream:
    """Returns the stream that is current at first. As ``torch.cuda.default_stream``.

    Args:
        device: Device, index or name; the current device by default.

    Raises:
        RuntimeError: If there is no device of this index.
    """
    # PyTorch reserves the id 0 for it.
    return _wrap(torch.accelerator.current_stream(valid_device_index(device)), 0)


def set_stream(stream: torch.Stream | None) -> None:
    """Sends this thread's work to ``stream`` and makes its device current.

    As ``torch.cuda.set_stream``.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.
    """
    if stream is not None:
        torch.accelerator.set_stream(stream)


def is_current_stream_capturing() -> bool:
    """Tells that no graph is being captured. Starts no device.

    As ``torch.cuda.is_current_stream_capturing``; the devices have no graphs.
    """
    return False


class StreamContext:
    """Sends work to a stream within a ``with`` statement.

    As ``torch.cuda.StreamContext``: the stream's device is current meanwhile.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.
    """

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._previous: list[tuple[Stream, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            there = current_stream(self.stream.device)
            self._previous.append((there, current_stream()))
            set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None:
            # The stream here comes last, for this makes its device current again.
            for previous in self._previous.pop():
                set_stream(previous)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Returns a context in which work goes to ``stream``. As ``torch.cuda.stream``.

    Args:
        stream: Stream of an openreg device. Nothing happens if it is None.
    """
    return StreamContext(stream)


def _wrap(stream: torch.Stream, stream_id: int) -> Stream:
    return Stream(
        stream_id=stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )
