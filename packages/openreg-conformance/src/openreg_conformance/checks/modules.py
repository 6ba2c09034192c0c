# SPDX-License-Identifier: BSD-3-Clause
"""The checks of one module of PyTorch's database."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import (
    ErrorModuleInput,
    ModuleErrorEnum,
    ModuleInfo,
    module_db,
)

from .agreement import check_agreement, check_refusal
from .mirrors import mirror
from .operators import channels_last
from .samples import choose, sorted_dtypes
from .tally import SEED, Tally, quiet

SAMPLED_INPUTS = 3


def module_cases() -> Iterator[tuple[ModuleInfo, torch.dtype, bool]]:
    """Lists modules with dtypes and training modes."""
    for info in module_db:
        for dtype in sorted_dtypes(info.dtypes):
            yield info, dtype, True
            if info.train_and_eval_differ:
                yield info, dtype, False


def check_module(
    tally: Tally,
    key: str,
    info: ModuleInfo,
    dtype: torch.dtype,
    training: bool,
    *,
    whole: bool,
) -> None:
    """Compares a module on samples of the database.

    Args:
        tally: Takes the count.
        key: The key that selects the samples.
        info: The module.
        dtype: The dtype of its parameters and inputs.
        training: Whether the module is training.
        whole: Whether to use all samples instead of a few.
    """
    torch.manual_seed(SEED)
    made = list(
        enumerate(
            info.module_inputs_func(
                info, "cpu", dtype, requires_grad=True, training=training
            )
        )
    )
    if not whole:
        made = choose(key, made, SAMPLED_INPUTS)
    for i, sample in made:
        given = sample.constructor_input
        module = info.module_cls(*given.args, **given.kwargs)
        module = module.to(dtype).train(training)
        arguments = sample.forward_input.args, sample.forward_input.kwargs
        _check_sample(tally, f"sample {i}", module, arguments)
        if info.module_memformat_affects_out:
            changed = channels_last(arguments)
            _check_sample(tally, f"sample {i} channels last", module, changed)


def _check_sample(
    tally: Tally,
    label: str,
    module: torch.nn.Module,
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
) -> None:
    """Compares results, buffers, and gradients of parameters and arguments."""

    def run(device: str) -> tuple[Any, Any]:
        mine = copy.deepcopy(module).to(device)
        args, kwargs = mirror(arguments, device)
        result = mine(*args, **kwargs)
        return (result, list(mine.buffers())), (list(mine.parameters()), args, kwargs)

    check_agreement(tally, "forward", label, run)


def check_module_errors(tally: Tally, info: ModuleInfo) -> None:
    """Compares the exception types for the database's invalid inputs."""
    with quiet():
        errors = info.module_error_inputs_func(
            info, "cpu", torch.float32, requires_grad=False, training=False
        )
    for i, error in enumerate(errors):
        check_refusal(tally, f"error {i}", functools.partial(_provoke, info, error))


def _provoke(info: ModuleInfo, error: ErrorModuleInput, device: str) -> Any:
    """Runs a call on a device that raises an exception."""
    sample = error.module_error_input
    given = sample.constructor_input
    args, kwargs = mirror((given.args, given.kwargs), device)
    module = info.module_cls(*args, **kwargs).to(device)
    if error.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
        return None
    given = sample.forward_input
    args, kwargs = mirror((given.args, given.kwargs), device)
    return module(*args, **kwargs)
