# SPDX-License-Identifier: BSD-3-Clause
"""Compares assert_no_host_sync on PyTorch's operators with two other sources.

One is a list of the operators that wait on CUDA, from PyTorch's sources. The other is
PyTorch itself: if the CPU and CUDA share a function that reads a value on the CPU, it
reads one on CUDA too, so the operator needs an entry in the table.
"""

from __future__ import annotations

import contextlib
import functools
import random

import pytest
import torch
from torch.autograd.profiler import profile
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from openreg_conformance.checks.mirrors import mirror
from openreg_conformance.checks.samples import OPERATORS, names_a_device, sorted_dtypes
from openreg_conformance.checks.tally import quiet
from torch_openreg._facts.cuda_waits import RULES
from torch_openreg.testing import HostSync, assert_no_host_sync

from . import DEVICE

pytestmark = pytest.mark.timeout(120, method="thread")

_READS = {
    "aten::_local_scalar_dense",
    "aten::nonzero",
    "aten::_unique",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::equal",
    "aten::_linalg_check_errors",
}
_OPERATORS = {
    op.full_name: op
    for op in OPERATORS
    if op.dtypes and not op.name.startswith(("_foreach", "jiterator"))
}

# Operators that wait on CUDA, with the expected report of assert_no_host_sync.
_REPORTED = {
    "aten::_local_scalar_dense": "item narrow nn.functional.one_hot "
    "nn.functional.gaussian_nll_loss",
    "aten::nonzero": "nonzero argwhere",
    "aten::masked_select": "masked_select combinations",
    "aten::unique_dim": "unique",
    "aten::unique_consecutive": "unique_consecutive",
    "aten::bincount": "bincount",
    "aten::repeat_interleave": "repeat_interleave",
    "aten::equal": "equal cov corrcoef istft",
    "aten::allclose": "allclose",
    "aten::index": "__getitem__",
    "Tensor.__getitem__": "__getitem__",
    "aten::index_put": "index_put",
    "aten::masked_fill": "masked_fill",
    "aten::index_fill": "index_fill",
    "aten::linspace": "linspace.tensor_overload signal.windows.kaiser",
    "aten::logspace": "logspace.tensor_overload",
    "aten::normal": "normal",
    "aten::isin": "isin",
    "aten::histc": "histc",
    "aten::searchsorted": "searchsorted",
    "aten::mode": "mode",
    "aten::segment_reduce": "_segment_reduce.lengths",
    "aten::_ctc_loss": "nn.functional.ctc_loss",
    "aten::cholesky": "cholesky",
    "aten::cholesky_inverse": "cholesky_inverse",
    "aten::linalg_matrix_exp": "matrix_exp",
    "aten::_to_sparse": "to_sparse",
    "aten::linalg_pinv": "pinverse linalg.pinv linalg.pinv.singular "
    "linalg.pinv.hermitian",
    "aten::_linalg_svd": "svd svd_lowrank pca_lowrank norm.nuc linalg.cond "
    "linalg.norm linalg.norm.subgradients_at_zero linalg.matrix_norm linalg.svd "
    "linalg.svdvals linalg.matrix_rank",
    "aten::_linalg_eigh": "linalg.eigh linalg.eigvalsh linalg.matrix_rank.hermitian",
    "aten::linalg_eig": "linalg.eig linalg.eigvals",
    "aten::linalg_lstsq": "linalg.lstsq linalg.lstsq.grad_oriented",
    "aten::_linalg_check_errors": "linalg.cholesky linalg.ldl_factor "
    "linalg.matrix_power linalg.lu_factor linalg.inv linalg.solve linalg.tensorinv "
    "linalg.tensorsolve",
    # Python code of PyTorch that creates tensors from numbers.
    "torch.tensor": "signal.windows.hamming signal.windows.hann "
    "signal.windows.blackman signal.windows.kaiser signal.windows.general_cosine "
    "signal.windows.general_hamming signal.windows.nuttall masked.sum masked.prod "
    "masked.cumsum masked.cumprod masked.amax masked.amin masked.argmax masked.argmin "
    "masked.mean masked.median masked.norm masked.var masked.std masked.softmax "
    "masked.log_softmax masked.softmin masked.logaddexp masked.logsumexp",
}


def _samples(op: OpInfo) -> list[SampleInput]:
    """A few samples, of float32 if the operator takes it."""
    dtypes = sorted_dtypes(op.dtypes)
    dtype = torch.float32 if torch.float32 in dtypes else dtypes[0]
    torch.manual_seed(0)
    with quiet():
        made = [s for s in op.sample_inputs("cpu", dtype) if names_a_device(s)]
    # Not evenly spread: databases repeat their shapes at regular distances.
    return random.Random(op.full_name).sample(made, min(12, len(made)))


def _call(op: OpInfo, sample: SampleInput) -> None:
    with quiet():
        op(sample.input, *sample.args, **sample.kwargs)


def _causes(op: OpInfo, sample: SampleInput) -> set[str]:
    """Returns the waits that assert_no_host_sync finds in a call, even if it fails."""
    waits: list[HostSync] = []
    with contextlib.suppress(AssertionError, RuntimeError), assert_no_host_sync() as it:
        waits = it
        _call(op, sample)
    return {each.cause.partition(" ")[0] for each in waits}


@functools.cache
def _is_composite(name: str) -> bool:
    """Returns whether all overloads consist of operators that a mode sees."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return True
    overloads = [getattr(packet, each) for each in packet.overloads()]
    return all(
        torch._C._dispatch_has_kernel_for_dispatch_key(
            each.name(), "CompositeImplicitAutograd"
        )
        for each in overloads
        if "out" not in each._overloadname
    )


def _readers(op: OpInfo, sample: SampleInput) -> set[str]:
    """Lists the operators seen by a dispatch mode in which the CPU reads a value."""
    with profile() as recorded:
        _call(op, sample)
    readers = set()
    for event in recorded.function_events:
        if event.name not in _READS:
            continue
        chain = []
        while event is not None:
            if event.name.startswith("aten::"):
                chain.append(event.name)
            event = event.cpu_parent
        readers.add(next(name for name in reversed(chain) if not _is_composite(name)))
    return readers


@pytest.mark.parametrize("name", _OPERATORS)
def test_operator_that_reads_a_value_on_the_cpu_is_in_the_table(name: str) -> None:
    op = _OPERATORS[name]
    known = {rule.partition(".")[0] for rule in RULES}
    for sample in _samples(op):
        assert _readers(op, sample) <= known


@pytest.mark.parametrize("name", _OPERATORS)
def test_operator_is_reported_if_it_waits_on_cuda(name: str) -> None:
    op, found = _OPERATORS[name], set()
    expected = {cause for cause, names in _REPORTED.items() if name in names.split()}
    for sample in _samples(op):
        values = (sample.input, sample.args, sample.kwargs)
        moved, args, kwargs = mirror(values, DEVICE)
        found |= _causes(op, SampleInput(moved, args=args, kwargs=kwargs))
    assert found == expected
