# SPDX-License-Identifier: BSD-3-Clause
"""The conditions for the table of operators that make the host wait on CUDA.

Each takes a call and returns the part that waits, as a suffix of the operator's name,
or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_openreg._waits import cause_of_copy
from torch_openreg.openreg._utils import device_type

_MASKS = (torch.bool, torch.uint8)
_LARGEST_FUSED_SLICE = 2048


@dataclass(frozen=True)
class Call:
    """A call of an operator.

    Attributes:
        name: The operator, such as ``aten::index``.
        arguments: Arguments by name, without default values.
        number: Whether it comes from ``x[...] = number``. The number is then a device
            tensor here, and a host tensor on CUDA.
    """

    name: str
    arguments: dict[str, Any]
    number: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.arguments.get(name)


def on_device(value: object) -> bool:
    """Returns whether a value is a device tensor."""
    return isinstance(value, Tensor) and value.device.type == device_type()


def on_host(value: object) -> bool:
    """Returns whether a value is a CPU tensor."""
    return isinstance(value, Tensor) and value.device.type == "cpu"


def always(call: Call) -> str | None:
    """Waits if it has a device tensor."""
    return "" if any(map(on_device, tree_leaves(call.arguments))) else None


def never(call: Call) -> str | None:
    """Never waits."""
    del call
    return None


def _input(call: Call) -> Tensor | None:
    value = next(iter(call.arguments.values()), None)
    return value if isinstance(value, Tensor) and on_device(value) else None


def not_empty(call: Call) -> str | None:
    """Waits if there is a value to read."""
    value = _input(call)
    return "" if value is not None and value.numel() else None


def compared(call: Call) -> str | None:
    """Waits if two tensors have to be compared."""
    one, other = call["self"], call["other"]
    if not on_device(one) or one.size() != other.size() or not one.numel():
        return None
    same = one.is_set_to(other) and one.is_conj() == other.is_conj()
    return None if same and one.is_neg() == other.is_neg() else ""


# ---- indices


def index(call: Call) -> str | None:
    """Waits for the size of a mask, or for indices that are copied to the device."""
    indices = [each for each in call["indices"] if each is not None]
    if not on_device(call["self"]):
        return None
    if any(on_device(each) and each.dtype in _MASKS for each in indices):
        return " with a mask"
    # A host mask is counted on the host, and its indices are pinned.
    if any(
        on_host(each) and each.dtype not in _MASKS and each.numel() for each in indices
    ):
        return " with an index from cpu"
    return None


def index_put(call: Call) -> str | None:
    """Waits as an index does, and for a value that is copied to the device."""
    value = call["values"]
    host_value = call.number or on_host(value)
    if not on_device(call["self"]):
        return None
    indices = [each for each in call["indices"] if each is not None]
    masks = [each for each in indices if on_device(each) and each.dtype in _MASKS]
    fills = host_value and value.numel() == 1 and not call["accumulate"]
    if fills and len(indices) == len(masks) == 1:
        return None
    cause = index(call)
    if cause is None and host_value and value.dim() == 0:
        return " with a value from cpu"
    return cause


def value_on_device(call: Call) -> str | None:
    """Waits to read the value."""
    return " with a value on the device" if on_device(call["value"]) else None


# ---- copies


def copied_number(call: Call) -> str | None:
    """Waits like any copy; on CUDA a number is copied into one element."""
    target, source = call["self"], call["src"]
    if call.number and on_device(target) and target.dim() == source.dim() == 0:
        return " of a number"
    cause = cause_of_copy(target, source, bool(call["non_blocking"]))
    return None if cause is None else f" {cause}"


def foreach_copied(call: Call) -> str | None:
    """Waits for each copy from or to the host."""
    for target, source in zip(call["self"], call["src"], strict=False):
        cause = cause_of_copy(target, source, bool(call["non_blocking"]))
        if cause is not None:
            return f" {cause}"
    return None


def mixed_devices(call: Call) -> str | None:
    """Waits for the copy of a host tensor to the device."""
    tensors = [*call.arguments.values()]
    mixed = any(map(on_device, tensors)) and any(map(on_host, tensors))
    return " with a tensor from cpu" if mixed else None


# ---- ranges, distributions, searches


def ends_on_device(call: Call) -> str | None:
    """Waits to read an end."""
    return "" if on_device(call["start"]) or on_device(call["end"]) else None


def checks_std(call: Call) -> str | None:
    """Waits to check a standard deviation."""
    return "" if on_device(call["std"]) and call["std"].numel() else None


def sorter(call: Call) -> str | None:
    """Waits to check the sorter's range."""
    given = on_device(call["sorter"]) and call["sorter"].numel()
    return " with a sorter" if given else None


def no_range(call: Call) -> str | None:
    """Waits for the smallest and the largest value."""
    equal = (call["min"] or 0) == (call["max"] or 0)
    return " without a range" if equal and not_empty(call) is not None else None


def sorts_unique(call: Call) -> str | None:
    """Waits for the unique elements."""
    elements, test_elements = call["elements"], call["test_elements"]
    if not on_device(elements) or not elements.numel() or call["assume_unique"]:
        return None
    few = test_elements.numel() < int(10 * elements.numel() ** 0.145)
    return None if few else " of many elements"


def long_slices(call: Call) -> str | None:
    """Waits for each slice that is sorted."""
    value, dim = call["self"], call["dim"]
    if not on_device(value) or not value.dim():
        return None
    length = value.size(-1 if dim is None else dim)
    return " of long slices" if length > _LARGEST_FUSED_SLICE else None


def checks_lengths(call: Call) -> str | None:
    """Waits to check the lengths."""
    checked = on_device(call["lengths"]) and not call["unsafe"]
    return " with lengths" if checked else None


def no_output_size(call: Call) -> str | None:
    """Waits for the sum of the repeats."""
    return None if call["output_size"] is not None else not_empty(call)


# ---- linear algebra


def checks_errors(call: Call) -> str | None:
    """Waits for the error codes."""
    checked = call["check_errors"] and _input(call) is not None
    return " with check_errors" if checked else None


def matrices(call: Call) -> str | None:
    """Waits for norms of matrices."""
    value = _input(call)
    return "" if value is not None and value.numel() and value.size(-1) > 1 else None


# ---- layouts, quantization


def dense(call: Call) -> str | None:
    """Waits for the number of nonzero elements."""
    value = _input(call)
    strided = value is not None and value.layout == torch.strided
    return "" if strided else None


def several_entries(call: Call) -> str | None:
    """Waits for the number of remaining entries."""
    value = _input(call)
    return "" if value is not None and value._nnz() > 1 else None


def no_total(call: Call) -> str | None:
    """Waits for the sum of the lengths."""
    return None if call["total_L"] is not None else always(call)


def checks_zero_points(call: Call) -> str | None:
    """Waits to check the range of zero points."""
    points = call["zero_point"]
    checked = on_device(points) and not points.is_floating_point()
    return "" if checked else None


def per_row(call: Call) -> str | None:
    """Waits to read whether to quantize."""
    return always(call) if call["per_row_fake_quant"] else None
