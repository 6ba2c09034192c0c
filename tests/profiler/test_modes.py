# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler in every mode of the runtime."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Output = Callable[..., str]

PROGRAM = """
import json, tempfile, os
import torch
from torch.profiler import ProfilerActivity, profile

x = torch.rand(50, 50, device="openreg")
w = torch.rand(50, 50, device="openreg", requires_grad=True)

def step():
    y = torch.relu(x @ w)
    y.sum().backward()
    return torch.nonzero(y.detach() > 12).shape, w.grad

step()
torch.openreg.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as result:
    step()
folder = tempfile.mkdtemp()
path = os.path.join(folder, "trace.json")
result.export_chrome_trace(path)
events = json.load(open(path))["traceEvents"]
kernels = sorted(
    (event for event in events if event.get("cat") == "kernel"),
    key=lambda event: event["ts"],
)
operators = {
    event["args"]["External id"] for event in events if event.get("cat") == "cpu_op"
}
end = 0
for event in kernels:
    assert event["args"]["External id"] in operators, event
    assert event["args"]["queued (us)"] >= 0, event
    assert event["ts"] + 0.002 >= end, event
    end = event["ts"] + event["dur"]
names = [event["name"] for event in kernels]
assert names.count("mm_kernel") == 2, names
print(*dict.fromkeys(name for name in names if name.endswith("_kernel")))
"""


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OPENREG_LAUNCH_BLOCKING": "1"},
        {"OPENREG_INLINE_BYTES": "0"},
        {"OPENREG_ISOLATION": "loopback"},
        {"OPENREG_ISOLATION": "process"},
        {"OPENREG_ISOLATION": "process", "OPENREG_INLINE_BYTES": "0"},
    ],
    ids=lambda e: ",".join(f"{k[8:]}={v}" for k, v in e.items()) or "default",
)
def test_kernels_are_linked_and_in_order(
    output: Output, environment: dict[str, str]
) -> None:
    found = output(PROGRAM, **{"OPENREG_ISOLATION": "thread", **environment})
    names = found.split()
    for name in ("mm_kernel", "clamp_min_kernel", "sum_kernel", "gt_kernel"):
        assert name in names
    assert "nonzero_kernel" in names


def test_device_in_another_process_measures_its_kernels(output: Output) -> None:
    source = """
    import torch
    from openreg_runtime import activity
    x = torch.rand(300, 300, device="openreg")
    torch.openreg.synchronize()
    with activity.record() as recording:
        (x @ x)
        torch.openreg.synchronize()
    records = recording.take()
    (product,) = [r for r in records if r.kind == "kernel" and r.name == "aten::mm"]
    (call,) = [r for r in records if r.correlation == product.correlation
               and r.kind == "call"]
    assert product.enqueued <= product.started < product.ended
    print(product.device, product.stream, product.nested)
    """
    assert output(source, OPENREG_ISOLATION="process") == "0 0 False"


def test_kernel_whose_launch_fails_is_marked(output: Output) -> None:
    source = """
    import torch
    import openreg_runtime as runtime
    from torch.profiler import ProfilerActivity, profile
    def fails():
        raise ValueError("no")
    with profile(activities=[ProfilerActivity.OPENREG]) as p:
        try:
            runtime.Stream(0).launch(fails)
        except runtime.OpenRegError as error:
            print("ValueError: no" in str(error))
    import json, os, tempfile
    path = os.path.join(tempfile.mkdtemp(), "trace.json")
    p.export_chrome_trace(path)
    events = json.load(open(path))["traceEvents"]
    print(*[e["args"].get("error") for e in events if e.get("cat") == "kernel"])
    """
    found = output(source, OPENREG_LAUNCH_BLOCKING="1")
    assert found == "True\norErrorLaunchFailure"


def test_without_the_mechanism_only_the_host_is_shown(output: Output) -> None:
    source = """
    import torch
    from torch.profiler import ProfilerActivity, profile
    x = torch.rand(8, device="openreg")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG]) as p:
        x + 1
    print(any(row.device_time_total > 0 for row in p.key_averages()))
    """
    assert output(source, OPENREG_DISABLE="activity_profiler") == "False"
    assert output(source) == "True"
