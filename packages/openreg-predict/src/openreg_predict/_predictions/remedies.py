# SPDX-License-Identifier: BSD-3-Clause
"""Changes that make a run fit into memory, each computed by another replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from openreg_predict._memory.replay import MemoryModel, MemoryUse, Plan
from openreg_predict._records.record import Alloc, Op, RecordedRun
from openreg_predict._reports.text import size_text

if TYPE_CHECKING:
    from openreg_predict._reports.prediction import Prediction

_STAGES = (
    ("ZeRO stage 1", ("optimizer",)),
    ("ZeRO stage 2", ("optimizer", "gradients")),
    ("ZeRO stage 3", ("optimizer", "gradients", "parameters")),
)
_RANKS = (2, 4, 8, 16, 32, 64)
_BY_BATCH = ("activations", "temporaries")


class Remedy(NamedTuple):
    """A change of a program, and the device memory that it then needs.

    Attributes:
        change: The name of the change.
        peak: The peak of reserved memory, in bytes.
        spare: The bytes that are left; negative if it does not fit.
        fits: Whether it fits.
    """

    change: str
    peak: int
    spare: int
    fits: bool


def remedies_of(prediction: Prediction) -> list[Remedy]:
    """Returns changes of the run with the most memory, and what they save."""
    worst = max(prediction.memory, key=lambda use: use.reserved_peak)
    model = prediction.analysis.memory
    found = []
    for change, plan in _plans(prediction, model, worst):
        use = _use(prediction, worst, plan)
        found.append(Remedy(change, use.reserved_peak, use.spare, use.fits))
    return found


def _plans(
    prediction: Prediction, model: MemoryModel, worst: MemoryUse
) -> Iterator[tuple[str, Plan]]:
    base = model.plan
    dropped = checkpointed(model.record, model)
    if dropped:
        yield "checkpointing of each block", replace(base, dropped=dropped)
    for part in (2, 4, 8):
        if any(owner in worst.holders for owner in _BY_BATCH):
            yield f"batch size / {part}", replace(base, size=_divided(_BY_BATCH, part))
    if "gradients" in worst.holders or "optimizer" in worst.holders:
        for name, owners in _STAGES:
            ranks = next(
                (
                    n
                    for n in _RANKS
                    if _use(
                        prediction, worst, replace(base, size=_divided(owners, n))
                    ).fits
                ),
                _RANKS[-1],
            )
            plan = replace(base, size=_divided(owners, ranks))
            yield f"{name} over {ranks} devices", plan
    if _has_wide_parameters(model):
        half = ("parameters", "gradients", *_BY_BATCH)
        yield "bfloat16 instead of float32", replace(base, size=_divided(half, 2))


def _use(prediction: Prediction, worst: MemoryUse, plan: Plan) -> MemoryUse:
    return prediction.analysis.memory.use(
        prediction.device,
        worst.device,
        plan,
        expandable=prediction.options["expandable"],
    )


def _divided(owners: tuple[str, ...], part: int) -> Callable[[str, int], int]:
    def size(owner: str, size: int) -> int:
        return -(-size // part) if owner in owners else size

    return size


def _has_wide_parameters(model: MemoryModel) -> bool:
    """Returns whether most parameters are float32."""
    sizes: dict[str, int] = {}
    seen: set[int] = set()
    for op in model.record.ops():
        for each in op.call.tensors():
            number = each.storage or 0
            if number not in seen and model.owners.get(number) == "parameters":
                seen.add(number)
                sizes[each.dtype] = sizes.get(each.dtype, 0) + each.bytes
    return sizes.get("f32", 0) > sum(sizes.values()) / 2


def checkpointed(record: RecordedRun, model: MemoryModel) -> dict[int, tuple[int, int]]:
    """Returns when activations would not exist if each block were computed again.

    A block is an element of a list of modules, such as ``layers.3``. Its activations
    end after its forward pass, and exist again when its backward pass begins; what it
    gets from outside is kept.
    """
    blocks = [_block(name) for name in record.modules]
    made: dict[int, tuple[str, int]] = {}
    forward_end: dict[tuple[str, int], int] = {}
    backward: dict[tuple[str, int], int] = {}
    other_readers: set[int] = set()
    turn: dict[str, int] = {}
    for index, event in enumerate(record.events):
        if not isinstance(event, Op) or not (block := blocks[event.module]):
            continue
        key = (block, turn.get(block, 0))
        if event.phase == "backward":
            backward.setdefault(key, index)
            continue
        if key in backward:  # the next step
            turn[block] = key[1] + 1
            key = (block, key[1] + 1)
        forward_end[key] = index
        for each in event.call.results:
            made.setdefault(each.storage or 0, key)
        for each in event.call.tensors():
            if made.get(each.storage or 0, key) != key:
                other_readers.add(each.storage or 0)
    alive = {each.storage for each in record.events if isinstance(each, Alloc)}
    return {
        storage: (forward_end[key], backward[key])
        for storage, key in made.items()
        if storage in alive
        and key in backward
        and storage not in other_readers
        and model.owners.get(storage) == "activations"
    }


def _block(name: str) -> str:
    """Returns the outermost element of a list of modules in a name, or ``""``."""
    parts = name.split(".")
    for i, part in enumerate(parts):
        if part.isdigit() and i > 0:
            return ".".join(parts[: i + 1])
    return ""


def remedies_table(prediction: Prediction, remedies: list[Remedy]) -> str:
    """Returns the changes as text."""
    if not remedies:
        return ""
    word = "what would save memory" if prediction.fits else "what would make it fit"
    lines = ["", f"{word:<40}{'reserved':>12}{'left':>12}"]
    for each in remedies:
        fits = "" if each.fits else "  does not fit"
        sizes = f"{size_text(each.peak):>12}{size_text(each.spare):>12}"
        lines.append(f"  {each.change:<38}{sizes}{fits}")
    return "\n".join(lines)
