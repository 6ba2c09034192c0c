# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's operators on DTensors, with PyTorch's samples and placements.

The same two ranks run each on the CPU with gloo and on the device with occl. The local
parts must have the same values, or both must raise the same kind of error.
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_flatten, tree_map

from torch_openreg.testing import run_ranks

pytestmark = [
    pytest.mark.differs_in_process("occl", run=False),
    pytest.mark.timeout(900),
]

PARTS = 4
SAMPLES = 2  # of each operator
PLACEMENTS = 4  # of each sample
# Results are uninitialized, or need a generator that the CPU mesh does not have.
WITHOUT_VALUES = (
    *("empty", "rand", "dropout", "bernoulli", "normal", "multinomial", "uniform"),
    *("exponential", "geometric", "cauchy", "rrelu", "fractional"),
)
# Requires indices on the CPU, also on CUDA, but here all arguments are moved.
LEFT_OUT = ("tensor_split",)


def on_the_host(leaf: Any) -> Any:
    if isinstance(leaf, DTensor):
        leaf = leaf.to_local()
    return leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf


def attempt(function: Any, args: Any, kwargs: Any) -> Any:
    """Returns the local parts of the results, or the kind of error."""
    torch.manual_seed(1)
    try:
        results = tree_flatten(function(*args, **kwargs))[0]
        torch.accelerator.synchronize()  # copies to the host may still run
        return [on_the_host(x) for x in results]
    except Exception as error:
        return type(error).__name__


def is_same(one: Any, other: Any, has_values: bool) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if not has_values:
            return (one.shape, one.dtype) == (other.shape, other.dtype)
        try:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
        except AssertionError:
            return False
        return True
    return type(one) is type(other) and (not has_values or one == other)


def compare(rank: int, part: int) -> tuple[Counter[str], list[str]]:
    warnings.simplefilter("ignore")
    # Imported here, to ignore their warnings.
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.distributed._tensor.common_dtensor import (
        DTensorConverter,
    )

    meshes = [init_device_mesh(each, (2,)) for each in ("cpu", "openreg")]
    counts: Counter[str] = Counter()
    different = []
    for op in sorted(op_db, key=lambda each: each.full_name)[part::PARTS]:
        if torch.float32 not in op.dtypes or op.name in LEFT_OUT:
            continue
        values = not any(word in op.full_name for word in WITHOUT_VALUES)
        torch.manual_seed(0)
        samples = op.sample_inputs("cpu", torch.float32)
        for number, sample in enumerate(itertools.islice(samples, SAMPLES)):
            given = ((sample.input, *sample.args), sample.kwargs)
            there = tree_map(
                lambda x: x.to("openreg") if isinstance(x, torch.Tensor) else x, given
            )
            pairs = zip(
                DTensorConverter(meshes[0], *given),
                DTensorConverter(meshes[1], *there),
                strict=True,
            )
            for choice, (here, there) in enumerate(itertools.islice(pairs, PLACEMENTS)):
                wanted = attempt(op.op, *here)
                found = attempt(op.op, *there)
                if isinstance(wanted, str) or isinstance(found, str):
                    same = wanted == found if isinstance(found, str) else False
                else:
                    same = all(map(is_same, wanted, found, itertools.repeat(values)))
                if same:
                    counts["refused" if isinstance(wanted, str) else "same"] += 1
                else:
                    kinds = [x if isinstance(x, str) else "" for x in (wanted, found)]
                    different.append(f"{op.full_name} {number} {choice}: {kinds}")
    return counts, different


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_on_dtensors_behave_like_on_the_cpu(part):
    both = "cpu:gloo,openreg:occl"
    ranks = run_ranks(compare, 2, part, seconds=850, backend=both)
    for counts, different in ranks:
        assert different == [], counts
        assert counts["same"] > 100
