# SPDX-License-Identifier: BSD-3-Clause
"""Fitted models: constants, a correction learned from residuals, and a spread.

Each entry costs some works of a class. Its constants are fitted on all training rows;
a generation of devices with training rows has separate constants, which are pulled
to the general ones. The correction interpolates the residuals of training rows of the
same shape: fully within a generation, in part or not at all between generations.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from openreg_predict._costs.interval import Interval
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._devices.hardware import distance, hardware, matrix_rate
from openreg_predict._formulas import (
    attention,
    collective,
    convolution,
    gemm,
    grouped,
    memory,
)
from openreg_predict._formulas.columns import Array, Constants, columns
from openreg_predict._works.work import Work

FILE = Path(__file__).parents[1] / "constants.json"


@dataclass(frozen=True)
class Family:
    """The properties that the models of an entry share.

    Attributes:
        module: The module of the cost model.
        facts: The facts that the model reads.
        length: The distance, in powers of 2, over which residuals are similar.
        shared: The similarity of residuals of two generations, from 0 to 1.
        pull: How strongly a generation's constants are pulled to the general ones.
    """

    module: ModuleType
    facts: tuple[str, ...]
    length: float = 1.5
    shared: float = 0.0
    pull: float = 0.01


_GEMM = ("b", "m", "n", "k")
_CONV = ("n", "c", "h", "w", "k", "r", "s", "p", "q", "sh", "sw", "g", "input",
         "weight", "host_timed")  # fmt: skip
_ATTENTION = ("b", "s", "t", "h", "kv", "d", "causal", "scale")
_MEMORY = ("m", "n", "host_timed")
FAMILIES: dict[str, Family] = {
    "gemm.vector": Family(gemm, _GEMM),
    "gemm.matrix": Family(gemm, _GEMM),
    "gemm.amd": Family(gemm, _GEMM),
    "gemm.fp8_linear": Family(gemm, _GEMM),
    "gemm.timed": Family(gemm, _GEMM),
    "gemm.timed_matrix": Family(gemm, _GEMM),
    "attention.prefill": Family(attention, _ATTENTION, shared=0.6),
    "attention.full": Family(attention, _ATTENTION, shared=0.6),
    "attention.decode": Family(attention, _ATTENTION, shared=0.3),
    "convolution.vector": Family(convolution, _CONV, 2.5, 0.8),
    "convolution.matrix": Family(convolution, _CONV, 2.5, 0.8),
    "grouped": Family(grouped, ("t", "h", "i", "topk", "e", "active")),
    "memory.pointwise": Family(memory, _MEMORY),
    "memory.fused": Family(memory, _MEMORY),
    "memory.cast": Family(memory, _MEMORY),
    "memory.softmax": Family(memory, _MEMORY, shared=0.3),
    "memory.layer_norm": Family(memory, _MEMORY, 2.5, 0.8),
    "memory.rms_norm": Family(memory, _MEMORY),
    "memory.host": Family(memory, _MEMORY),
    "collective": Family(
        collective, ("devices", "sent", "reduces", "rounds", "exchange")
    ),
}


def entry_of(work: Work, device: DescribedDevice) -> str:
    """Returns the name of the entry that costs a work on a device."""
    amd = hardware(device).vendor == "amd"
    matrix = matrix_rate(device, work.dtype.split(">")[0])[1]
    match work.kind:
        case "gemm":
            if work.operator == "fp8_linear":
                return "gemm.fp8_linear"
            if work.facts.get("host_timed"):
                return "gemm.timed_matrix" if matrix else "gemm.timed"
            return "gemm.amd" if amd else "gemm.matrix" if matrix else "gemm.vector"
        case "grouped" | "collective":
            return work.kind
        case "attention":
            if work.fact("s") == 1:
                return "attention.decode"
            return "attention.prefill" if work.facts.get("causal") else "attention.full"
        case "convolution":
            if work.fact("g", 1) == work.fact("c", 1) > 1:  # depthwise
                return "memory.pointwise"
            return "convolution.matrix" if matrix else "convolution.vector"
    if work.facts.get("host_timed"):
        return "memory.host"
    if work.operator in ("cast",):
        return "memory.cast"
    if work.operator in ("silu_mul",):
        return "memory.fused"
    if "softmax" in work.operator:
        return "memory.softmax"
    if "rms_norm" in work.operator:
        return "memory.rms_norm"
    if "norm" in work.operator:
        return "memory.layer_norm"
    return "memory.pointwise"


@dataclass(frozen=True)
class Correction:
    """An interpolation of residuals of training rows.

    Attributes:
        points: The features of the rows.
        weights: The weight of each row.
        generations: The generation of each row.
    """

    points: Array
    weights: Array
    generations: tuple[str, ...]

    def at(self, family: Family, points: Array, generations: Sequence[str]) -> Array:
        """Returns the logarithms of the factors at other points."""
        if not len(self.points):
            return np.zeros(len(points))
        near = similarity(family, points, generations, self.points, self.generations)
        result: Array = near @ self.weights
        return result


def similarity(
    family: Family,
    points: Array,
    generations: Sequence[str],
    others: Array,
    other_generations: Sequence[str],
) -> Array:
    """Returns how similar the residuals of rows are to residuals of other rows."""
    difference = (points[:, None] - others[None]) / family.length
    near = np.exp(-0.5 * (difference**2).sum(axis=2))
    kinds = sorted({*generations, *other_generations})
    close = np.array([[distance(a, b) for b in kinds] for a in kinds])
    shared = np.where(close == 0, 1, np.where(close > 10, 0, family.shared**close))
    common = np.where(close == 0, _OF_GENERATION, 0)
    rows = np.array([kinds.index(g) for g in generations], dtype=int)[:, None]
    others_rows = np.array([kinds.index(g) for g in other_generations], dtype=int)
    result: Array = shared[rows, others_rows] * near + common[rows, others_rows]
    return result


# Generations at most this far apart use the same constants.
_CLOSE = 0.6
# Variances relative to that of a residual's dependence on shape.
_OF_GENERATION = 0.3
_OF_DEVICE = 0.3
_NOISE = 0.15


def correction_of(
    family: Family,
    points: Array,
    residuals: Array,
    generations: Sequence[str],
    devices: Sequence[str],
) -> Correction:
    """Learns a correction from the residuals of training rows.

    Args:
        family: The family of the entry.
        points: The features of the rows.
        residuals: The logarithms of measured / predicted.
        generations: The generation of each row.
        devices: The device and the source of each row.
    """
    matrix = similarity(family, points, generations, points, generations)
    same = np.array(devices)[:, None] == np.array(devices)[None]
    matrix = matrix + _OF_DEVICE * same + _NOISE * np.eye(len(points))
    weights = np.linalg.solve(matrix, residuals)
    return Correction(points, weights, tuple(generations))


@dataclass(frozen=True)
class Entry:
    """A fitted model.

    Attributes:
        name: The name, a key of ``FAMILIES``.
        constants: The general constants.
        generations: The constants of generations with training rows.
        correction: The correction of residuals.
        spread: Factors of the bounds of 80 %, for devices with the chip of a training
            device ("chip"), for others of a known generation ("same"), and for
            unknown generations ("other").
        chips: The chips of training devices, see :func:`chip_of`.
    """

    name: str
    constants: Constants
    generations: Mapping[str, Constants]
    correction: Correction
    spread: Mapping[str, tuple[float, float]]
    chips: Collection[str] = ()

    @property
    def family(self) -> Family:
        """The family of the entry."""
        return FAMILIES[self.name]

    def constants_for(self, generation: str) -> Constants:
        """Returns the constants of the closest generation, or the general ones."""
        near = min(
            self.generations, key=lambda g: distance(g, generation), default=generation
        )
        if near not in self.generations or distance(near, generation) > _CLOSE:
            return self.constants
        return self.generations[near]

    def seconds(
        self, works: Sequence[Work], devices: Sequence[DescribedDevice]
    ) -> Array:
        """Returns the time of each work on its device."""
        family = self.family
        x = columns(works, devices, family.facts)
        generations = [hardware(d).generation for d in devices]
        result = np.empty(len(works))
        for generation in set(generations):
            here = np.array([g == generation for g in generations])
            part = {name: column[here] for name, column in x.items()}
            constants = self.constants_for(generation)
            result[here] = family.module.seconds(constants, part)
        points = family.module.features(x)
        corrected = result * np.exp(self.correction.at(family, points, generations))
        # No correction exceeds the peak, or the bandwidth for bytes beyond the L2.
        if family.module in (gemm, attention):
            corrected = np.maximum(corrected, x["flops"] / x["rate"])
        if family.module is memory:
            beyond = x["read"] + x["written"] - 2 * x["l2"]
            corrected = np.maximum(corrected, beyond / x["bandwidth"])
        times: Array = corrected
        return times

    def _nearness(self, device: DescribedDevice) -> str:
        """Returns how near a device is to the training devices: a key of the spread."""
        if chip_of(self.name, device) in self.chips:
            return "chip"
        known = hardware(device).generation in self.generations
        return "same" if known else "other"

    def predict(
        self, works: Sequence[Work], devices: Sequence[DescribedDevice]
    ) -> list[Interval]:
        """Returns the time of each work on its device, with its interval."""
        times = self.seconds(works, devices)
        result = []
        for time, device in zip(times.tolist(), devices, strict=True):
            low, high = self.spread[self._nearness(device)]
            wider = 1.15 ** len(hardware(device).derived)
            result.append(Interval.around(time, low / wider, high * wider))
        return result


def chip_of(name: str, device: DescribedDevice) -> str:
    """Returns what devices with the same chip share, such as an H100 and an H200.

    For collectives, it is the link instead of the units and the cache.
    """
    row = hardware(device)
    if name == "collective":
        return f"{row.generation} {row.link:.3g}"
    return f"{row.generation} {row.units:.0f} {row.l2:.3g}"


def to_json(entry: Entry) -> dict[str, Any]:
    """Returns an entry as JSON's types, with rounded numbers."""

    def rounded(values: Array, digits: int) -> list[Any]:
        return list(np.round(values, digits).tolist())

    names = sorted(set(entry.correction.generations))
    return {
        "constants": {k: float(f"{v:.4g}") for k, v in entry.constants.items()},
        "generations": {
            g: {k: float(f"{v:.4g}") for k, v in c.items()}
            for g, c in sorted(entry.generations.items())
        },
        "spread": {k: [round(x, 3) for x in v] for k, v in entry.spread.items()},
        "chips": sorted(entry.chips),
        "correction": {
            "generations": names,
            "generation": [names.index(g) for g in entry.correction.generations],
            "points": rounded(entry.correction.points, 2),
            "weights": rounded(entry.correction.weights, 4),
        },
    }


def from_json(name: str, data: Mapping[str, Any]) -> Entry:
    """Reads an entry of the file of constants."""
    raw = data["correction"]
    names, indices = raw["generations"], raw["generation"]
    points = np.array(raw["points"], dtype=np.float64)
    return Entry(
        name,
        dict(data["constants"]),
        dict(data["generations"]),
        Correction(
            points.reshape(len(indices), -1),
            np.array(raw["weights"], dtype=np.float64),
            tuple(names[i] for i in indices),
        ),
        {key: (low, high) for key, (low, high) in data["spread"].items()},
        frozenset(data["chips"]),
    )


@functools.cache
def _data() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return result


@functools.cache
def entries() -> Mapping[str, Entry]:
    """Returns the fitted entries of the package."""
    return {name: from_json(name, each) for name, each in _data()["entries"].items()}


def model_constants() -> Constants:
    """Returns the constants of whole models."""
    return dict(_data()["models"]["constants"])


def model_spread() -> Mapping[str, tuple[float, float]]:
    """Returns the factors of the bounds of whole models, by kind."""
    spread = _data()["models"]["spread"]
    return {kind: (low, high) for kind, (low, high) in spread.items()}


def fitted_rows() -> Mapping[str, Any]:
    """Returns the rows of tables that each entry was fitted on."""
    result: Mapping[str, Any] = _data()["rows"]
    return result
