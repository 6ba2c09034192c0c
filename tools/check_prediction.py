# SPDX-License-Identifier: BSD-3-Clause
"""Compares openreg-predict with measured tables, and with three other formulas.

    OPENREG_PREDICT_DATA=FOLDER python tools/check_prediction.py

FOLDER has ``devices``, ``train_*.csv`` and ``test_*.csv``. Predictions use no measured
field of a device. The errors are means of absolute relative errors in percent, for
    ours        openreg-predict
    roofline    max(operations / peak, bytes / bandwidth)
    torch       the estimate of torch: half of the operations at 75 % of the peak, or
                the bytes; for collectives the estimate of Inductor
    3 constants max(operations / 75 % of the peak, bytes / 80 % of the bandwidth) + 3 us
The last lines calibrate with 50 rows of a device, and predict its other rows.
"""

from __future__ import annotations

import csv
import math
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np

from openreg_predict import DescribedDevice, Interval, load_device
from openreg_predict._costs.calibration import Calibration
from openreg_predict._costs.cost import predict_all
from openreg_predict._costs.models import predict_model, steps_of
from openreg_predict._devices.hardware import hardware, matrix_rate
from openreg_predict._works.table import settings, work_of_row
from openreg_predict._works.work import Work

VARIABLE = "OPENREG_PREDICT_DATA"
CALIBRATED = (("h100-sxm", "op-gemm"), ("t4", "op-conv"), ("l4", "op-gemm"))
ROWS_TO_CALIBRATE = 50
Row = dict[str, str]
Graphs = Mapping[str, Sequence[Row]]


@dataclass
class Line:
    """The measured and predicted times of one table."""

    measured: list[float]
    ours: list[Interval]
    others: dict[str, list[float]]


def rows_of(path: Path) -> Iterator[Row]:
    """Yields the rows of a CSV."""
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def read(folder: Path, split: str) -> tuple[list[Row], dict[str, list[Row]]]:
    """Returns the rows of a split with a time, and the operators of its models."""
    rows = []
    for path in sorted(folder.glob(f"{split}_*.csv")):
        if "graphs" not in path.name:
            rows += [row for row in rows_of(path) if row["unit"] == "s"]
    graphs: dict[str, list[Row]] = defaultdict(list)
    for path in sorted(folder.glob("*_graphs.csv")):
        for row in rows_of(path):
            graphs[row["graph"]].append(row)
    return rows, graphs


def roofline(work: Work, device: DescribedDevice) -> tuple[float, float]:
    """Returns the times of the operations and of the bytes at the peaks."""
    dense = work.kind in ("gemm", "attention", "convolution", "grouped")
    dtype = work.dtype.split(">")[0]
    rate = matrix_rate(device, dtype)[0] if dense else hardware(device).vector
    return work.flops / rate, work.bytes / hardware(device).bandwidth


def collective(work: Work, device: DescribedDevice) -> tuple[float, float]:
    """Returns the time of the wire at its peak, and torch's estimate or nan."""
    row = hardware(device)
    near = work.fact("devices") <= row.domain
    bandwidth = row.link if near else row.network
    wire = float(work.facts["sent"]) / bandwidth if bandwidth else math.nan
    return wire, _estimate_of_torch(work, device)


def _estimate_of_torch(work: Work, device: DescribedDevice) -> float:
    from torch._inductor import comm_analysis

    generation = {"ampere": 1, "ada": 1, "hopper": 2}.get(device.generation, 0)
    name = {"alltoall": "ALL_TO_ALL"}.get(work.operator, work.operator.upper())
    found = comm_analysis.NVIDIA_GPU_TYPE(generation)
    vars(comm_analysis)["get_gpu_type"] = lambda: found
    for each in vars(comm_analysis).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()
    kind = getattr(comm_analysis.NCCL_COLL, name, None)
    if kind is None:
        return math.nan
    estimate = comm_analysis.estimate_nccl_collective_runtime_impl(
        int(work.read), work.fact("devices"), kind
    )
    return float(estimate) * 1e-3


def formulas(
    works: Sequence[tuple[Work, float]], device: DescribedDevice
) -> dict[str, float]:
    """Returns the times of the other formulas for works with their counts."""
    times = dict.fromkeys(("roofline", "torch", "3 constants"), 0.0)
    links = dict(times)
    for work, count in works:
        if work.kind == "collective":
            wire, estimate = collective(work, device)
            links["roofline"] += count * wire
            links["torch"] += count * estimate
            links["3 constants"] += count * (wire / 0.8 + 3e-6)
            continue
        compute, memory = roofline(work, device)
        halved = compute / 2 / 0.75 if work.kind not in _NOT_DENSE else 0
        times["roofline"] += count * max(compute, memory)
        times["torch"] += count * max(halved, memory)
        times["3 constants"] += count * (max(compute / 0.75, memory / 0.8) + 3e-6)
    return {name: max(times[name], links[name]) for name in times}


_NOT_DENSE = ("pointwise", "norm", "reduction", "copy", "pool", "gather", "scatter",
              "optimizer")  # fmt: skip


def predict(rows: Sequence[Row], graphs: Graphs, folder: Path) -> dict[str, Line]:
    """Predicts all rows; returns a line for each kind."""
    lines: dict[str, Line] = defaultdict(lambda: Line([], [], defaultdict(list)))
    for device, some in _by_device(rows, folder):
        single = [r for r in some if not r["kind"].startswith("e2e")]
        works = [work_of_row(r["op_or_model"], r["config"], r["dtype"]) for r in single]
        answers = list(zip(single, predict_all(works, device), strict=True))
        parts = [[(work, 1.0)] for work in works]
        for row in some:
            if row.get("graph") in graphs:
                graph = graphs[row["graph"]]
                time = predict_model(graph, row["config"], row["dtype"], device)
                answers.append((row, time))
                hidden = settings(row["config"]).get("compile") == "1"
                parts.append(
                    [
                        (work, step.count)
                        for step in steps_of(graph, row["config"])
                        for work in step.parts
                        if not (hidden and step.group in ("pointwise", "cast", "copy"))
                    ]
                )
        for (row, time), each in zip(answers, parts, strict=True):
            line = lines[row["kind"]]
            line.measured.append(float(row["value"]))
            line.ours.append(time)
            for name, value in formulas(each, device).items():
                line.others[name].append(value)
    return lines


def _by_device(
    rows: Sequence[Row], folder: Path
) -> Iterator[tuple[DescribedDevice, list[Row]]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["device"]].append(row)
    for name, some in sorted(groups.items()):
        yield load_device(folder / "devices" / f"{name}.yaml").sheet, some


def errors(predicted: Sequence[float], measured: Sequence[float]) -> list[float]:
    """Returns absolute relative errors in percent, without rows that have no answer."""
    pairs = zip(predicted, measured, strict=True)
    return [100 * abs(p / m - 1) for p, m in pairs if not math.isnan(p)]


def show(lines: Mapping[str, Line]) -> None:
    """Prints a row for each kind."""
    head = ("kind", "rows", "ours", "median", "cover", "width", "roofline", "torch",
            "3 constants")  # fmt: skip
    print(("{:<14}" + "{:>9}" * 7 + "{:>13}").format(*head))
    for kind, line in sorted(lines.items()):
        own = errors([t.value for t in line.ours], line.measured)
        inside = [
            t.low <= m <= t.high for t, m in zip(line.ours, line.measured, strict=True)
        ]
        cells = [f"{len(own)}", f"{mean(own):.1f}", f"{median(own):.1f}",
                 f"{100 * mean(inside):.0f}",
                 f"{median(t.width for t in line.ours):.2f}"]  # fmt: skip
        for name in ("roofline", "torch", "3 constants"):
            found = errors(line.others[name], line.measured)
            cells.append(f"{mean(found):.1f}" if found else "-")
        print(
            f"{kind:<14}" + "".join(f"{c:>9}" for c in cells[:-1]) + f"{cells[-1]:>13}"
        )


def calibrate(rows: Sequence[Row], folder: Path, device_name: str, kind: str) -> None:
    """Prints the error for a device before and after calibration with some rows."""
    some = [r for r in rows if (r["device"], r["kind"]) == (device_name, kind)]
    if len(some) <= ROWS_TO_CALIBRATE:
        return
    device = load_device(folder / "devices" / f"{device_name}.yaml").sheet
    order = np.random.default_rng(0).permutation(len(some)).tolist()
    works = [work_of_row(r["op_or_model"], r["config"], r["dtype"]) for r in some]
    measured = [float(r["value"]) for r in some]
    known, asked = order[:ROWS_TO_CALIBRATE], order[ROWS_TO_CALIBRATE:]
    calibration = Calibration(
        [works[i] for i in known], [measured[i] for i in known], device
    )
    wanted = [works[i] for i in asked]
    before = predict_all(wanted, device)
    after = calibration.corrected(wanted, before)
    truth = [measured[i] for i in asked]

    def error(times: Sequence[Interval]) -> float:
        return mean(errors([t.value for t in times], truth))

    inside = mean(t.low <= m <= t.high for t, m in zip(after, truth, strict=True))
    print(
        f"{kind} on {device_name}, {len(asked)} rows: {error(before):.1f} %; with "
        f"{ROWS_TO_CALIBRATE} rows of it {error(after):.1f} %, in bounds "
        f"{100 * inside:.0f} %"
    )


def main() -> int:
    """Runs the program."""
    if not (given := os.environ.get(VARIABLE)):
        print(f"skipped: {VARIABLE} does not name the folder of the measured tables")
        return 0
    folder = Path(given)
    if not (folder / "test_ops.csv").is_file():
        print(f"{VARIABLE} is {given!r}, which has no test_ops.csv", file=sys.stderr)
        return 1
    for split in ("train", "test"):
        rows, graphs = read(folder, split)
        print(f"{split} tables, errors in %:")
        show(predict(rows, graphs, folder))
    for device, kind in CALIBRATED:
        calibrate(rows, folder, device, kind)
    return 0


if __name__ == "__main__":
    sys.exit(main())
