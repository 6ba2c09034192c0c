# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler around a compiled training step of a GPT."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

WORK = ("kernel", "gpu_memcpy", "gpu_memset")
Events = list[dict[str, Any]]
pytestmark = pytest.mark.timeout(300)  # a step is compiled on a loaded machine


def contains(outer: dict[str, Any], moment: float) -> bool:
    return bool(outer["ts"] <= moment <= outer["ts"] + outer["dur"])


@pytest.fixture
def profiled(
    load_program: Callable[[str], ModuleType], tmp_path: Path
) -> tuple[profile, Events]:
    """A profile of a step that was compiled before, and the events of its trace."""
    step = load_program("benchmarks/models.py").steps(torch.compile)["tiny GPT"](
        "openreg"
    )
    step()
    step()
    torch.accelerator.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as result:
        step()
        torch.accelerator.synchronize()
    path = tmp_path / "trace.json"
    result.export_chrome_trace(str(path))
    return result, json.loads(path.read_text(encoding="utf-8"))["traceEvents"]


def test_kernels_are_named_after_fused_operators_and_linked(
    profiled: tuple[profile, Events],
) -> None:
    result, events = profiled
    work = [event for event in events if event.get("cat") in WORK]
    operators = {
        event["args"]["External id"]: event
        for event in events
        if event.get("cat") == "cpu_op"
    }
    assert [e["name"] for e in work if e["args"]["External id"] not in operators] == []
    (backward,) = (
        event
        for event in operators.values()
        if event["name"] == "CompiledFunctionBackward"
    )
    passes: dict[bool, list[str]] = {False: [], True: []}
    for event in work:
        operator = operators[event["args"]["External id"]]
        if event["name"].startswith("cpp_fused_"):
            assert operator["name"].startswith("## Call CompiledFxGraph")
            passes[contains(backward, operator["ts"])].append(event["name"])
        else:
            assert operator["name"].startswith("aten::")
    forward_names, backward_names = ("\n".join(passes[each]) for each in (False, True))
    assert "native_layer_norm" in forward_names
    assert "gelu" in forward_names
    assert "native_layer_norm_backward" in backward_names
    assert "gelu_backward" in backward_names
    assert "gelu_backward" not in forward_names
    # The operators' times sum up to the kernels', without double counting.
    by_operator = sum(
        row.self_device_time_total
        for row in result.key_averages()
        if row.device_type == DeviceType.CPU
    )
    assert by_operator == pytest.approx(sum(e["dur"] for e in work), rel=0.01)


def test_compiled_forward_and_backward_are_linked(
    profiled: tuple[profile, Events],
) -> None:
    _, events = profiled
    arrows = [event for event in events if event.get("cat") == "fwdbwd"]
    ends = {event["id"]: event["ts"] for event in arrows if event["ph"] == "f"}
    calls = {event["name"]: event for event in events if event.get("cat") == "cpu_op"}
    found = [
        event["id"]
        for event in arrows
        if event["ph"] == "s" and contains(calls["CompiledFunction"], event["ts"])
    ]
    assert any(
        contains(calls["CompiledFunctionBackward"], ends[number]) for number in found
    )
