# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the folders of C++ code depend on each other in one direction only.

    python tools/check_layers.py    prints each include that points upwards

A layer is a folder of a ``csrc``, or a file beside the folders without its suffix.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

# Lowest first: a file includes what is in its own layer, or in one before it.
LAYERS = {
    "packages/openreg-runtime/csrc": [
        "base/",
        "activity/",
        "failures/",
        "settings/",
        "memory/",
        "ipc/",
        "backend/",
        "stream/",
        "device/",
        "api/",
        "bindings/",
    ],
    "packages/openreg-aten/csrc": [
        "export",
        "thread_local",
        "pointer_table",
        "mechanism",
        "device/",
        "codec/",
        "kernel/",
        "ops/",
        "bindings/",
    ],
    "packages/openreg-distributed/csrc": [
        "gil",
        "maker",
        "gathered",
        "copy",
        "patience",
        "transport",
        "gloo",
        "combine",
        "patience",
        "shared/",
        "reduction",
        "engine",
        "streams",
        "caller_streams",
        "timer",
        "work",
        "pending",
        "signals",
        "python_stack",
        "flight",
        "execution",
        "backend",
        "symmetric_memory",
        "module",
    ],
    "packages/openreg-inductor/csrc": [
        "failures",
        "divide",
        "launch",
        "bound",
        "binding",
        "runtime",
        "wrapper",
        "aoti",
        "raised",
        "operand",
        "runner",
        "translated",
        "graph",
        "results",
        "module",
    ],
    "packages/openreg-profiler/csrc": [
        "clock",
        "details",
        "trace",
        "session",
        "profiler",
        "module",
    ],
}
# This one uses the library through its public header, and no layers but these.
ONLY = {"packages/openreg-runtime/csrc/bindings/": ["base/", "bindings/"]}

_INCLUDE = re.compile(r"""\s*#\s*include\s*(["<])([^">]+)[">]""")


def layer_of(csrc: Path, file: Path) -> str:
    """Names the layer of a file."""
    folder, *rest = file.resolve().relative_to(csrc).parts
    return f"{folder}/" if rest else Path(folder).stem


def check(root: Path) -> Iterator[str]:
    """Yields one sentence for each file without a layer and each include upwards."""
    for name, order in LAYERS.items():
        csrc = (root / name).resolve()
        for file in sorted([*csrc.rglob("*.h"), *csrc.rglob("*.cpp")]):
            where, layer = f"{name}/{file.relative_to(csrc)}", layer_of(csrc, file)
            if layer not in order:
                yield f"{where}:1: {layer} is no layer"
                continue
            below = ONLY.get(f"{name}/{layer}", order[: order.index(layer) + 1])
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = _INCLUDE.match(line)
                if not found:
                    continue
                beside, ours = file.parent / found[2], csrc / found[2]
                if found[1] == "<" and not ours.is_file():
                    continue  # a header of another library
                other = layer_of(csrc, beside if beside.exists() else ours)
                if other not in below:
                    yield f"{where}:{number}: {layer} must not include {other}"


def main(root: Path | None = None) -> int:
    """Prints what is wrong; returns the exit status."""
    problems = list(check(root or ROOT))
    print("\n".join(problems) or "no include points upwards")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
