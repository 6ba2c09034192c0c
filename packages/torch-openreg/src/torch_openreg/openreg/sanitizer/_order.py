# SPDX-License-Identifier: BSD-3-Clause
"""Which work comes before which: PyTorch's clocks of streams and events."""

from __future__ import annotations

import logging

from torch.cuda import _sanitizer as csan

# Where the trace has a stream, this stands for the host. PyTorch's table of clocks has
# an entry for it, which learns what the host waits for, as every stream does.
HOST = 0

#: For each stream, the number of its last operator that is known to be completed.
Clock = dict[int, int]

# It tells of streams and events that were made before it, of which there may be many.
logging.getLogger(csan.__name__).setLevel(logging.WARNING)


class Order(csan.StreamSynchronizations):
    """``StreamSynchronizations``, for several devices."""

    def __init__(self) -> None:
        super().__init__()
        self._devices: dict[int, int] = {}

    def launch(self, stream: int, device: int, number: int) -> None:
        """Gives a stream of a device an operator, by its number."""
        self._devices[stream] = device
        self.update_seq_num(stream, number)

    def wait_for_clock(self, stream: int, clock: Clock) -> None:
        """Orders all later work of a stream after the work that a clock includes."""
        self._ensure_stream_exists(stream)
        self._state_wait_for_other(self.current_sync_states[stream], clock)

    def wait_for_each_other(self, streams: list[int]) -> None:
        """Orders all later work of the streams after all work that they have."""
        for stream in streams:
            for other in streams:
                self._state_wait_for_other(
                    self.current_sync_states[stream], self.current_sync_states[other]
                )

    def wait_for_event(self, stream: int, event: int) -> None:
        """Makes a stream, or the host, go on after an event."""
        if stream == HOST:
            self.all_streams_wait_for_event(event)
        else:
            self.stream_wait_for_event(stream, event)

    def synchronize_device(self, device: int) -> None:
        """Makes the host wait for all streams of a device."""
        for stream in list(self.current_sync_states):
            # A stream without an enqueued operator belongs to any device.
            if self._devices.get(stream, device) == device:
                self.all_streams_wait_for_stream(stream)

    def clock(self, streams: list[int]) -> Clock:
        """Returns what is completed once all work of some streams is."""
        clock: Clock = {}
        for stream in streams:
            self._ensure_stream_exists(stream)
            self._state_wait_for_other(clock, self.current_sync_states[stream])
        return clock
