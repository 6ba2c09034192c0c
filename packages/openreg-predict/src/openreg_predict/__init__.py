# SPDX-License-Identifier: BSD-3-Clause
"""Predicts times and peak memory of programs on described devices."""

from __future__ import annotations

from openreg_predict._clock.ranks import RanksError
from openreg_predict._costs.cost import predict
from openreg_predict._costs.interval import Interval, longest, total
from openreg_predict._devices.description import (
    DescribedDevice,
    DeviceFileError,
    Field,
    device_names,
    load_device,
)
from openreg_predict._predictions.emulate import emulate
from openreg_predict._predictions.predict import predict_ranks, predict_record
from openreg_predict._predictions.record import Record, record
from openreg_predict._reports.prediction import Comparison, Prediction, RanksPrediction
from openreg_predict._works.operators import work_of
from openreg_predict._works.work import CLASSES, Call, TensorFacts, Work

__all__ = [
    "CLASSES",
    "Call",
    "Comparison",
    "DescribedDevice",
    "DeviceFileError",
    "Field",
    "Interval",
    "Prediction",
    "RanksError",
    "RanksPrediction",
    "Record",
    "TensorFacts",
    "Work",
    "device_names",
    "emulate",
    "load_device",
    "longest",
    "predict",
    "predict_ranks",
    "predict_record",
    "record",
    "total",
    "work_of",
]
