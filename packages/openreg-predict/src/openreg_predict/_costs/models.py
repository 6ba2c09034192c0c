# SPDX-License-Identifier: BSD-3-Clause
"""The time of a step of a whole model, from the list of its operators.

Kernels run one after the other; the host issues them ahead of the device, or is the
slower of the two. In compiled programs, pointwise operators are parts of neighbouring
kernels. Collectives run concurrently.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from openreg_predict._costs.entries import (
    Entry,
    entries,
    entry_of,
    model_constants,
    model_spread,
)
from openreg_predict._costs.interval import Interval
from openreg_predict._devices.description import DescribedDevice
from openreg_predict._devices.hardware import hardware, matrix_rate
from openreg_predict._formulas.columns import (
    BOARD_SHARE,
    POWER,
    Array,
    Constants,
    power_needed,
)
from openreg_predict._works import graphs
from openreg_predict._works.graphs import Step
from openreg_predict._works.table import settings
from openreg_predict._works.work import Work

GROUPS = ("mm", "bmm", "conv1", "conv", "grouped_conv", "depthwise", "sdpa",
          "pointwise", "batch_norm", "norm", "pool", "reduction", "cast", "copy",
          "gather", "optimizer", "collective")  # fmt: skip
_PRECISE = ("mm", "bmm", "conv1", "conv", "grouped_conv", "depthwise")
_MATRIX = (*_PRECISE, "sdpa")
_CONVOLUTIONS = ("conv1", "conv", "grouped_conv", "depthwise")
# Factors on the times of kernels, and times of the host.
START: Constants = {
    **{f"{g}": 1.0 for g in GROUPS},
    **{f"{g}.single": 1.0 for g in _PRECISE},
    **{f"{g}.backward": 1.0 for g in (*_CONVOLUTIONS, "mm", "batch_norm")},
    "nchw": 1.1,  # 16-bit convolutions whose channels are not last
    "train_f16": 1.0,  # steps with a gradient scaler
    "fused": 0.05,  # what remains of pointwise work in compiled programs
    "fused_copy": 0.3,  # what remains of copies there
    "fused_norm": 0.6,  # what remains of norms there, which read and write 16 bits
    "host.operator": 6e-6,  # s, host time of an eager operator
    "host.server": 4e-5,  # s, the same on the servers of one source
    "host.kernel": 2.5e-6,  # s, host time of a compiled kernel
    "graph.kernel": 1.0e-6,  # s, between the kernels of a replayed graph
    "step": 2e-4,  # s, of the host for each step
    "sustained": 10.0,  # W of the board that the units lack in long runs
    "exposed": 0.1,  # the share of overlapped collectives that is not hidden
    "decode.kernel": 0.5e-6,  # s, between kernels of a decoding step
}
_FUSED = {"pointwise": "fused", "cast": "fused", "copy": "fused_copy",
          "reduction": "fused_norm", "norm": "fused_norm",
          "gather": "fused_copy"}  # fmt: skip
_SHARPNESS = 6.0
_ATTENTION_START = 4e-6
# Bytes from which a collective is one of FSDP's, and not one between two kernels.
_LARGE = 1e6


def steps_of(rows: Sequence[Mapping[str, str]], config: str) -> list[Step]:
    """Reads the operators of a model.

    Args:
        rows: Rows of a table of operators.
        config: The settings, such as ``batch=8;mode=infer;compile=0``.
    """
    given = settings(config)
    flags = {name: given.get(name, "") for name in ("tf32", "float8")}
    flags["torch"] = given.get("torch", "2")
    return graphs.steps(rows, int(given.get("batch", 1)), **flags)


def kernel_seconds(
    fitted: Mapping[str, Entry], steps: Sequence[Step], device: DescribedDevice
) -> list[float]:
    """Returns the time of each step's kernels, without factors of models."""
    by_entry: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for i, step in enumerate(steps):
        for j, work in enumerate(step.parts):
            by_entry[entry_of(work, device)].append((i, j))
    result = [0.0] * len(steps)
    for name, places in by_entry.items():
        works = [steps[i].parts[j] for i, j in places]
        times = fitted[name].seconds(works, [device] * len(works))
        if name.startswith("attention"):  # the serving tables write a cache, too
            start = fitted[name].constants["t0"] - _ATTENTION_START
            times = np.maximum(times - start, _ATTENTION_START)
        for (i, _), time in zip(places, times.tolist(), strict=True):
            result[i] += time
    return result


def features(
    fitted: Mapping[str, Entry],
    steps: Sequence[Step],
    config: str,
    device: DescribedDevice,
) -> dict[str, float]:
    """Returns the sums from which :func:`seconds` computes the time of a step.

    Args:
        fitted: The fitted entries of single operators.
        steps: The operators of the model.
        config: The settings, such as ``batch=8;mode=infer;compile=0``.
        device: The device.
    """
    given = settings(config)
    sums: dict[str, float] = defaultdict(float)
    compiled = given.get("compile") == "1"
    times = kernel_seconds(fitted, steps, device)
    for step, time in zip(steps, times, strict=True):
        work = step.parts[0]
        key = step.group
        if step.group in _PRECISE:
            if work.dtype in ("f32", "tf32"):
                key += ".single"
            elif work.operator.endswith("backward") and step.group in _CONVOLUTIONS:
                key += ".backward"
        if work.operator == "native_batch_norm_backward":
            key = "batch_norm.backward"
        if work.kind == "collective" and work.read > _LARGE:
            key = "collective.large"
        sums[key] += step.count * time
        launched = step.count * step.kernels
        hidden = compiled and step.group in ("pointwise", "cast")
        sums["kernels"] += 0 if hidden else launched
    sums["power"] = hardware(device).power
    for name, dtype in (("single", "f32"), ("half", "f16")):
        if dtype == "f32" and given.get("tf32") == "1":
            dtype = "tf32"
        sums[f"needed.{name}"] = power_needed(device, dtype)
    sums["compiled"] = float(compiled)
    sums["nchw"] = float(
        given.get("layout") == "nchw"
        and given.get("amp", "") != ""
        and not compiled
        and matrix_rate(device, "f16")[1]
    )
    sums["decode"] = float(given.get("mode") == "decode")
    sums["server"] = float("tf32" in given)  # how tables of one source are written
    return dict(sums)


def _slower(c: Constants, power: Array, needed: Array) -> Array:
    """Returns how much slower long runs are than single kernels, by the power limit."""
    full = BOARD_SHARE * power
    exponent = POWER["throttle"]
    single = np.minimum(1, full / needed) ** exponent
    long = np.minimum(1, np.maximum(full - c["sustained"], 0.1 * full) / needed)
    result: Array = single / long**exponent
    return result


def seconds(c: Constants, rows: Sequence[Mapping[str, float]]) -> Array:
    """Returns the time of each step.

    Args:
        c: The constants.
        rows: The result of :func:`features` for each.
    """

    def column(name: str) -> Array:
        return np.array([row.get(name, 0.0) for row in rows])

    compiled, decode, nchw = column("compiled"), column("decode"), column("nchw")
    device: Array = np.zeros(len(rows))
    for name in c:
        group = name.partition(".")[0]
        if group not in GROUPS or group == "collective":
            continue
        factor = np.full(len(rows), c[name])
        if group in _MATRIX:
            needed = column(
                "needed.single" if name.endswith("single") else "needed.half"
            )
            factor = factor * _slower(c, column("power"), needed)
        if group in _CONVOLUTIONS:
            factor = factor * np.where(nchw > 0, c["nchw"], 1)
        if group in _FUSED:
            factor = factor * np.where(compiled > 0, c[_FUSED[group]], 1)
        device = device + factor * column(name)
    kernels = column("kernels")
    device = device + kernels * c["decode.kernel"] * decode
    each = np.where(column("server") > 0, c["host.server"], c["host.operator"])
    each = np.where(compiled > 0, c["host.kernel"], each)
    host = np.where(decode > 0, 0, kernels * each) + c["step"]
    busy = (device**_SHARPNESS + host**_SHARPNESS) ** (1 / _SHARPNESS)
    inside = c["collective"] * column("collective")  # between the kernels of a step
    large = column("collective.large")
    hidden = (busy**_SHARPNESS + large**_SHARPNESS) ** (1 / _SHARPNESS)
    result: Array = hidden + c["exposed"] * np.minimum(busy, large) + inside
    return result


_GROUP_OF_CLASS: Mapping[str, str] = {
    "attention": "sdpa", "pointwise": "pointwise", "norm": "norm", "pool": "pool",
    "reduction": "reduction", "copy": "copy", "gather": "gather", "scatter": "gather",
    "optimizer": "optimizer",
}  # fmt: skip


def group_of(work: Work) -> str:
    """Returns the group of a work in a model, or an empty string."""
    if work.kind == "gemm":
        return "bmm" if work.fact("b", 1) > 1 else "mm"
    if work.kind == "convolution":
        if work.fact("g", 1) == 1:
            return "conv1" if work.fact("r", 1) * work.fact("s", 1) == 1 else "conv"
        return "depthwise" if work.fact("g") == work.fact("c", 1) else "grouped_conv"
    if work.kind == "norm" and "batch_norm" in work.operator:
        return "batch_norm"
    return _GROUP_OF_CLASS.get(work.kind, "")


def in_model(work: Work, device: DescribedDevice, time: float) -> float:
    """Returns the time of a kernel as a part of a model, from its time alone.

    Args:
        work: The work of the kernel.
        device: The device.
        time: Its time in seconds, as measured in a repetition of the kernel alone.
    """
    group = group_of(work)
    if not group:
        return time
    c = model_constants()
    if group == "sdpa":  # the serving tables write a cache, too
        start = entries()[entry_of(work, device)].constants["t0"] - _ATTENTION_START
        time = max(time - start, min(time, _ATTENTION_START))
    single = work.dtype in ("f32", "tf32", "f64")
    backward = work.operator.endswith("backward") or "backward" in work.facts.values()
    name = group
    if single and group in _PRECISE:
        name += ".single"
    elif backward and f"{group}.backward" in c:
        name += ".backward"
    factor = c[name]
    if group in _MATRIX:
        power = np.array([hardware(device).power])
        needed = np.array([power_needed(device, work.dtype)])
        factor *= float(_slower(c, power, needed)[0])
    if group in _CONVOLUTIONS and not single and work.facts.get("channels_last") == 0:
        factor *= c["nchw"]
    return time * factor


def kind_of(config: str, dtype: str) -> str:
    """Returns the kind of a model, which decides the width of its interval."""
    given = settings(config)
    if given.get("mode") == "decode":
        return "decode"
    if "fsdp" in given:
        return "sharded"
    if given.get("compile") == "1":
        return "compiled"
    if "tf32" in given:
        return "sweep"
    if dtype == "f32":
        return "single"
    return given.get("mode", "infer")


def predict_model(
    rows: Sequence[Mapping[str, str]], config: str, dtype: str, device: DescribedDevice
) -> Interval:
    """Returns the time of a step of a model.

    Args:
        rows: The operators, rows of a table.
        config: The settings, such as ``batch=8;mode=infer;compile=0``.
        dtype: The dtype of the model.
        device: The device.
    """
    steps = steps_of(rows, config)
    sums = features(entries(), steps, config, device)
    time = float(seconds(model_constants(), [sums])[0])
    low, high = model_spread()[kind_of(config, dtype)]
    return Interval.around(time, low, high)
