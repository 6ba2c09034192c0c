# SPDX-License-Identifier: BSD-3-Clause
"""The analysis of captures and replays of graphs.

A capture does not run work. Its operators are compared only with each other, with a
separate order and memory, because the streams of a graph begin and end together at each
replay.

For all other work a replay is a single operator of its stream: other work cannot begin
in the middle of a replay or wait for its middle.
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
    """The operators of a capture, and the memory that its graph uses at each replay.

    Attributes:
        order: The order of its streams.
        memory: The memory uses of its operators.
        underway: Whether it has not ended.
        conflict: The first two unordered operators, if any.
        last: The work that is completed after the latest replay. The next replay waits
            for it, even on another stream.
    """

    order: Order = field(default_factory=Order)
    memory: Memory = field(default_factory=Memory)
    underway: bool = True
    conflict: tuple[Use, Use] | None = None
    last: Clock = field(default_factory=dict)
    _uses: dict[tuple[Life, Region], Use] = field(default_factory=dict)

    def note(self, use: Use) -> None:
        """Notes the use of a region by each replay; a write takes precedence."""
        key = use.life, use.region
        if key not in self._uses or (use.writes and not self._uses[key].writes):
            self._uses[key] = use

    def end(self) -> None:
        """Ends the capture and drops its comparison data."""
        self.underway = False
        self.memory = Memory()

    def replay(
        self, number: int, stream: int, device: torch.device, place: Place | None
    ) -> list[Use]:
        """Returns the memory uses of a replay."""
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
    """Returns whether it is host memory."""
    return isinstance(use.life.segment, StorageWeakRef)
