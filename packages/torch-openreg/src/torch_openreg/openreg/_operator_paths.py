# SPDX-License-Identifier: BSD-3-Clause
"""Counts the operators of a program by their dispatch path."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from openreg_aten import _C

if TYPE_CHECKING:
    from types import TracebackType


class operator_paths:  # noqa: N801 - used as a function, like torch.no_grad
    """Counts operators by their dispatch path, in all threads, while it is open.

    A call counts as one of:

    - ``"structured"``: the CPU's kernel straight under PyTorch's iterator;
    - ``"typed"``: the CPU's kernel, in the operator's own C++ signature;
    - ``"stub"``: the CPU's kernel of a ``DispatchStub``, for PyTorch's own function;
    - ``"boxed"``: the kernel that serves all other operators;
    - ``"compiled"``: a kernel that Inductor wrote, with the name of the kernel;
    - ``"enqueued"``, instead: any of them, later, by the executor of the stream; if its
      results had other strides than predicted, as ``"corrected"``, too.

    What is not counted runs no kernel of the CPU as it is: views, copies, new tensors,
    and operators that PyTorch composes of others, which are counted in their place.

    Attributes:
        calls: Number of calls by name of the operator and path; complete when the
            block has ended.

    Example:
        >>> with torch.openreg.operator_paths() as paths:
        ...     y = torch.ones(2, device="openreg").exp()
        >>> paths.calls["aten::exp", "structured"]
        1
    """

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> operator_paths:
        self._before = _counts()
        _C.count_paths(1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _C.count_paths(-1)
        self.calls = _counts() - self._before

    def __str__(self) -> str:
        """Gives a table, the most frequent operator first."""
        return "\n".join(
            f"{count:>8} {path:<11}{name}"
            for (name, path), count in self.calls.most_common()
        )


def _counts() -> Counter[tuple[str, str]]:
    return Counter({(name, path): count for name, path, count in _C.path_counts()})
