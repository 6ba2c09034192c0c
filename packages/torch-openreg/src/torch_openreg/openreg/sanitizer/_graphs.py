# SPDX-License-Identifier: BSD-3-Clause
"""What a graph records and what a replay uses.

A capture runs nothing. Its operators are compared with each other only, by an order and
a memory of the capture's own: its streams begin and end together at each replay.

To everything else a replay is one operator of the stream that it is given: nothing can
begin in the middle of a replay, or wait for its middle.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from torch_openreg._lines import Place

from ._memory import Life, Memory, Region, Use
from ._order import Clock, Order


@dataclass(eq=False)
class Capture:
    """What a capture has recorded, and what its graph uses at each replay.

    Attributes:
        order: The order of its streams.
        memory: What its operators use.
        underway: Whether it has not ended.
        conflict: The first two of its operators that nothing orders, if there are any.
        last: What is completed once its latest replay is: the next one waits for that,
            also on another stream.
    """

    order: Order = field(default_factory=Order)
    memory: Memory = field(default_factory=Memory)
    underway: bool = True
    conflict: tuple[Use, Use] | None = None
    last: Clock = field(default_factory=dict)
    _uses: dict[tuple[Life, Region], Use] = field(default_factory=dict)

    def note(self, use: Use) -> None:
        """Notes what each replay will do with a region: a write counts, if any does."""
        key = use.life, use.region
        if key not in self._uses or (use.writes and not self._uses[key].writes):
            self._uses[key] = use

    def end(self) -> None:
        """Ends the recording. What was compared is not needed any more."""
        self.underway = False
        self.memory = Memory()

    def replay(
        self, number: int, stream: int, device: torch.device, place: Place | None
    ) -> list[Use]:
        """Returns what a replay uses."""
        return [
            replace(
                use,
                number=number,
                stream=stream,
                device=device,
                place=place,
                captured=use.place,
                by_replay=True,
            )
            for use in self._uses.values()
        ]


def is_host(use: Use) -> bool:
    """Tells whether the memory is the host's."""
    return isinstance(use.life.segment, StorageWeakRef)
