# SPDX-License-Identifier: BSD-3-Clause
"""Operators that CUDA supports and the CPU refuses, compared in a wider dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal import common_methods_invocations as invocations
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from openreg_conformance.checks.mirrors import mirror, tensors
from openreg_conformance.checks.operators import arguments_of, check_sample
from openreg_conformance.checks.samples import (
    case_name,
    choose,
    names_a_device,
    sorted_dtypes,
)
from openreg_conformance.checks.tally import Tally, attempt, quiet

from . import DEVICE

SAMPLES = 1
# Each dtype with its wider one; both kinds, because results may be of the other kind.
HALVES = {torch.float16: torch.float32, torch.complex32: torch.complex64}
WIDER = {
    torch.float16: HALVES,
    torch.complex32: HALVES,
    torch.bfloat16: {torch.bfloat16: torch.float32},
    torch.bool: {torch.bool: torch.uint8},
}
# The database has them for CUDA only, where they are kernels of libraries.
ONLY_CUDA = (
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
)
# In complex32; the gradient of a product with zeros needs it.
ALSO_REFUSED_BY_CUDA = ("cumprod",)


def cast(values: Any, dtypes: dict[torch.dtype, torch.dtype]) -> Any:
    """Casts the tensors and dtypes in a nested structure."""

    def change(value: Any) -> Any:
        if isinstance(value, Tensor) and value.dtype in dtypes:
            return value.to(dtypes[value.dtype])
        return dtypes.get(value, value) if isinstance(value, torch.dtype) else value

    return pytree.tree_map(change, values)


def write(tensor: Tensor, value: Tensor) -> Tensor:
    """Assigns a value with a different shape to a tensor, as an out= variant does."""
    if tensor.shape != value.shape:
        tensor.resize_(value.shape).as_strided_(value.shape, value.stride())
    return tensor.copy_(value)


def in_wider_dtype(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Calls an operator with all tensors cast, and casts its results back."""
    leaves, structure = pytree.tree_flatten((args, kwargs))
    dtypes = [each.dtype for each in leaves if isinstance(each, Tensor)]
    widen = next((WIDER[dtype] for dtype in dtypes if dtype in WIDER), {})
    wide = [cast(each, widen) for each in leaves]
    args, kwargs = pytree.tree_unflatten(wide, structure)
    result = op(*args, **kwargs)
    places = {id(new): old for new, old in zip(wide, leaves, strict=True)}
    for argument in written(op, args, kwargs):
        if places[id(argument)] is not argument:
            write(places[id(argument)], argument)
    narrow = {to: dtype for dtype, to in widen.items()}
    return pytree.tree_map(
        lambda each: places[id(each)] if id(each) in places else cast(each, narrow),
        result,
    )


def written(op: Any, args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """Lists the tensors that an operator writes to."""
    if not isinstance(op, torch._ops.OpOverload):
        return tensors(kwargs.get("out"))
    found = []
    for i, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            found += tensors(value)
    return found


def histc(
    x: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None
) -> Tensor:
    """Counts integers in bins with integer arithmetic, like CUDA."""
    low, high = int(min), int(max)
    if low == high and x.numel() > 0:
        low, high = int(x.min()), int(x.max())
    if low == high:
        low, high = low - 1, high + 1
    numbers = x.long().flatten()
    numbers = numbers[(numbers >= low) & (numbers <= high)]
    places = ((numbers - low) * bins // (high - low)).clamp(max=bins - 1)
    counts = torch.bincount(places, minlength=bins).to(x.dtype)
    return counts if out is None else write(out, counts)


def nansum(x: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor:
    """nansum of complex numbers, which the CPU supports in no dtype."""
    numbers = torch.where(x.isnan(), torch.zeros_like(x), x)
    return torch.sum(numbers, dim, keepdim, **kwargs)


class CPUInWiderDtypes(TorchDispatchMode):
    """Makes the CPU run refused operators in a wider dtype, below autograd."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        found = tensors((args, kwargs))
        if any(each.device.type != "cpu" for each in found):
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name == "histc" and not found[0].is_floating_point():
            return histc(*args, **kwargs)
        if name == "nansum" and found[0].is_complex():
            with self:
                return nansum(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except NotImplementedError as error:
            if name in ALSO_REFUSED_BY_CUDA or "neg_conj_cpu" in str(error):
                raise  # on the device, too; openreg.toml explains the latter
            if "not implemented for" not in str(error):
                raise
            return in_wider_dtype(func, args, kwargs)


class Composite:
    """A Fourier transform, which refuses dtypes above autograd, before any kernel.

    It has the attributes of a database entry that the checks use.
    """

    inplace_variant = None

    def __init__(self, op: OpInfo) -> None:
        self.op = op
        self.name = op.name
        self.supports_out = op.supports_out
        self.has_nondeterministic_output = op.has_nondeterministic_output
        self.test_conjugated_samples = op.test_conjugated_samples
        self.test_neg_view = op.test_neg_view

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(each.device.type == DEVICE for each in tensors((args, kwargs))):
            return self.op(*args, **kwargs)
        return in_wider_dtype(self.op, args, kwargs)


def pairs() -> Iterator[tuple[OpInfo, torch.dtype]]:
    """Lists operators with dtypes that the database has only for CUDA."""
    for op in invocations.op_db:
        forward = set(op.dtypesIfCUDA) - set(op.dtypes)
        backward = set(op.backward_dtypesIfCUDA) - set(op.backward_dtypes)
        if op.full_name not in ONLY_CUDA:
            for dtype in sorted_dtypes(forward | backward):
                yield op, dtype


PAIRS = list(pairs())
each_pair = pytest.mark.parametrize(
    ("op", "dtype"),
    PAIRS,
    ids=[case_name(op, torch.strided, dtype) for op, dtype in PAIRS],
)


def samples(op: OpInfo, dtype: torch.dtype, whole: bool) -> list[SampleInput]:
    grad = op.supports_autograd and dtype in op.backward_dtypesIfCUDA
    grad = grad and (dtype.is_floating_point or dtype.is_complex)
    torch.manual_seed(0)
    with quiet():
        made = list(op.sample_inputs("cpu", dtype, requires_grad=grad))
    made = [each for each in made if names_a_device(each)]
    return made if whole else choose(case_name(op, torch.strided, dtype), made, SAMPLES)


@each_pair
def test_operator_of_cuda_agrees_with_the_cpu_in_a_wider_dtype(
    op: OpInfo, dtype: torch.dtype, whole: bool
) -> None:
    made = samples(op, dtype, whole)
    assert made
    entry: Any = Composite(op) if op.name.startswith("fft.") else op
    checks = Tally(DEVICE)  # rounding is allowed, unlike in the fixture
    with quiet(), CPUInWiderDtypes():
        for i, sample in enumerate(made):
            check_sample(checks, f"sample {i}", entry, dtype, sample)
    assert checks.failures == []


@each_pair
def test_result_has_the_dtype_of_the_meta_kernel(
    op: OpInfo, dtype: torch.dtype
) -> None:
    sample = samples(op, dtype, whole=False)[0]
    args, kwargs = arguments_of(sample)
    meta = pytree.tree_map_only(
        Tensor, lambda each: each.detach().to("meta"), (args, kwargs)
    )
    expected = attempt(lambda: op(*meta[0], **meta[1]))
    if isinstance(expected.error, NotImplementedError):
        pytest.skip(f"no meta kernel: {expected.error}")
    assert expected.error is None
    args, kwargs = mirror((args, kwargs), DEVICE)
    with quiet():
        results = tensors(op(*args, **kwargs))
    wanted = [(each.dtype, each.shape) for each in tensors(expected.value)]
    assert [(each.dtype, each.shape) for each in results] == wanted
