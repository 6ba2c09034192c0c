# SPDX-License-Identifier: BSD-3-Clause
"""Proves that the folders of C++ code depend on each other in one direction only.

    python tools/check_layers.py    prints includes that point upwards, and loops

A layer is a folder of a ``csrc``; a ``csrc`` without folders is one layer. A pair is a
source with its header. No pair includes itself through others, and no folder has more
pairs than a reader can keep in mind.
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
# This one uses the library through its public header, and no layers but these.
ONLY = {"packages/openreg-runtime/csrc/bindings/": ["base/", "bindings/"]}

MOST_PAIRS = 12
# Each file of these has the name of an object of the C API, or of a mechanism.
WITHOUT_LIMIT = {"api", "bindings", "ops"}
# Streams, events and captures wait for each other, and their files know each other.
KNOW_EACH_OTHER = {"packages/openreg-runtime/csrc": "stream/"}

_INCLUDE = re.compile(r"""\s*#\s*include\s*(["<])([^">]+)[">]""")


def layer_of(csrc: Path, file: Path) -> str:
    """Names the layer of a file: its folder, or nothing beside the folders."""
    folder, *rest = file.resolve().relative_to(csrc).parts
    return f"{folder}/" if rest else ""


def pair_of(csrc: Path, file: Path) -> str:
    """Names the pair of a file: its path without the suffix."""
    return str(file.resolve().relative_to(csrc).with_suffix(""))


def includes(csrc: Path, file: Path) -> Iterator[tuple[int, Path]]:
    """Yields the line and the file of each include of the same ``csrc``."""
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
    """Finds pairs that include each other in a loop; the first one ends the list."""
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
    """Yields a sentence for each include upwards, each loop and each full folder."""
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
                yield f"{where}:1: {layer or 'a file beside the folders'} is no layer"
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
                if target != pair and not layer == other == KNOW_EACH_OTHER.get(name):
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
    """Prints what is wrong; returns the exit status."""
    problems = list(check(root or ROOT))
    print("\n".join(problems) or "no include points upwards, and none leads in a loop")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
