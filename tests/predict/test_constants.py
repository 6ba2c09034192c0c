# SPDX-License-Identifier: BSD-3-Clause
"""The file of constants: what it was fitted on."""

from __future__ import annotations

import csv
import hashlib
import os
import re
from pathlib import Path

import numpy as np
import pytest

from openreg_predict import load_device, predict
from openreg_predict._costs.entries import (
    FAMILIES,
    entries,
    fitted_rows,
    model_constants,
)
from openreg_predict._costs.fitting import fit, relative_error
from openreg_predict._works.table import gemm

FOLDER = os.environ.get("OPENREG_PREDICT_DATA")
TRAINING = re.compile(r"(tro|trc|trm)\d+")


def ids_of(ranges):
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        assert TRAINING.fullmatch(first), first
        width = len(first) - 3
        numbers = range(int(first[3:]), int((last or first)[3:]) + 1)
        yield from (f"{first[:3]}{number:0{width}}" for number in numbers)


def all_ids():
    return [
        each
        for groups in fitted_rows().values()
        for ranges in groups.values()
        for each in ids_of(ranges)
    ]


def test_every_entry_lists_the_rows_of_training_tables_that_it_was_fitted_on():
    rows = fitted_rows()
    assert set(rows) == {*FAMILIES, "models"}
    ids = all_ids()
    assert len(ids) == len(set(ids)) > 7000


def test_corrections_have_no_more_points_than_rows():
    for name, entry in entries().items():
        rows = sum(len(list(ids_of(r))) for r in fitted_rows()[name].values())
        assert len(entry.correction.points) == rows


@pytest.mark.skipif(
    FOLDER is None, reason="OPENREG_PREDICT_DATA does not name the folder of the tables"
)
def test_no_row_of_a_test_table_is_used_in_a_fit():
    trained = set(all_ids())
    seen = set()
    for path in Path(FOLDER).glob("*.csv"):
        if "graphs" in path.name or path.name.split("_")[0] not in ("train", "test"):
            continue
        with path.open(newline="", encoding="utf-8") as file:
            ids = {row["id"] for row in csv.DictReader(file)}
        if path.name.startswith("test"):
            assert not ids & trained, path.name
        seen |= ids
    assert trained <= seen


@pytest.mark.skipif(
    FOLDER is None, reason="OPENREG_PREDICT_DATA does not name the folder of the tables"
)
def test_the_constants_were_fitted_on_these_training_tables():
    from openreg_predict._costs.entries import _data

    result = hashlib.sha256()
    for table in ("ops", "comm", "models", "graphs"):
        result.update((Path(FOLDER) / f"train_{table}.csv").read_bytes())
    assert _data()["tables"] == result.hexdigest()


def test_bounds_enclose_the_prediction():
    for entry in entries().values():
        for low, high in entry.spread.values():
            assert 0 < low <= 1 <= high
        chip, near, far = (entry.spread[key] for key in ("chip", "same", "other"))
        assert far[0] <= near[0] <= chip[0]
        assert far[1] >= near[1] >= chip[1]


def test_bounds_are_narrower_for_the_chip_of_a_training_device():
    work = gemm(1, 4096, 4096, 4096, "bf16")
    times = [
        predict(work, load_device(name).sheet) for name in ("h100-sxm", "h200-sxm")
    ]
    assert times[0].width == pytest.approx(times[1].width)
    assert times[0].width < predict(work, load_device("l4").sheet).width


def test_constants_are_positive():
    assert all(value > 0 for value in model_constants().values())


def test_a_fit_finds_the_constants_of_synthetic_times():
    size = np.geomspace(1e3, 1e9, 50)

    def seconds(c):
        return c["start"] + size / c["rate"]

    measured = seconds({"start": 4e-6, "rate": 7e11})
    found = fit(seconds, {"start": 1e-6, "rate": 1e12}, measured, pull=1e-9)
    assert found["start"] == pytest.approx(4e-6, rel=0.01)
    assert found["rate"] == pytest.approx(7e11, rel=0.01)
    assert relative_error(seconds(found), measured) < 0.01


def test_a_fit_keeps_fixed_constants():
    size = np.geomspace(1e3, 1e9, 50)

    def seconds(c):
        return c["start"] + size / c["rate"]

    measured = seconds({"start": 4e-6, "rate": 7e11})
    found = fit(seconds, {"start": 1e-6, "rate": 1e12}, measured, fixed=("start",))
    assert found["start"] == pytest.approx(1e-6)
