# SPDX-License-Identifier: BSD-3-Clause
"""The classes of kernels, and what of theirs differs from the CPU's.

There, a division of integers that rounds towards zero is the processor's own, which
ends the process if the divisor is zero. What a mask leaves out is loaded all the same
if it is boolean, or behind the end of a row: there may be no memory of the device.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch._inductor.codegen import cpp

_cpp: Any = cpp  # whose functions have no types
_FUNCTION = "openreg::inductor::truncate_divide_integral("


class _Division:
    """Writes a division that rounds towards zero like one that rounds down."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self: Any = super().__new__(cls, *args, **kwargs)
        # Its base may have made attributes of an object of the operators.
        floordiv = self.floordiv
        self.truncdiv = lambda a, b: floordiv(a, b).replace(
            "floor_divide_integral(", _FUNCTION, 1
        )
        return self


class _Overrides(_Division, cpp.CppOverrides):
    pass


class _VecOverrides(_Division, cpp.CppVecOverrides):
    pass


class _Tile2DOverrides(_Division, cpp.CppTile2DOverrides):
    pass


class _Kernel(cpp.CppKernel):
    overrides = _Overrides


# It asks whether the class is CppKernel itself, and means a kernel of numbers: the rest
# of a tile, which runs once for all of a loop.
_conditions = cpp.CppKernel.codegen_conditions
_Kernel.codegen_conditions = FunctionType(  # type: ignore[method-assign]
    _conditions.__code__,
    {**vars(cpp), "CppKernel": _Kernel},
    argdefs=_conditions.__defaults__,
)


class _VecKernel(cpp.CppVecKernel):
    overrides = _VecOverrides

    def _get_vec_load_line(
        self, var: str, index: Any, dtype: torch.dtype, load_mask: Any = None
    ) -> str:
        is_tail = self.num_elems != self.tiling_factor
        if load_mask is None or (dtype != torch.bool and not is_tail):
            line: str = super()._get_vec_load_line(var, index, dtype, load_mask)
            return line
        kind = self._get_mask_type(torch.float)
        mask = (
            self._get_mask_cast(load_mask, torch.float)
            if load_mask.is_vec
            else f"{kind}::from({load_mask})"
        )
        if is_tail:
            count = _cpp.cexpr_index(self.num_elems)
            mask = f"{kind}::set({kind}(), {mask}, {count})"
        source = f"{var} + {_cpp.cexpr_index(index)}"
        if dtype == torch.bool:
            bits = f"reinterpret_cast<const unsigned char*>({source})"
            bits = f"{mask}.template loadu<unsigned char,1>({bits})"
            return (
                f"{self._get_mask_type()}::from("
                f"at::vec::VectorizedN<unsigned char,1>({bits}))"
            )
        of = f"{_cpp.DTYPE_TO_CPP[dtype]},{self._get_num_vectors(dtype)}"
        return f"{mask}.template loadu<{of}>({source})"


class _Tile2DKernel(cpp.CppTile2DKernel, _VecKernel):
    overrides = _Tile2DOverrides


class KernelProxy(cpp.CppKernelProxy):
    """Chooses between a kernel of numbers and one of vectors."""

    kernel_cls = _Kernel
    vec_kernel_cls = _VecKernel
    tile2d_kernel_cls = _Tile2DKernel
