# SPDX-License-Identifier: BSD-3-Clause
"""Fits the constants of openreg-predict to measured training rows.

    python tools/fit_prediction.py FOLDER              writes constants.json
    python tools/fit_prediction.py FOLDER --only gemm  prints errors of some entries

FOLDER has ``train_ops.csv``, ``train_comm.csv``, ``train_models.csv``,
``train_graphs.csv`` and ``devices``. No other table is read. Errors are printed for
each device, fitted without its rows.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from openreg_predict._costs import models as whole_models
from openreg_predict._costs.entries import (
    FAMILIES,
    FILE,
    Correction,
    Entry,
    chip_of,
    correction_of,
    entry_of,
    to_json,
)
from openreg_predict._costs.fitting import Constants, fit, relative_error
from openreg_predict._devices.description import DescribedDevice, load_device
from openreg_predict._devices.hardware import hardware
from openreg_predict._formulas.columns import POWER, Array, columns
from openreg_predict._works.table import work_of_row
from openreg_predict._works.work import Work

Mask = npt.NDArray[np.bool_]
TABLES = ("train_ops.csv", "train_comm.csv")
NO_CORRECTION = Correction(np.zeros((0, 0)), np.zeros(0), ())


@dataclass
class Rows:
    """Rows of one entry, as columns."""

    ids: npt.NDArray[np.str_]
    works: list[Work]
    devices: list[DescribedDevice]
    sources: list[str]
    measured: Array

    def part(self, keep: Mask) -> Rows:
        """Returns the rows where ``keep`` is true."""
        where = np.flatnonzero(keep)
        return Rows(
            self.ids[where],
            [self.works[i] for i in where],
            [self.devices[i] for i in where],
            [self.sources[i] for i in where],
            self.measured[where],
        )

    @property
    def generations(self) -> list[str]:
        """The generation of each row's device."""
        return [hardware(d).generation for d in self.devices]


def read(folder: Path) -> dict[str, Rows]:
    """Reads the training rows of single operators, by entry."""
    devices: dict[str, DescribedDevice] = {}
    groups: dict[str, list[tuple[str, Work, DescribedDevice, str, float]]] = {}
    for table in TABLES:
        with (folder / table).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                name = row["device"]
                if name not in devices:
                    devices[name] = load_device(
                        folder / "devices" / f"{name}.yaml"
                    ).sheet
                work = work_of_row(row["op_or_model"], row["config"], row["dtype"])
                entry = entry_of(work, devices[name])
                source = row["source"].split("/")[0]
                groups.setdefault(entry, []).append(
                    (row["id"], work, devices[name], source, float(row["value"]))
                )
    return {
        name: Rows(
            np.array([r[0] for r in rows]),
            [r[1] for r in rows],
            [r[2] for r in rows],
            [r[3] for r in rows],
            np.array([r[4] for r in rows]),
        )
        for name, rows in groups.items()
    }


def constants_of(name: str, rows: Rows, start: Constants, pull: float) -> Constants:
    """Fits the constants of an entry."""
    family = FAMILIES[name]
    x = columns(rows.works, rows.devices, family.facts)
    groups = [f"{d.id} {s}" for d, s in zip(rows.devices, rows.sources, strict=True)]
    counts = {g: groups.count(g) for g in set(groups)}
    weights = np.array([counts[g] ** -0.5 for g in groups])
    return fit(
        lambda c: family.module.seconds(c, x),
        start,
        rows.measured,
        weights=weights,
        pull=pull,
        fixed=tuple(POWER),
    )


def learn(name: str, rows: Rows, start: Constants | None = None) -> Entry:
    """Fits the constants of an entry, and its correction."""
    family = FAMILIES[name]
    general = constants_of(name, rows, start or family.module.START, 2e-3)
    generations = {}
    names = np.array(rows.generations)
    for generation in sorted(set(rows.generations)):
        part = rows.part(names == generation)
        generations[generation] = constants_of(name, part, general, family.pull)
    plain = Entry(name, general, generations, NO_CORRECTION, {})
    x = columns(rows.works, rows.devices, family.facts)
    residuals = np.log(rows.measured / plain.seconds(rows.works, rows.devices))
    devices = [f"{d.id} {s}" for d, s in zip(rows.devices, rows.sources, strict=True)]
    correction = correction_of(
        family, family.module.features(x), residuals, rows.generations, devices
    )
    return replace(plain, correction=correction)


def quantiles(residuals: Array) -> tuple[float, float]:
    """Returns the factors of the bounds between which 80 % of residuals lie."""
    low, high = np.exp(np.quantile(residuals, [0.1, 0.9])).tolist()
    return min(low, 1.0), max(high, 1.0)


def weighted_quantiles(parts: Sequence[Array]) -> tuple[float, float]:
    """Returns the bounds of residuals, with equal weight for each part."""
    values = np.concatenate(parts)
    weights = np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.exp(np.interp([0.1, 0.9], share, values[order])).tolist()
    return min(low, 1.0), max(high, 1.0)


def held_out(name: str, rows: Rows, own: Mask, start: Constants, what: str) -> Array:
    """Fits an entry without some rows, and returns their residuals."""
    entry = learn(name, rows.part(~own), start)
    test = rows.part(own)
    plain = replace(entry, correction=NO_CORRECTION)
    times = entry.seconds(test.works, test.devices)
    without = plain.seconds(test.works, test.devices)
    print(
        f"  without {what:<24} n={len(test.works):<5} "
        f"error {100 * relative_error(times, test.measured):.1f} %, without correction "
        f"{100 * relative_error(without, test.measured):.1f} %",
        flush=True,
    )
    result: Array = np.log(test.measured / times)
    return result


@dataclass
class Judgement:
    """Residuals of rows that an entry was fitted without.

    Attributes:
        folds: Rows predicted from other rows of their device.
        twins: Rows of devices predicted from others with their chip.
        siblings: Rows of devices predicted from others of their generation, but not
            of their chip.
        strangers: Rows of devices predicted from other generations.
    """

    folds: Array
    twins: list[Array]
    siblings: list[Array]
    strangers: list[Array]


def judge(name: str, rows: Rows, entry: Entry) -> Judgement:
    """Fits an entry without folds, devices and generations, in turn."""
    ids = np.array([d.id for d in rows.devices])
    generations = np.array(rows.generations)
    start = entry.constants
    places = np.random.default_rng(0).permutation(len(ids)) % 5
    folds = [held_out(name, rows, places == k, start, f"fold {k}") for k in range(5)]
    result = Judgement(np.concatenate(folds), [], [], [])
    chips = np.array([chip_of(name, d) for d in rows.devices])
    for generation in sorted(set(generations)):
        members = sorted(set(ids[generations == generation]))
        if len(members) > 1:
            for member in members:
                own = ids == member
                residuals = held_out(name, rows, own, start, member)
                has_twin = chips[own][0] in chips[~own]
                (result.twins if has_twin else result.siblings).append(residuals)
        if (generations != generation).any():
            own = generations == generation
            result.strangers += [
                held_out(name, rows, own & (ids == m), start, f"{generation}: {m}")
                if len(members) == 1
                else held_out(name, rows, own, start, generation)
                for m in members[:1]
            ]
    return result


def typical_offset(parts: Sequence[Array]) -> float:
    """Returns the standard deviation of the mean residuals of devices."""
    return float(1.25 * np.mean([abs(part.mean()) for part in parts]))


def widened(bounds: tuple[float, float], offset: float) -> tuple[float, float]:
    """Returns bounds with the error of a device added, independent of the others."""
    more = 1.28 * offset  # what 80 % of a normal distribution are within
    low, high = (math.hypot(math.log(x), more) for x in bounds)
    return math.exp(-low), math.exp(high)


def bounds_of(
    judged: dict[str, Judgement],
) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns the bounds of each entry, for known generations and for others.

    An entry without a second device takes the typical error between devices from the
    entries that have one.
    """
    twin = typical_offset([r for j in judged.values() for r in j.twins])
    near = typical_offset([r for j in judged.values() for r in j.siblings])
    far = typical_offset([r for j in judged.values() for r in j.strangers])
    print(
        f"typical error of a device: {twin:.3f} if its chip is known, {near:.3f} if "
        f"its generation is, otherwise {far:.3f}"
    )
    near = min(near, far)  # outliers of one source must not make it less certain
    result = {}
    for name, each in judged.items():
        folds = quantiles(each.folds)
        chip = (
            weighted_quantiles([each.folds, *each.twins])
            if each.twins
            else widened(folds, twin)
        )
        same = (
            weighted_quantiles([each.folds, *each.siblings])
            if each.siblings
            else widened(folds, near)
        )
        other = (
            weighted_quantiles(each.strangers)
            if each.strangers
            else widened(folds, far)
        )
        result[name] = {
            "chip": chip,
            "same": (min(same[0], chip[0]), max(same[1], chip[1])),
            "other": (
                min(other[0], same[0], chip[0]),
                max(other[1], same[1], chip[1]),
            ),
        }
    return result


def ranges(ids: Sequence[str]) -> str:
    """Returns row ids as ranges, such as ``tro00000-tro00299``."""
    numbers = sorted(int(each[3:]) for each in ids)
    prefix = ids[0][:3]
    parts: list[list[int]] = []
    width = len(ids[0]) - 3
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])

    def name(number: int) -> str:
        return f"{prefix}{number:0{width}}"

    return ",".join(
        name(first) if first == last else f"{name(first)}-{name(last)}"
        for first, last in parts
    )


def sources_of(rows: Rows) -> dict[str, str]:
    """Returns the ids of rows by device and source."""
    groups: dict[str, list[str]] = {}
    for each, device, source in zip(rows.ids, rows.devices, rows.sources, strict=True):
        groups.setdefault(f"{device.id} {source}", []).append(str(each))
    return {key: ranges(ids) for key, ids in sorted(groups.items())}


@dataclass
class Models:
    """Rows of whole models."""

    ids: list[str]
    sums: list[dict[str, float]]
    measured: Array
    kinds: list[str]
    devices: list[str]
    names: list[str]
    sources: list[str]


def read_models(folder: Path, fitted: dict[str, Entry]) -> Models:
    """Reads the training rows of whole models."""
    graphs: dict[str, list[dict[str, str]]] = {}
    with (folder / "train_graphs.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            graphs.setdefault(row["graph"], []).append(row)
    result = Models([], [], np.zeros(0), [], [], [], [])
    measured = []
    devices: dict[str, DescribedDevice] = {}
    with (folder / "train_models.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["graph"] not in graphs or row["unit"] != "s":
                continue
            name = row["device"]
            if name not in devices:
                devices[name] = load_device(folder / "devices" / f"{name}.yaml").sheet
            steps = whole_models.steps_of(graphs[row["graph"]], row["config"])
            sums = whole_models.features(fitted, steps, row["config"], devices[name])
            result.ids.append(row["id"])
            result.sums.append(sums)
            measured.append(float(row["value"]))
            result.kinds.append(whole_models.kind_of(row["config"], row["dtype"]))
            result.devices.append(name)
            result.names.append(row["op_or_model"])
            result.sources.append(row["source"].split("/")[0])
    result.measured = np.array(measured)
    return result


# Constants that no training row tells: they keep their start.
ASSUMED = ("fused", "fused_copy", "fused_norm", "host.kernel", "graph.kernel",
           "exposed", "train_f16", "mm.backward")  # fmt: skip


def fit_models(models: Models, keep: Mask, start: Constants) -> Constants:
    """Fits the constants of whole models to some rows."""
    kinds = np.array(models.kinds)[keep]
    weights = np.array([(kinds == k).sum() ** -0.5 for k in kinds])
    sums = [s for s, kept in zip(models.sums, keep, strict=True) if kept]
    return fit(
        lambda c: whole_models.seconds(c, sums),
        start,
        models.measured[keep],
        weights=weights,
        pull=1e-3,
        fixed=ASSUMED,
    )


def learn_models(models: Models) -> tuple[Constants, dict[str, tuple[float, float]]]:
    """Fits the constants of whole models, and bounds from rows left out in turn."""
    everything = np.ones(len(models.ids), dtype=bool)
    constants = fit_models(models, everything, whole_models.START)
    kinds, devices = np.array(models.kinds), np.array(models.devices)
    names = np.array(models.names)
    residuals: dict[str, list[Array]] = {}
    away: list[Array] = []
    fold_of = {n: i % 5 for i, n in enumerate(sorted(set(names)))}
    folds = np.array([fold_of[n] for n in names])
    cases = [(f"models of fold {k}", folds == k) for k in range(5)]
    cases += [(d, devices == d) for d in sorted(set(devices)) if d != "rtx3090"]
    for what, own in cases:
        fitted = fit_models(models, ~own, constants)
        for kind in sorted({str(k) for k in kinds[own]}):
            here = own & (kinds == kind)
            sums = [s for s, kept in zip(models.sums, here, strict=True) if kept]
            times = whole_models.seconds(fitted, sums)
            error = 100 * relative_error(times, models.measured[here])
            print(
                f"  without {what:<20} {kind:<8} n={here.sum():<4} error {error:.1f} %"
            )
            residual = np.log(models.measured[here] / times)
            residuals.setdefault(kind, []).append(residual)
            if what in devices and kind == "single":
                away.append(residual)
    offset = typical_offset(away)
    print(f"typical error of a device, whole models: {offset:.3f}")
    bounds = {kind: weighted_quantiles(parts) for kind, parts in residuals.items()}
    for kind in ("infer", "train", "decode"):  # from rows of one device
        bounds[kind] = widened(bounds[kind], offset)
    # Without training rows: as wide as eager inference, and more.
    bounds["compiled"] = widened(bounds["infer"], offset)
    bounds["sharded"] = widened(bounds["compiled"], offset)
    return constants, bounds


def digest(folder: Path) -> str:
    """Returns a hash of the training tables."""
    result = hashlib.sha256()
    for table in (*TABLES, "train_models.csv", "train_graphs.csv"):
        result.update((folder / table).read_bytes())
    return result.hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    fitted: dict[str, Entry] = {}
    judged: dict[str, Judgement] = {}
    rows_of: dict[str, dict[str, str]] = {}
    for name, rows in sorted(read(options.folder).items()):
        if not name.startswith(options.only):
            continue
        entry = learn(name, rows)
        plain = replace(entry, correction=NO_CORRECTION)
        before = plain.seconds(rows.works, rows.devices)
        after = entry.seconds(rows.works, rows.devices)
        print(
            f"{name}: {len(rows.works)} rows, "
            f"fitted {100 * relative_error(before, rows.measured):.1f} %, "
            f"corrected {100 * relative_error(after, rows.measured):.1f} %"
        )
        print("  ", {k: float(f"{v:.3g}") for k, v in entry.constants.items()})
        chips = {chip_of(name, device) for device in rows.devices}
        fitted[name] = entry = replace(entry, chips=frozenset(chips))
        judged[name] = judge(name, rows, entry)
        rows_of[name] = sources_of(rows)
    for name, spread in bounds_of(judged).items():
        fitted[name] = replace(fitted[name], spread=spread)
        print(name, {k: [round(x, 2) for x in v] for k, v in spread.items()})
    if options.only:
        return 0
    models = read_models(options.folder, fitted)
    constants, bounds = learn_models(models)
    print({k: float(f"{v:.3g}") for k, v in constants.items()}, bounds)
    groups: dict[str, list[str]] = {}
    for each, device, source in zip(
        models.ids, models.devices, models.sources, strict=True
    ):
        groups.setdefault(f"{device} {source}", []).append(each)
    rows_of["models"] = {key: ranges(ids) for key, ids in sorted(groups.items())}
    data = {
        "tables": digest(options.folder),
        "rows": rows_of,
        "models": {
            "constants": {k: float(f"{v:.4g}") for k, v in constants.items()},
            "assumed": list(ASSUMED),
            "spread": {k: [round(x, 3) for x in v] for k, v in bounds.items()},
        },
        "entries": {name: to_json(entry) for name, entry in fitted.items()},
    }
    FILE.write_text(_dump(data), encoding="utf-8")
    return 0


def _dump(data: dict[str, Any]) -> str:
    """Returns JSON with a line for each list and each short mapping."""

    def lines(value: Any, indent: str) -> str:
        if isinstance(value, dict) and any(
            isinstance(v, (dict, list)) for v in value.values()
        ):
            deeper = indent + " "
            parts = [
                f"{deeper}{json.dumps(k)}: {lines(v, deeper)}" for k, v in value.items()
            ]
            return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
        return json.dumps(
            value, separators=(", ", ": ") if isinstance(value, dict) else (",", ":")
        )

    return lines(data, "") + "\n"


if __name__ == "__main__":
    sys.exit(main())
