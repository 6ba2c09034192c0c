# SPDX-License-Identifier: BSD-3-Clause
"""``torch.profiler`` records the work of CUDA devices."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from support.programs import run, variables
from torch_openreg import openreg

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def test_cuda_is_a_supported_activity() -> None:
    expected = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    assert torch.profiler.supported_activities() == expected
    assert torch.autograd._supported_activities() == expected


def test_each_operator_has_the_time_of_its_kernels() -> None:
    x = torch.rand(200, 200, device="cuda")
    with profile(activities=BOTH) as result:
        torch.relu(x @ x) @ x
        torch.cuda.synchronize()
    rows = {(row.key, row.device_type): row for row in result.key_averages()}
    kernels = rows["mm_kernel", DeviceType.CUDA]
    assert kernels.count == 2
    assert kernels.device_time_total > 0
    operator = rows["aten::mm", DeviceType.CPU]
    assert operator.self_device_time_total == kernels.self_device_time_total
    assert rows["aten::matmul", DeviceType.CPU].device_time_total >= (
        operator.device_time_total
    )
    table = result.key_averages().table(sort_by="cuda_time_total", row_limit=3)
    assert "CUDA total" in table
    assert "mm_kernel" in table
    assert "Self CUDA time total" in table


def test_ranges_contain_the_kernels_of_their_operators() -> None:
    x = torch.rand(100, device="cuda")
    with profile(activities=BOTH) as result:
        with record_function("outer"):
            x.exp()
        with torch.cuda.nvtx.range("inner"):
            x.sin()
        torch.cuda.synchronize()
    on_device = [
        event.name for event in result.events() if event.device_type == DeviceType.CUDA
    ]
    assert {"outer", "inner", "exp_kernel", "sin_kernel"} <= set(on_device)


def test_a_trace_has_kernels_and_copies_on_the_rows_of_their_streams(
    tmp_path: Path,
) -> None:
    stream = torch.cuda.Stream()
    x = torch.ones(1000, pin_memory=True)
    with profile(activities=BOTH) as result:
        with torch.cuda.stream(stream):
            x.to("cuda", non_blocking=True).mul_(3)
        torch.ones(10, device="cuda:1").add_(1)
        torch.cuda.synchronize()
        torch.cuda.synchronize(1)
    path = tmp_path / "trace.json"
    result.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    rows = {
        event["name"]: (event["cat"], event["args"]["device"], event["args"]["stream"])
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy")
    }
    copy = rows["Memcpy HtoD (Pinned -> Device)"]
    assert copy[:2] == ("gpu_memcpy", 0)
    assert rows["mul__kernel"] == ("kernel", *copy[1:])
    assert copy[2] != 0
    assert rows["add__kernel"] == ("kernel", 1, 0)
    kinds = Counter(event.get("cat") for event in events)
    assert kinds["cuda_runtime"] > 0
    assert kinds["ac2g"] > 0
    assert kinds["privateuse1_runtime"] == 0


def test_memory_is_counted_for_each_operator() -> None:
    with profile(activities=BOTH, profile_memory=True) as result:
        x = torch.zeros(1000, device="cuda")
        y = x + 1
        del x, y
    rows = {row.key: row for row in result.key_averages()}
    assert rows["aten::add"].self_device_memory_usage == 4096
    assert rows["[memory]"].self_device_memory_usage <= -4096


def test_a_profile_of_the_host_has_no_device_work() -> None:
    x = torch.ones(4, device="cuda")
    with profile(activities=[ProfilerActivity.CPU]) as result:
        x.add(1)
    assert all(row.device_type == DeviceType.CPU for row in result.key_averages())


def test_older_profilers_measure_with_events_and_with_kernels() -> None:
    x = torch.rand(200, 200, device="cuda")
    for kineto in (False, True):
        with torch.autograd.profiler.profile(
            use_device="cuda", use_kineto=kineto
        ) as result:
            x @ x
        rows = {row.key: row for row in result.key_averages()}
        assert rows["aten::mm"].device_time_total > 0
        assert ("mm_kernel" in rows) == kineto


def test_the_trace_describes_the_devices_as_torch_cuda_does(tmp_path: Path) -> None:
    with profile(activities=BOTH) as result:
        torch.ones(4, device="cuda").sum().item()
    file = tmp_path / "trace.json"
    result.export_chrome_trace(str(file))
    described = json.loads(file.read_text())["deviceProperties"]
    assert len(described) == torch.cuda.device_count()
    for device in described:
        properties = torch.cuda.get_device_properties(device["id"])
        assert device["name"] == properties.name
        assert device["totalGlobalMem"] == properties.total_memory
        capability = (device["computeMajor"], device["computeMinor"])
        assert capability == torch.cuda.get_device_capability(device["id"])


def test_profilers_of_vendors_tools_run_the_program() -> None:
    x = torch.ones(4, device="cuda")
    with torch.cuda.profiler.profile(), torch.autograd.profiler.emit_nvtx():
        assert (x + 1).sum().item() == 8


def test_utilization_reads_a_profile() -> None:
    x = torch.rand(200, 200, device="cuda")
    with profile(activities=BOTH, with_flops=True) as result:
        x @ x
        torch.cuda.synchronize()
    report = openreg.utilization(result)
    assert "mm" in report.table()
    assert report.launches >= 1


def test_the_command_profiles_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nx = torch.rand(99, 99).cuda()\nprint((x @ x).isfinite().all())\n"
    )
    command = (sys.executable, "-W", "ignore", "-m", "torch_openreg", "profile", script)
    ended = run(*command, environment=variables(OPENREG_DEVICE="cuda"))
    assert ended.returncode == 0, ended.stderr
    assert "aten::mm" in ended.stdout
