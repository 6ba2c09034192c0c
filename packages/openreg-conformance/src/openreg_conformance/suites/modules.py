# SPDX-License-Identifier: BSD-3-Clause
"""Modules of PyTorch's database, training and predicting."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from openreg_conformance.case import Case, Verdict
from openreg_conformance.checks.modules import (
    check_module,
    check_module_errors,
    module_cases,
)
from openreg_conformance.checks.samples import short
from openreg_conformance.checks.tally import Tally, quiet

from .operators import verdict

# The modules of most networks.
SMOKE = {
    "nn.Linear",
    "nn.Conv2d",
    "nn.ReLU",
    "nn.GELU",
    "nn.LayerNorm",
    "nn.BatchNorm2d",
    "nn.Embedding",
    "nn.MaxPool2d",
    "nn.CrossEntropyLoss",
    "nn.MSELoss",
    "nn.MultiheadAttention",
    "nn.LSTM",
}


def cases(level: str) -> Iterator[Case]:
    """Lists the cases of a level."""
    for info, dtype, training in module_cases():
        if level == "smoke" and (info.name not in SMOKE or dtype != torch.float32):
            continue
        mode = "train" if training else "eval"
        name = f"{info.name}/{short(dtype)}/{mode}"
        key = name.replace("/", "-")
        run = functools.partial(_judge, key, info, dtype, training, level == "whole")
        yield _case(f"modules/{name}", info, run)
    for info in module_db:
        if info.module_error_inputs_func is None:
            continue
        if level != "smoke" or info.name in SMOKE:
            run = functools.partial(_judge_errors, info)
            yield _case(f"modules/{info.name}/error", info, run)


def _case(name: str, info: ModuleInfo, run: Callable[[str], Verdict]) -> Case:
    users = 0.5 if info.name in SMOKE else 0.05
    title = f"{info.name} as on the CPU"
    write = functools.partial(_program, info)
    return Case(name, "modules", info.name, title, run, write, users)


def _judge(
    key: str,
    info: ModuleInfo,
    dtype: torch.dtype,
    training: bool,
    whole: bool,
    device: str,
) -> Verdict:
    tally = Tally(device, own_numbers=True)
    with quiet():
        check_module(tally, key, info, dtype, training, whole=whole)
    return verdict(tally, device)


def _judge_errors(info: ModuleInfo, device: str) -> Verdict:
    tally = Tally(device)
    check_module_errors(tally, info)
    return verdict(tally, device)


_PROGRAM = """\
import copy
import torch
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

info = next(each for each in module_db if each.name == {name!r})
move = lambda x: x.detach().to("{device}") if isinstance(x, torch.Tensor) else x
options = {{"requires_grad": True, "training": True}}
made = info.module_inputs_func(info, "cpu", torch.float32, **options)
for i, sample in enumerate(made):
    given = sample.constructor_input
    module = info.module_cls(*given.args, **given.kwargs)
    args, kwargs = sample.forward_input.args, sample.forward_input.kwargs
    torch.manual_seed(0)
    expected = module(*args, **kwargs)
    args, kwargs = pytree.tree_map(move, (args, kwargs))
    torch.manual_seed(0)
    result = module.to("{device}")(*args, **kwargs)
    print("sample", i)
    torch.testing.assert_close(pytree.tree_map(move, expected), result)
"""


def _program(info: ModuleInfo, device: str) -> str:
    return _PROGRAM.format(name=info.name, device=device)
