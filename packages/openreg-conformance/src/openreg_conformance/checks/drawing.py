# SPDX-License-Identifier: BSD-3-Clause
"""Checks of random numbers, which may differ between devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .comparison import describe
from .mirrors import parts, tensors

if TYPE_CHECKING:
    from .tally import Attempt

# Creates a result on a device again.
Redraw = Callable[[str], "Attempt"]

DRAWS = 32  # on each device
ELEMENTS = 32  # of a tensor that are compared individually
# The distance between distribution functions of 32 draws each, which chance exceeds
# once in 10**8 comparisons.
APART = 0.75


class _Watch(TorchDispatchMode):
    """Notes whether an operator has PyTorch's tag for random results."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def draws(redraw: Redraw) -> bool:
    """Returns whether random numbers are drawn."""
    with _Watch() as watch:
        redraw("cpu")
    return watch.seen


@contextlib.contextmanager
def _seeds_shifted(by: int) -> Iterator[None]:
    """Shifts every seed, because operators of PyTorch's database set a seed."""
    real = torch.manual_seed
    with mock.patch.object(torch, "manual_seed", lambda seed: real(seed + by)):
        yield


def difference(redraw: Redraw, device: str) -> str | None:
    """Returns a difference between the distributions of random numbers, if any.

    Draws with many seeds. Takes a few facts of every tensor, such as the mean and
    single elements. The elements may depend on each other, but the facts of two draws
    are independent, so the device's and the CPU's facts are samples of a distribution,
    which the Kolmogorov-Smirnov test compares.
    """

    def draw(device: str, number: int) -> Attempt:
        with _seeds_shifted(1000 * number):
            return redraw(device)

    expected, mine = (
        [draw(each, i) for i in range(1, DRAWS + 1)] for each in ("cpu", device)
    )
    if any(each.error is not None for each in expected):
        return None
    for each in mine:
        if each.error is not None:
            return f"{describe(each.error)} with another seed (on the CPU: no error)"
    theirs, ours = (
        [_facts(each.value) for each in drawn] for drawn in (expected, mine)
    )
    if len({tuple(each) for each in theirs}) > 1:
        return None  # the drawn numbers determine the shapes
    if any(tuple(each) != tuple(theirs[0]) for each in ours):
        return "the shapes depend on the seed"
    tables = (
        torch.tensor([list(each.values()) for each in drawn], dtype=torch.float64).T
        for drawn in (ours, theirs)
    )
    problem = _compare(list(theirs[0]), *tables)
    return problem or _unlike(_facts(draw(device, 1).value), ours[0])


def _facts(value: Any) -> dict[str, float]:
    """Returns numbers that characterize a result, by name."""
    found: dict[str, float] = {}
    strided = [part for each in tensors(value) for part in parts(each)]
    for i, tensor in enumerate(strided):
        x = tensor.detach().cpu().resolve_conj().resolve_neg()
        x = torch.view_as_real(x) if x.is_complex() else x
        x = x.reshape(-1).to(torch.float64)
        if not x.numel():
            continue
        finite = x[x.isfinite()]
        kept = finite if finite.numel() else torch.zeros(1, dtype=torch.float64)
        about: dict[str, Any] = {
            "number of finite elements": finite.numel(),
            "mean": kept.mean(),
            "deviation": kept.std(correction=0),
            "least element": kept.min(),
            "median": kept.median(),
            "greatest element": kept.max(),
        }
        places = torch.linspace(0, x.numel() - 1, min(x.numel(), ELEMENTS)).long()
        for place in places.tolist():
            about[f"element {place}"] = torch.nan_to_num(x[place], 0.0, 0.0, 0.0)
        found |= {f"{name} of result {i}": float(fact) for name, fact in about.items()}
    return found


def _compare(names: list[str], ours: Tensor, theirs: Tensor) -> str | None:
    """Compares facts, each with a row of draws."""
    if not names:
        return None
    different = [each.unique(dim=1).shape[1] for each in (ours, theirs)]
    if different[0] == 1 and different[1] > DRAWS / 2:
        return "every seed draws the same numbers"
    # Rounding does not count as a difference.
    slack = _slack(names, theirs)[:, None]
    ours, theirs = ours.sort().values, theirs.sort().values
    ranks = torch.arange(1, DRAWS + 1).expand_as(ours)
    apart = [
        (ranks - torch.searchsorted(other, one + slack, right=True)).amax(1) / DRAWS
        for one, other in ((ours, theirs), (theirs, ours))
    ]
    worst, at = torch.maximum(*apart).max(0)
    if worst < APART:
        return None
    one, other = (f"{rows[at][0]:.4g} to {rows[at][-1]:.4g}" for rows in (ours, theirs))
    return (
        f"random numbers of another distribution: {names[int(at)]} is {one} in "
        f"{DRAWS} draws, on the CPU {other}"
    )


def _slack(names: list[str], theirs: Tensor) -> Tensor:
    """Returns the tolerance of a fact."""
    sizes = theirs.abs().median(1).values
    results = [name.rpartition(" ")[2] for name in names]
    whole = {
        each: sizes[[i for i, name in enumerate(results) if name == each]].median()
        for each in set(results)
    }
    return 1e-5 + 0.02 * sizes + 1e-3 * torch.stack([whole[each] for each in results])


def _unlike(again: dict[str, float], before: dict[str, float]) -> str | None:
    one, other = (
        torch.tensor(list(each.values()), dtype=torch.float64)
        for each in (again, before)
    )
    same = torch.allclose(one, other, rtol=1e-3, atol=1e-5)
    return None if same else "the same seed draws other numbers"
