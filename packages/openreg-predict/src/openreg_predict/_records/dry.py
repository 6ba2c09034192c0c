# SPDX-License-Identifier: BSD-3-Clause
"""Dry runs: device tensors without data.

Operators on the device run on PyTorch's fake tensors. Small host tensors are real, so
that numbers which a constructor reads exist; large ones are fake, so that a model may
be larger than the memory of this machine.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._pytree import tree_leaves

from openreg_predict._records.attention import CUDA_OPERATORS
from openreg_predict._records.record import RecordedRun

# Larger host tensors have no data: elements.
_REAL_UP_TO = 2**20
_READS = ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero")
# Keep what is known of a number: no gradient is taken to be infinite.
_KEEPS_NUMBERS = ("aten::_amp_foreach_non_finite_check_and_unscale_",)
_FILLS = {
    "aten::zeros": 0,
    "aten::ones": 1,
    "aten::zeros_like": 0,
    "aten::ones_like": 1,
    "aten::zero_": 0,
}
_MAKERS = (
    "empty", "empty_strided", "zeros", "ones", "full", "rand", "randn", "arange",
    "randint", "eye", "normal",
)  # fmt: skip


class DryRunError(RuntimeError):
    """A dry run cannot know a shape that depends on data."""


class DryRun:
    """Runs operators without data, and counts the values that it assumes."""

    def __init__(self, record: RecordedRun) -> None:
        from torch_openreg.openreg._utils import device_type

        self.record = record
        self.device_type = device_type()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.numbers: dict[int, tuple[Any, float | int | bool]] = {}
        self.stack = ExitStack()

    def __enter__(self) -> DryRun:
        if torch.distributed.is_available():
            from torch.distributed._tools import fake_collectives  # noqa: F401
        self.stack.enter_context(_foreach_functions())
        self.stack.enter_context(_states_without_data(self.device_type))
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def run(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs an operator, without data where tensors have none."""
        if not self._has_no_data(func, args, kwargs):
            return func(*args, **kwargs)
        name = func._schema.name
        if name in _READS:
            return self._assumed(name, args)
        try:
            with self.fake:
                result = func(*args, **kwargs)
        except (DynamicOutputShapeException, DataDependentOutputException) as error:
            raise DryRunError(
                f"{name} has a result whose shape depends on data, which a dry run "
                "does not have; record the program without --dry"
            ) from error
        # Fake tensors compute operators of constants alone, collectives too.
        for tensor in tree_leaves(result):
            if isinstance(tensor, FakeTensor):
                tensor.constant = None
        # A module cannot move a parameter to which others refer weakly.
        self.fake.fake_tensor_converter.meta_converter.tensor_memo.clear()
        self._remember(name, args, kwargs, result)
        return result

    def _has_no_data(
        self, func: torch._ops.OpOverload, args: Any, kwargs: dict[str, Any]
    ) -> bool:
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == self.device_type:
            return True
        if func in CUDA_OPERATORS or _has_fake((args, kwargs)):
            return True
        if device is None or torch.device(device).type == "cpu":
            return _elements_made(func, args) > _REAL_UP_TO
        return False

    def _assumed(self, name: str, args: tuple[Any, ...]) -> Any:
        tensor = args[0]
        storage = tensor.untyped_storage()
        known, value = self.numbers.get(storage._cdata, (None, 0))
        if known is not None and known() is storage and name != "aten::equal":
            return value
        self.record.assumed[name] = self.record.assumed.get(name, 0) + 1
        if name != "aten::_local_scalar_dense" or tensor.dtype == torch.bool:
            return name == "aten::equal"
        return 1.0 if tensor.is_floating_point() else 0

    def _remember(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Remembers the value of a tensor of one element that has just been filled."""
        value: Any = _FILLS.get(name)
        if name in ("aten::full", "aten::fill_"):
            value = args[1] if len(args) > 1 else kwargs.get("fill_value")
        elif name == "aten::_to_copy" and type(args[0]) is torch.Tensor:
            value = args[0].item() if args[0].numel() == 1 else None
        if name in _KEEPS_NUMBERS:
            return
        if isinstance(result, FakeTensor) and result.numel() == 1:
            storage = result.untyped_storage()
            if isinstance(value, (bool, int, float)):
                self.numbers[storage._cdata] = weakref.ref(storage), value
            elif name.endswith("_"):
                self.numbers.pop(storage._cdata, None)


@contextmanager
def _foreach_functions() -> Iterator[None]:
    """Makes PyTorch use foreach functions for fake tensors as for device tensors."""
    from torch.optim.optimizer import _foreach_supported_types as for_optimizers
    from torch.utils._foreach_utils import _foreach_supported_types as for_clipping

    lists: tuple[list[Any], ...] = (for_optimizers, for_clipping)
    for supported in lists:
        supported.append(FakeTensor)
    try:
        yield
    finally:
        for supported in lists:
            supported.remove(FakeTensor)


@contextmanager
def _states_without_data(device_type: str) -> Iterator[None]:
    """Makes the device's generators ignore states without data, as DTensor's are."""
    module = torch.get_device_module(device_type)
    original = module.set_rng_state

    @wraps(original)
    def set_rng_state(new_state: torch.Tensor, device: Any = None) -> None:
        if not isinstance(new_state, FakeTensor):
            original(new_state, *([] if device is None else [device]))

    module.set_rng_state = set_rng_state
    try:
        yield
    finally:
        module.set_rng_state = original


def _has_fake(value: Any) -> bool:
    if isinstance(value, FakeTensor):
        return True
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return any(map(_has_fake, value))


def _elements_made(func: torch._ops.OpOverload, args: tuple[Any, ...]) -> int:
    """Returns the elements that a factory makes; 0 for other operators."""
    if func.namespace != "aten" or func._schema.name[6:] not in _MAKERS or not args:
        return 0
    sizes = args[0]
    if isinstance(sizes, (list, tuple)) and all(isinstance(x, int) for x in sizes):
        return math.prod(sizes)
    return 0
