# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's operator database with OPENREG_CUDA_LIMITS=1, and prints what fails.

The output is JSON. For each operator and dtype of the CPU it has whether the database
has the dtype for CUDA, the texts of refusals, and the number of samples that ran.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal import common_cuda

# The database's dtypes for CUDA depend on the GPU, and this one is recent.
vars(common_cuda)["SM53OrLater"] = True

from torch.testing._internal import common_methods_invocations as invocations  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

SAMPLES = 2  # for dtypes that CUDA has; all for the others
TABLE = Path(__file__).parents[2] / "packages/openreg-aten/csrc/ops/cuda_limits.def"


def refusals() -> re.Pattern[str]:
    """Returns the texts of the table."""
    table = TABLE.read_text(encoding="utf-8")
    names = re.findall(r'^CUDA_REFUSES_DTYPES\((?:[^,]*,){4} "(\w+)"', table, re.M)
    texts = re.findall(r'^CUDA_REJECTS_DTYPES\((?:[^,]*,){4} "([^"]+)"', table, re.M)
    alternatives = [
        *(f'"{name}" not implemented for' for name in names),
        *(re.escape(text.partition("{}")[0]) for text in texts),
        "CUDA has no kernel for it",
    ]
    return re.compile("|".join(alternatives))


def run(op: Any, sample: Any) -> str | None:
    """Calls an operator on the device; returns the text of its error, if any."""

    def moved(value: Any) -> Any:
        return value.to("openreg") if isinstance(value, torch.Tensor) else value

    names_cpu = any(
        isinstance(each, torch.device) or each == "cpu"
        for each in pytree.tree_leaves((sample.args, sample.kwargs))
        if not isinstance(each, torch.Tensor)
    )
    if names_cpu:
        return None
    try:
        input, args, kwargs = pytree.tree_map(
            moved, (sample.input, sample.args, sample.kwargs)
        )
        op(input, *args, **kwargs)
    except Exception as error:
        return str(error)
    return None


def cases() -> Iterator[dict[str, Any]]:
    """Runs all operators."""
    refused = refusals()
    operators: list[Any] = invocations.op_db
    for op in operators:
        for dtype in sorted(op.dtypes, key=str):
            on_cuda = dtype in op.dtypesIfCUDA
            try:
                samples = op.sample_inputs("cpu", dtype, requires_grad=False)
                texts = [
                    run(op, sample)
                    for sample in islice(samples, SAMPLES if on_cuda else None)
                ]
            except Exception as error:  # errors of the database itself
                texts = [f"sample: {error}"]
            yield {
                "operator": op.full_name,
                "dtype": str(dtype).removeprefix("torch."),
                "on_cuda": on_cuda,
                "ran": texts.count(None),
                "refused": sorted(
                    {text for text in texts if text and refused.search(text)}
                ),
                "failed": sorted(
                    {text[:200] for text in texts if text and not refused.search(text)}
                ),
            }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump(list(cases()), sys.stdout)
