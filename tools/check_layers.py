# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the folders of C++ code depend on each other in one direction only.

    python tools/check_layers.py    prints includes of higher layers, and loops

A layer is a folder in ``csrc``; a ``csrc`` without folders is one layer. A pair is a
source file with its header. Pairs must not include each other in a loop, and a folder
may have at most ``MOST_PAIRS`` pairs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

# Lowest layer first. A file may include files of the same layer and of lower layers.
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
        "base/",
        "facts/",
        "device/",
        "stream/",
        "memory/",
        "random/",
        "extension/",
        "codec/",
        "alias/",
        "results/",
        "message/",
        "call/",
        "kernel/",
        "ops/",
        "bindings/",
    ],
    "packages/openreg-distributed/csrc": [
        "base/",
        "transport/",
        "record/",
        "occl/",
        "symmetric/",
        "bindings/",
    ],
    "packages/openreg-inductor/csrc": ["launch/", "bindings/"],
    "packages/openreg-amp/csrc": [],
    "packages/openreg-profiler/csrc": [],
}
# These layers use the library through its public header and include only these layers.
ONLY = {"packages/openreg-runtime/csrc/bindings/": ["base/", "bindings/"]}

MOST_PAIRS = 12
# Each file in these folders has the name of a C API object or of a mechanism.
WITHOUT_LIMIT = {"api", "bindings", "ops"}
# Streams, events and captures wait for each other, so their files may form loops.
LOOPS_ALLOWED = {"packages/openreg-runtime/csrc": "stream/"}

_INCLUDE = re.compile(r"""\s*#\s*include\s*(["<])([^">]+)[">]""")


def layer_of(csrc: Path, file: Path) -> str:
    """Returns the layer of a file: its folder, or "" for a file outside of folders."""
    folder, *rest = file.resolve().relative_to(csrc).parts
    return f"{folder}/" if rest else ""


def pair_of(csrc: Path, file: Path) -> str:
    """Returns the pair of a file: its path without the suffix."""
    return str(file.resolve().relative_to(csrc).with_suffix(""))


def includes(csrc: Path, file: Path) -> Iterator[tuple[int, Path]]:
    """Yields the line number and the file of each include from the same ``csrc``."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        found = _INCLUDE.match(line)
        if not found:
            continue
        beside, ours = file.parent / found[2], csrc / found[2]
        if found[1] == '"' and beside.is_file():
            yield number, beside
        elif found[1] == '"' or ours.is_file():
            yield number, ours


def loop_in(arrows: dict[str, set[str]]) -> list[str]:
    """Returns pairs that include each other in a loop; the first is also the last."""
    done: set[str] = set()

    def visit(pair: str, path: list[str]) -> list[str]:
        if pair in path:
            return [*path[path.index(pair) :], pair]
        if pair in done:
            return []
        for other in sorted(arrows.get(pair, set())):
            if loop := visit(other, [*path, pair]):
                return loop
        done.add(pair)
        return []

    return next((loop for pair in sorted(arrows) if (loop := visit(pair, []))), [])


def check(root: Path) -> Iterator[str]:
    """Yields a sentence for each wrong include, each loop and each full folder."""
    for name, order in LAYERS.items():
        csrc = (root / name).resolve()
        arrows: dict[str, set[str]] = {}
        pairs: dict[str, set[str]] = {}
        for file in sorted([*csrc.rglob("*.h"), *csrc.rglob("*.cpp")]):
            where, layer = f"{name}/{file.relative_to(csrc)}", layer_of(csrc, file)
            pair = pair_of(csrc, file)
            folder = str(file.parent.relative_to(csrc))
            pairs.setdefault(folder, set()).add(file.stem)
            if layer not in (order or [""]):
                what = layer or "a file outside of folders"
                yield f"{where}:1: {what} is not a layer"
                continue
            below = ONLY.get(
                f"{name}/{layer}", order[: order.index(layer) + 1] if order else [""]
            )
            for number, included in includes(csrc, file):
                other = layer_of(csrc, included)
                if other not in below:
                    yield f"{where}:{number}: {layer} must not include {other}"
                    continue
                target = pair_of(csrc, included)
                if target != pair and not layer == other == LOOPS_ALLOWED.get(name):
                    arrows.setdefault(pair, set()).add(target)
        if loop := loop_in(arrows):
            yield f"{name}: a loop of includes: {' -> '.join(loop)}"
        for folder, stems in pairs.items():
            if len(stems) > MOST_PAIRS and folder not in WITHOUT_LIMIT:
                yield (
                    f"{name}/{folder}: {len(stems)} pairs; at most {MOST_PAIRS} are "
                    "allowed"
                )


def main(root: Path | None = None) -> int:
    """Prints the problems; returns the exit status."""
    problems = list(check(root or ROOT))
    print("\n".join(problems) or "all includes are of lower layers, without loops")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
