# SPDX-License-Identifier: BSD-3-Clause
"""Optimizers of PyTorch's database, with every implementation that they have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from openreg_conformance.case import Case, Verdict
from openreg_conformance.checks.optimizers import (
    check_optimizer,
    check_optimizer_errors,
    optimizer_cases,
)
from openreg_conformance.checks.samples import short
from openreg_conformance.checks.tally import Tally

from .operators import verdict

SMOKE = {"SGD", "Adam", "AdamW"}
SMOKE_OPTIONS = 6


def cases(level: str) -> Iterator[Case]:
    """Lists the cases of a level."""
    for info, dtype in optimizer_cases():
        if level == "smoke" and (info.name not in SMOKE or dtype != torch.float32):
            continue
        run = functools.partial(_judge, info, dtype, level == "smoke")
        yield _case(f"optimizers/{info.name}/{short(dtype)}", info, run)
    for info in optim_db:
        if info.optim_error_inputs_func is None:
            continue
        if level != "smoke" or info.name in SMOKE:
            run = functools.partial(_judge_errors, info)
            yield _case(f"optimizers/{info.name}/error", info, run)


def _case(name: str, info: OptimizerInfo, run: Callable[[str], Verdict]) -> Case:
    users = 0.5 if info.name in SMOKE else 0.05
    title = f"{info.name} as on the CPU"
    write = functools.partial(_program, info)
    return Case(name, "optimizers", info.name, title, run, write, users)


def _judge(
    info: OptimizerInfo, dtype: torch.dtype, limited: bool, device: str
) -> Verdict:
    tally = Tally(device)
    check_optimizer(tally, info, dtype, SMOKE_OPTIONS if limited else None)
    return verdict(tally, device)


def _judge_errors(info: OptimizerInfo, device: str) -> Verdict:
    tally = Tally(device)
    check_optimizer_errors(tally, info)
    return verdict(tally, device)


_PROGRAM = """\
import torch


def train(device, **options):
    torch.manual_seed(0)
    weight = torch.randn(3, 4).to(device).requires_grad_()
    optimizer = torch.optim.{name}([weight], **options)
    for _ in range(4):
        optimizer.zero_grad()
        (weight * weight).sum().backward()
        optimizer.step(lambda: (weight * weight).sum())
    return weight.detach().cpu()


for options in ({{}}, {{"foreach": True}}, {{"foreach": False}}):
    torch.testing.assert_close(train("{device}", **options), train("cpu", **options))
"""


def _program(info: OptimizerInfo, device: str) -> str:
    return _PROGRAM.format(name=info.name, device=device)
