# SPDX-License-Identifier: BSD-3-Clause
"""Every module of PyTorch's database trains and predicts as on the CPU."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
import torch
from torch.testing._internal.common_modules import (
    ErrorModuleInput,
    ModuleErrorEnum,
    ModuleInfo,
    module_db,
)

from support.mirrors import mirror

from .agreement import check_agreement, check_refusal
from .cases import choose, short, sorted_dtypes
from .operators import channels_last
from .tally import Tally, quiet

pytestmark = pytest.mark.timeout(600, method="thread")

SAMPLED_INPUTS = 3


def module_cases() -> list[Any]:
    """Lists modules with dtypes, training or not."""
    return [
        pytest.param(info, dtype, training, id=f"{info.name}-{short(dtype)}-{mode}")
        for info in module_db
        for dtype in sorted_dtypes(info.dtypes)
        for training, mode in ((True, "train"), (False, "eval"))
        if training or info.train_and_eval_differ
    ]


def check_module(
    tally: Tally,
    label: str,
    module: torch.nn.Module,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
) -> None:
    """Compares results and buffers, and the gradients of parameters and arguments."""

    def run(device: str) -> tuple[Any, Any]:
        mine = copy.deepcopy(module).to(device)
        args, kwargs = mirror(arguments, device)
        result = mine(*args, **kwargs)
        return (result, list(mine.buffers())), (list(mine.parameters()), args, kwargs)

    check_agreement(tally, "forward", label, run)


@pytest.mark.parametrize(("info", "dtype", "training"), module_cases())
def test_module_agrees_with_the_cpu(
    request: pytest.FixtureRequest,
    info: ModuleInfo,
    dtype: torch.dtype,
    training: bool,
    whole: bool,
    tally: Tally,
) -> None:
    with quiet():
        torch.manual_seed(0)
        made = list(
            enumerate(
                info.module_inputs_func(
                    info, "cpu", dtype, requires_grad=True, training=training
                )
            )
        )
        if not whole:
            made = choose(request.node.name, made, SAMPLED_INPUTS)
        for i, sample in made:
            given = sample.constructor_input
            module = info.module_cls(*given.args, **given.kwargs)
            module = module.to(dtype).train(training)
            arguments = sample.forward_input.args, sample.forward_input.kwargs
            check_module(tally, f"sample {i}", module, arguments)
            if info.module_memformat_affects_out:
                changed = channels_last(arguments)
                check_module(tally, f"sample {i} channels last", module, changed)


@pytest.mark.parametrize(
    "info",
    [info for info in module_db if info.module_error_inputs_func is not None],
    ids=lambda info: f"{info.name}-error",
)
def test_module_refuses_what_the_cpu_refuses(info: ModuleInfo, tally: Tally) -> None:
    with quiet():
        errors = info.module_error_inputs_func(
            info, "cpu", torch.float32, requires_grad=False, training=False
        )
    for i, error in enumerate(errors):
        check_refusal(tally, f"error {i}", functools.partial(provoke, info, error))


def provoke(info: ModuleInfo, error: ErrorModuleInput, device: str) -> Any:
    """Does on a device what raises an exception."""
    sample = error.module_error_input
    given = sample.constructor_input
    args, kwargs = mirror((given.args, given.kwargs), device)
    module = info.module_cls(*args, **kwargs).to(device)
    if error.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
        return None
    given = sample.forward_input
    args, kwargs = mirror((given.args, given.kwargs), device)
    return module(*args, **kwargs)
