# SPDX-License-Identifier: BSD-3-Clause
"""Lists the operators that reject host scalars on CUDA, at build time.

    python device_checks.py FILE  # one line of C++ per operator

The list comes from ``native_functions.yaml``, which the torch wheel contains.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torchgen
from torchgen.gen import parse_native_yaml
from torchgen.model import DeviceCheckType, DispatchKey, NativeFunction

SOURCES = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"


def main(file: Path) -> None:
    """Writes the sorted names, without the underscore of in-place operators."""
    parsed = parse_native_yaml(
        str(SOURCES / "native_functions.yaml"), str(SOURCES / "tags.yaml")
    )
    cuda = parsed.backend_indices[DispatchKey.CUDA]

    def has_kernel(function: NativeFunction) -> bool:
        return function.structured_delegate is not None or cuda.has_kernel(function)

    checked: set[str] = set()
    unchecked: set[str] = set()
    for function in parsed.native_functions:
        inputs = function.func.arguments.flat_non_out
        tensors = [each for each in inputs if each.type.is_tensor_like()]
        if has_kernel(function) and len(tensors) >= 2:
            is_checked = function.device_check is DeviceCheckType.ExactSame
            name = function.func.name.name
            base = f"__{name.base}__" if name.dunder_method else name.base
            (checked if is_checked else unchecked).add(base)
    lines = [f'"{name}",\n' for name in sorted(checked - unchecked)]
    file.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
