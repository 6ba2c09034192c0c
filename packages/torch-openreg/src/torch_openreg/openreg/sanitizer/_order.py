# SPDX-License-Identifier: BSD-3-Clause
"""The order of work, based on PyTorch's clocks of streams and events."""

from __future__ import annotations

import logging

from torch.cuda import _sanitizer as csan

# Represents the host where the trace has a stream. PyTorch's table of clocks has an
# entry for it, which is updated by host waits like a stream.
HOST = 0

#: For each stream, the number of its last completed operator.
Clock = dict[int, int]

# It logs each stream and event that was created before it, which may be many.
logging.getLogger(csan.__name__).setLevel(logging.WARNING)


class Order(csan.StreamSynchronizations):
    """``StreamSynchronizations``, for several devices."""

    def __init__(self) -> None:
        super().__init__()
        self._devices: dict[int, int] = {}

    def launch(self, stream: int, device: int, number: int) -> None:
        """Adds an operator to a stream of a device."""
        self._devices[stream] = device
        self.update_seq_num(stream, number)

    def wait_for_clock(self, stream: int, clock: Clock) -> None:
        """Orders all later work of a stream after the work of a clock."""
        self._ensure_stream_exists(stream)
        self._state_wait_for_other(self.current_sync_states[stream], clock)

    def wait_for_each_other(self, streams: list[int]) -> None:
        """Orders all later work of the streams after all their present work."""
        for stream in streams:
            for other in streams:
                self._state_wait_for_other(
                    self.current_sync_states[stream], self.current_sync_states[other]
                )

    def wait_for_event(self, stream: int, event: int) -> None:
        """Orders later work of a stream, or of the host, after an event."""
        if stream == HOST:
            self.all_streams_wait_for_event(event)
        else:
            self.stream_wait_for_event(stream, event)

    def synchronize_device(self, device: int) -> None:
        """Makes the host wait for all streams of a device."""
        for stream in list(self.current_sync_states):
            # A stream without operators may belong to any device.
            if self._devices.get(stream, device) == device:
                self.all_streams_wait_for_stream(stream)

    def clock(self, streams: list[int]) -> Clock:
        """Returns the clock of all work of some streams."""
        clock: Clock = {}
        for stream in streams:
            self._ensure_stream_exists(stream)
            self._state_wait_for_other(clock, self.current_sync_states[stream])
        return clock
