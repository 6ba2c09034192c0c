# SPDX-License-Identifier: BSD-3-Clause
"""``openreg-predict ops`` and ``models``: times for the rows of a table."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from openreg_predict._commands._errors import CommandError, device_of
from openreg_predict._costs.calibration import Calibration
from openreg_predict._costs.cost import predict_all
from openreg_predict._costs.interval import Interval
from openreg_predict._costs.models import predict_model
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._works.table import RowError, work_of_row
from openreg_predict._works.work import Work

_OPERATOR_COLUMNS = ("id", "op_or_model", "config", "dtype")
_MODEL_COLUMNS = (*_OPERATOR_COLUMNS, "graph")
_GRAPH_COLUMNS = ("graph", "op", "config", "dtype", "count", "flops",
                  "flops_per_batch", "bytes", "bytes_per_batch")  # fmt: skip


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands."""
    for name, run, what in (
        ("ops", _run_operators, "single operators and collectives"),
        ("models", _run_models, "steps of whole models"),
    ):
        parser = commands.add_parser(name, help=f"times of {what}, row by row")
        parser.add_argument(
            "--device", required=True, help="a name, or a path of a YAML file"
        )
        parser.add_argument("--table", required=True, type=Path, help="the rows, a CSV")
        parser.add_argument("--out", required=True, type=Path, help="the CSV to write")
        parser.add_argument(
            "--sheet-only", action="store_true", help="ignore measured fields"
        )
        parser.set_defaults(run=run)
        if name == "models":
            parser.add_argument(
                "--graphs", required=True, type=Path, help="operators of models, a CSV"
            )
        else:
            parser.add_argument(
                "--calibrate",
                type=Path,
                help="a CSV of rows measured on the device, with a column value (s)",
            )


def read_table(
    argument: str, path: Path, columns: Sequence[str]
) -> list[dict[str, str]]:
    """Reads a CSV.

    Args:
        argument: The argument that named it, for errors.
        path: The file.
        columns: Columns that must be there.

    Raises:
        CommandError: If the file cannot be read, or a column is missing.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            found = reader.fieldnames or []
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"argument {argument}: {path}: {error}") from error
    if missing := [name for name in columns if name not in found]:
        raise CommandError(
            f"argument {argument}: {path} has no column {', '.join(missing)}; it needs "
            f"{', '.join(columns)}"
        )
    return rows


def _device(options: argparse.Namespace) -> DescribedDevice:
    device = device_of(options.device)
    return device.sheet if options.sheet_only else device


def _write(path: Path, times: Iterable[tuple[str, Interval]]) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("id", "predicted_s", "low_s", "high_s"))
            for identity, time in times:
                values = (time.value, time.low, time.high)
                writer.writerow((identity, *(f"{value:.6g}" for value in values)))
    except OSError as error:
        raise CommandError(f"argument --out: {path}: {error}") from error


def _works(argument: str, path: Path, rows: Sequence[Mapping[str, str]]) -> list[Work]:
    works = []
    for number, row in enumerate(rows, 2):
        try:
            works.append(work_of_row(row["op_or_model"], row["config"], row["dtype"]))
        except RowError as error:
            raise CommandError(
                f"argument {argument}: {path}:{number}: {error}"
            ) from error
    return works


def _calibration(options: argparse.Namespace, device: DescribedDevice) -> Calibration:
    path = options.calibrate
    rows = read_table("--calibrate", path, ("op_or_model", "config", "dtype", "value"))
    measured = []
    for number, row in enumerate(rows, 2):
        try:
            measured.append(float(row["value"]))
        except ValueError:
            raise CommandError(
                f"argument --calibrate: {path}:{number}: value must be a time in "
                f"seconds, got {row['value']!r}"
            ) from None
    try:
        return Calibration(_works("--calibrate", path, rows), measured, device)
    except ValueError as error:
        raise CommandError(f"argument --calibrate: {path}: {error}") from error


def _run_operators(options: argparse.Namespace) -> int:
    rows = read_table("--table", options.table, _OPERATOR_COLUMNS)
    device = _device(options)
    works = _works("--table", options.table, rows)
    times = predict_all(works, device)
    if options.calibrate is not None:
        times = _calibration(options, device).corrected(works, times)
    _write(options.out, zip((row["id"] for row in rows), times, strict=True))
    return 0


def _run_models(options: argparse.Namespace) -> int:
    rows = read_table("--table", options.table, _MODEL_COLUMNS)
    graphs: dict[str, list[Mapping[str, str]]] = {}
    for each in read_table("--graphs", options.graphs, _GRAPH_COLUMNS):
        graphs.setdefault(each["graph"], []).append(each)
    device = _device(options)
    times = []
    for number, row in enumerate(rows, 2):
        where = f"argument --table: {options.table}:{number}"
        if row["graph"] not in graphs:
            raise CommandError(
                f"{where}: the graph {row['graph']!r} is not in {options.graphs}"
            )
        try:
            time = predict_model(
                graphs[row["graph"]], row["config"], row["dtype"], device
            )
        except RowError as error:
            raise CommandError(f"argument --graphs: {error}") from error
        except ValueError as error:
            raise CommandError(f"{where}: config {row['config']!r}: {error}") from error
        times.append((row["id"], time))
    _write(options.out, times)
    return 0
