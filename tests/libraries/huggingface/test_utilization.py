# SPDX-License-Identifier: BSD-3-Clause
"""utilization() of training steps of three kinds of models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from .architectures import ARCHITECTURES
from .training import built, moved, seed

STEPS = 3


@pytest.mark.parametrize("name", ["llama", "bert", "vit"])
def test_report_fits_the_profile(device: str, name: str) -> None:
    architecture = ARCHITECTURES[name]
    model = built(name, architecture.attention[-1]).to(device).train()
    optimizer = architecture.optimizer(model.parameters())
    inputs = moved(architecture.inputs(), device)
    seed(1)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(**inputs, **architecture.call).loss
        loss.backward()
        optimizer.step()

    step()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.OPENREG],
        schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_flops=True,
    ) as result:
        for _ in range(1 + STEPS):
            step()
            result.step()
    report = torch.openreg.utilization(result)

    # Times: a device is busy or idle.
    whole, *streams = report.busy
    assert (whole.device, whole.stream) == (0, None)
    assert all(0 < row.share <= 1 for row in report.busy)
    assert len(streams) == 1
    kernels = sum(each.end - each.start for each in report.work) * 1e-9
    assert whole.seconds == pytest.approx(kernels, rel=1e-6)
    assert whole.share == pytest.approx(whole.seconds / report.seconds)
    by_operator = sum(row.seconds for row in report.operators)
    assert by_operator == pytest.approx(kernels, rel=1e-3)
    idle = sum(gap.end - gap.start for gap in report.gaps) * 1e-9
    assert idle + whole.seconds <= report.seconds * (1 + 1e-6)
    assert sum(change.seconds for change in report.changes) <= report.seconds
    assert report.steps == STEPS
    assert report.launches == len(report.work) > STEPS * 50
    products = [row for row in report.operators if row.name == "aten::mm"]
    assert products[0].flops is not None
    assert products[0].flops > 0

    # Memory: no tensor twice, and all tensors of the model.
    own = sum(each.nbytes for each in model.parameters())
    assert report.memory["parameter"] == own
    assert report.memory["gradient"] >= own
    assert report.memory["optimizer_state"] >= 2 * own  # AdamW's two moments
    assert sum(report.memory.values()) <= torch.accelerator.max_memory_allocated()

    # Such a small model waits for Python.
    (first, *_) = report.changes
    assert first.cause == "host"
    assert first.line is not None
    file, _, number = first.line.partition(":")
    assert file == Path(__file__).name
    source = Path(__file__).read_text(encoding="utf-8").splitlines()[int(number) - 1]
    assert source.strip() in (
        "loss = model(**inputs, **architecture.call).loss",
        "loss.backward()",
        "optimizer.step()",
    )
