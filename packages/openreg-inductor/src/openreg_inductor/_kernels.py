# SPDX-License-Identifier: BSD-3-Clause
"""The kernel classes, and their differences from the CPU's.

The CPU's kernels use the processor's instruction for integer divisions that round
towards zero, which ends the process if the divisor is zero. They also load masked-out
booleans and elements behind the end of a row, where device memory may not exist.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch._inductor.codegen import cpp

_cpp: Any = cpp  # has no type hints
_FUNCTION = "openreg::inductor::truncate_divide_integral("


class _Division:
    """Generates a division that rounds towards zero like one that rounds down."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self: Any = super().__new__(cls, *args, **kwargs)
        # The base class may have set operators as instance attributes.
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


# The function checks for CppKernel itself to recognize a scalar kernel: the remainder
# of a tile, which runs once for the whole loop.
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
    """Chooses between scalar and vector kernels."""

    kernel_cls = _Kernel
    vec_kernel_cls = _VecKernel
    tile2d_kernel_cls = _Tile2DKernel
