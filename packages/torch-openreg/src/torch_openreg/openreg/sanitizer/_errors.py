# SPDX-License-Identifier: BSD-3-Clause
"""The errors of the sanitizer."""

from __future__ import annotations

from typing import NamedTuple


class Access(NamedTuple):
    """A use of memory by an operator.

    Attributes:
        operator: The schema of the operator, or the name of a compiled kernel.
        writes: Whether it writes to the memory.
        arguments: The operator's argument names; ``output`` for its result.
        where: A description of the stream, or ``the host``.
        line: The program line: ``file:number: text``.
        captured: For a use by a graph replay, the line of the captured operator;
            ``line`` is the line of the replay.

    For a host write without an operator, for example with NumPy, ``operator`` is a
    description that begins with ``a write without an operator``, ``arguments`` is
    ``("the memory",)``, and ``line`` is ``before`` with the line that waited for the
    stream, or ``before an unknown line``.
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
    """Two unordered uses of the same memory, one of them a write.

    Attributes:
        current: The later use in program order. If it uses an argument, the operator
            was not called.
        previous: The earlier use, which may not be completed or may not have begun.
        address: The address of the memory.
        allocated: The line of the allocation, if known.
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
        return "possible data race: unordered accesses to the memory"

    def _history(self) -> list[str]:
        return [f"allocated at {self.allocated}"] if self.allocated else []


class UninitializedReadError(RuntimeError):
    """An operator reads elements of a tensor that no operator has written.

    Attributes:
        current: The read. The operator was not called.
        address: The address of the tensor.
        allocated: The line that allocated the memory, or the memory that it was copied
            from, if known.
    """

    def __init__(
        self, current: Access, address: int, allocated: str | None, extent: str
    ) -> None:
        self.current = current
        self.address = address
        self.allocated = allocated
        lines = [
            f"read of unwritten memory at address {address:#x}:",
            str(current),
            extent,
            *([f"allocated at {allocated}"] if allocated else []),
            "Write to all elements first, for example with zero_() or copy_().",
        ]
        super().__init__("\n".join(lines))


class UseAfterFreeError(UnsynchronizedAccessError):
    """Like the base class, for memory that was freed and reused between the two uses.

    Attributes:
        freed: The line that freed it after the previous use, if known.
        previously_allocated: The line of the earlier allocation, if known.
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
            "use after free: the memory was freed and reused while it may still be in "
            "use"
        )

    def _history(self) -> list[str]:
        history = (
            ("first allocated at", self.previously_allocated),
            ("freed at", self.freed),
            ("allocated again at", self.allocated),
        )
        return [f"{what} {line}" for what, line in history if line]
