# SPDX-License-Identifier: BSD-3-Clause
"""Writes C functions that call operators, for wrappers in C++: at build time.

PyTorch's own, such as aoti_torch_cpu_mm_out, call the kernels of their device. Those
here call the dispatcher. The program that writes PyTorch's writes them too:

    python shims.py FOLDER  # c_shim_openreg.h and c_shim_openreg.cpp
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torchgen
from torchgen import gen_aoti_c_shim
from torchgen.aoti.fallback_ops import inductor_fallback_ops
from torchgen.gen import parse_native_yaml
from torchgen.model import NativeFunction, Variant

SOURCES = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"


_function_name = gen_aoti_c_shim.gen_static_dispatch_backend_call


def _function_or_method(function: NativeFunction, index: Any = None) -> str:
    """Returns the function that calls an operator; some operators are only methods."""
    if Variant.function in function.variants:
        return _function_name(function, index)
    return f"at::_ops::{function.func.name.unambiguous_name()}::call"


def main(folder: Path) -> None:
    """Writes both files for the operators that have C shims in PyTorch."""
    parsed = parse_native_yaml(
        str(SOURCES / "native_functions.yaml"), str(SOURCES / "tags.yaml")
    )
    functions = {
        gen_aoti_c_shim.get_fallback_op_name(each): each
        for each in parsed.native_functions
    }
    gen_aoti_c_shim.gen_static_dispatch_backend_call = _function_or_method
    chosen = [functions[name] for name in sorted(inductor_fallback_ops)]
    for suffix in ("h", "cpp"):
        text = gen_aoti_c_shim.gen_aoti_c_shim(
            chosen,
            inductor_fallback_ops,
            {},
            None,  # no key: calls of the dispatcher
            parsed.backend_indices,
            header=suffix == "h",
            extend_aoti_c_shim=False,
        )
        text = text.replace("aoti_torch_aten_", "aoti_torch_openreg_").replace(
            "<torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h>",
            '"c_shim_openreg.h"',
        )
        text = text.replace(
            "AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE(",
            "OPENREG_CONVERT_EXCEPTION_TO_ERROR_CODE(",
        )
        if suffix == "cpp":
            text = f'#include "launch/raised.h"\n{text}'
        (folder / f"c_shim_openreg.{suffix}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
