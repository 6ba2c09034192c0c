# SPDX-License-Identifier: BSD-3-Clause
"""What the sanitizer reports."""

from __future__ import annotations

from typing import NamedTuple


class Access(NamedTuple):
    """The use of a piece of memory by an operator.

    Attributes:
        operator: Schema of the operator, or the name of a compiled kernel.
        writes: Whether it writes to the memory, or only reads from it.
        arguments: The operator's names for it; ``output`` for what it makes.
        where: The stream that does it, in words, or ``the host``.
        line: The line of the program: ``file:number: text``.
        captured: For the use by the replay of a graph, the line of the operator when it
            was captured; ``line`` is the line of the replay.

    A write of the host that no operator does, such as one by NumPy, has a description
    as its ``operator``, which begins with ``a write without an operator``. Its
    ``arguments`` are ``("the memory",)``, and its ``line`` is ``before`` and the line
    that waited for the stream, or ``before an unknown line``.
    """

    operator: str
    writes: bool
    arguments: tuple[str, ...]
    where: str
    line: str
    captured: str | None = None

    def __str__(self) -> str:
        text = (
            f"  {self.operator}\n"
            f"    {'writing to' if self.writes else 'reading from'} "
            f"{', '.join(self.arguments)}, on {self.where}\n"
            f"    {self.line}"
        )
        return f"{text}\n    captured at {self.captured}" if self.captured else text


class UnsynchronizedAccessError(RuntimeError):
    """Two uses of the same memory, one of them a write, that nothing orders.

    Attributes:
        current: The later use, in the order of the program. Where it is of an argument,
            its operator was not called.
        previous: The earlier use, which may not be completed, or not even have begun.
        address: Address of the memory that both use.
        allocated: The line that allocated it, if that is known.
    """

    def __init__(
        self,
        current: Access,
        previous: Access,
        address: int,
        allocated: str | None,
        advice: str,
    ) -> None:
        self.current = current
        self.previous = previous
        self.address = address
        self.allocated = allocated
        self.advice = advice
        super().__init__(self._report())

    def _report(self) -> str:
        lines = [
            f"{self._what()} at address {self.address:#x}:",
            str(self.current),
            "and earlier",
            str(self.previous),
            *self._history(),
            self.advice,
        ]
        return "\n".join(lines)

    def _what(self) -> str:
        return "possible data race: nothing orders two uses of the memory"

    def _history(self) -> list[str]:
        return [f"allocated at {self.allocated}"] if self.allocated else []


class UseAfterFreeError(UnsynchronizedAccessError):
    """The same for memory that was freed and handed out again between the two uses.

    Attributes:
        freed: The line that freed it after the previous use, if that is known.
        previously_allocated: The line that allocated it before that, if it is known.
    """

    def __init__(
        self,
        current: Access,
        previous: Access,
        address: int,
        allocated: str | None,
        advice: str,
        *,
        freed: str | None,
        previously_allocated: str | None,
    ) -> None:
        self.freed = freed
        self.previously_allocated = previously_allocated
        super().__init__(current, previous, address, allocated, advice)

    def _what(self) -> str:
        return (
            "use after free: memory was freed and handed out again while it may "
            "still be in use"
        )

    def _history(self) -> list[str]:
        history = (
            ("first allocated at", self.previously_allocated),
            ("freed at", self.freed),
            ("allocated again at", self.allocated),
        )
        return [f"{what} {line}" for what, line in history if line]
