# SPDX-License-Identifier: BSD-3-Clause
"""The modes in which ``hunt`` runs a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# So that tests with the marker openreg_schedules are not repeated.
_EAGER = ("--openreg-schedule=eager",)


@dataclass(frozen=True)
class Mode:
    """A way to run the suite.

    Attributes:
        name: Its name in the table.
        finds: The bugs that it finds.
        environment: Variables that it sets.
        options: Options of pytest that it adds.
        fails_allocations: Whether running out of memory is expected.
    """

    name: str
    finds: str
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    fails_allocations: bool = False

    @property
    def kind(self) -> str:
        """The name without a number."""
        return self.name.partition(":")[0]

    @property
    def is_plain(self) -> bool:
        """Whether it is the run to which others are compared."""
        return self.name == "plain"


def all_modes(seeds: int, allocations: int) -> list[Mode]:
    """Returns every mode.

    Args:
        seeds: The number of random schedules.
        allocations: The number of modes in which allocations fail.
    """
    modes = [
        Mode("plain", "bugs that any run finds", options=_EAGER),
        Mode(
            "sanitizer",
            "unordered uses of memory, and reads of unwritten memory",
            {"OPENREG_SANITIZER": "1"},
            options=_EAGER,
        ),
        Mode("lazy", "missing waits", options=("--openreg-schedule=lazy",)),
    ]
    modes += [
        Mode(
            f"random:{seed}",
            "wrong orders",
            options=(f"--openreg-schedule=random:{seed}",),
        )
        for seed in range(seeds)
    ]
    modes.append(
        Mode(
            "nan",
            "reads of unwritten memory",
            {"OPENREG_UNINITIALIZED": "nan"},
            options=_EAGER,
        )
    )
    modes += [
        Mode(
            f"malloc:{nth}",
            "wrong handling of exhausted memory",
            options=(*_EAGER, f"--openreg-fail-malloc={nth}"),
            fails_allocations=True,
        )
        for nth in range(1, allocations + 1)
    ]
    return modes


def choose_modes(seeds: int, allocations: int, names: str | None) -> list[Mode]:
    """Returns the modes with these names or kinds, and always the plain one.

    Raises:
        ValueError: If a name is unknown.
    """
    modes = all_modes(seeds, allocations)
    if names is None:
        return modes
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    accepted = {mode.name for mode in modes} | {mode.kind for mode in modes}
    for name in wanted:
        if name not in accepted:
            kinds = ", ".join(dict.fromkeys(mode.kind for mode in modes))
            raise ValueError(f"--modes: {name!r} is not one of {kinds}")
    return [
        mode
        for mode in modes
        if mode.is_plain or mode.name in wanted or mode.kind in wanted
    ]
