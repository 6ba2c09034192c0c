# SPDX-License-Identifier: BSD-3-Clause
"""Predicts times and peak memory of programs on described devices."""

from __future__ import annotations

from openreg_predict._cost import predict
from openreg_predict._device import (
    DescribedDevice,
    DeviceFileError,
    Field,
    device_names,
    load_device,
)
from openreg_predict._emulate import emulate
from openreg_predict._interval import Interval, longest, total
from openreg_predict._prediction import Comparison, Prediction, predict_record
from openreg_predict._record import Record
from openreg_predict._recording import record
from openreg_predict._work import CLASSES, Call, TensorFacts, Work, work_of

__all__ = [
    "CLASSES",
    "Call",
    "Comparison",
    "DescribedDevice",
    "DeviceFileError",
    "Field",
    "Interval",
    "Prediction",
    "Record",
    "TensorFacts",
    "Work",
    "device_names",
    "emulate",
    "load_device",
    "longest",
    "predict",
    "predict_record",
    "record",
    "total",
    "work_of",
]
