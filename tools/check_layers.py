# SPDX-License-Identifier: BSD-3-Clause
"""Checks that folders of code depend on each other in one direction only.

    python tools/check_layers.py    prints includes of higher layers, and loops

A layer is a folder in ``csrc``; a ``csrc`` without folders is one layer. A pair is a
source file with its header. Pairs must not include each other in a loop, and a folder
may have at most ``MOST_PAIRS`` pairs. Headers of an operating system are included only
in the folders of systems in ``platform/``, and not in the headers of ``SHARED``.

Python packages in ``ROOMS`` have the same rules: a room is a folder of the package, and
the files outside of folders are above all rooms. Imports within functions and for type
checking count too; only in loops of modules, imports for type checking do not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

# Lowest layer first. A file may include files of the same layer and of lower layers.
LAYERS = {
    "packages/openreg-runtime/csrc": [
        "platform/",
        "base/",
        "activity/",
        "failures/",
        "settings/",
        "memory/",
        "ipc/",
        "backend/",
        "schedule/",
        "stream/",
        "device/",
        "api/",
        "bindings/",
    ],
    "packages/openreg-aten/csrc": [
        "platform/",
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
        "platform/",
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
# Folders with headers for several packages, which have no folder for a system.
SHARED = ["extension"]
# Lowest room first. A module may import modules of the same room and of lower rooms.
ROOMS = {
    "packages/openreg-predict/src/openreg_predict": [
        "_devices/",
        "_works/",
        "_formulas/",
        "_costs/",
        "_records/",
        "_memory/",
        "_analysis/",
        "_clock/",
        "_reports/",
        "_predictions/",
        "_commands/",
    ],
}
# These layers use the library through its public header and include only these layers.
ONLY = {"packages/openreg-runtime/csrc/bindings/": ["platform/", "base/", "bindings/"]}

MOST_PAIRS = 12
# Each file in these folders has the name of a C API object, of a mechanism or of a
# concern of the operating system.
WITHOUT_LIMIT = {
    "api",
    "bindings",
    "ops",
    "platform",
    "platform/linux",
    "platform/posix",
    "platform/windows",
}
# Streams, events and captures wait for each other, so their files may form loops.
LOOPS_ALLOWED = {"packages/openreg-runtime/csrc": "stream/"}

# Headers of POSIX, Linux, macOS, Windows and the C++ ABI. Headers of the C++ standard
# library, such as <cerrno>, are allowed everywhere.
_SYSTEM = re.compile(
    r"""
    (arpa | asm | linux | mach | mach-o | net | netinet | sys) / .*
    | (aio | alloca | byteswap | cxxabi | direct | dirent | dlfcn | elf | endian
    | execinfo | fcntl | ftw | glob | grp | io | libgen | link | malloc | memoryapi
    | netdb | poll | process | psapi | pthread | pwd | sched | semaphore | signal
    | spawn | strings | synchapi | syscall | syslog | termios | time | ucontext
    | unistd | utime | wait | windows | winsock2 | ws2tcpip) \.h
    """,
    re.VERBOSE | re.IGNORECASE,
)

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


def system_headers(csrc: Path, file: Path) -> Iterator[tuple[int, str]]:
    """Yields the line number and the name of each header of an operating system."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        found = _INCLUDE.match(line)
        if not found or (csrc / found[2]).is_file():
            continue
        ours = found[1] == '"' and (file.parent / found[2]).is_file()
        if _SYSTEM.fullmatch(found[2]) and not ours:
            yield number, found[2]


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
            if layer != "platform/" or folder == "platform":
                for number, header in system_headers(csrc, file):
                    yield _misplaced(where, number, header)
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
    for name in SHARED:
        for file in sorted((root / name).glob("*.h")):
            for number, header in system_headers(root / name, file):
                yield _misplaced(f"{name}/{file.name}", number, header)


def _misplaced(where: str, number: int, header: str) -> str:
    return f"{where}:{number}: <{header}> belongs into a file of a system in platform/"


def imports(package: Path, file: Path) -> Iterator[tuple[int, Path, bool]]:
    """Yields each import of a module of the same package.

    Yields:
        The line number, the file of the module, and whether the import is only for type
        checking.
    """
    tree = ast.parse(file.read_text(), str(file))
    typing = {
        id(each)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for each in ast.walk(statement)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            names = [alias.name for alias in each.names]
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            names = [f"{each.module}.{alias.name}" for alias in each.names]
        else:
            continue
        for name in names:
            head, *parts = name.split(".")
            if head == package.name and (found := _module(package, parts)):
                yield each.lineno, found, id(each) in typing


def _module(package: Path, parts: list[str]) -> Path | None:
    """Returns the file of a module, or of the module that has a name."""
    for count in (len(parts), len(parts) - 1):
        path = package.joinpath(*parts[:count])
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if count > 0 and found.is_file():
                return found
    return None


def check_rooms(root: Path) -> Iterator[str]:
    """Yields a sentence for each wrong import, each loop and each full room."""
    for name, order in ROOMS.items():
        package = (root / name).resolve()
        arrows: dict[str, set[str]] = {}
        modules: dict[str, int] = {}
        for file in sorted(package.rglob("*.py")):
            where, room = f"{name}/{file.relative_to(package)}", layer_of(package, file)
            if room and file.name != "__init__.py":
                modules[room] = modules.get(room, 0) + 1
            if room and room not in order:
                yield f"{where}:1: {room} is not a room"
                continue
            below = order[: order.index(room) + 1] if room else [*order, ""]
            for number, imported, is_typing in imports(package, file):
                other = layer_of(package, imported)
                if other not in below:
                    what = other or "a file outside of rooms"
                    yield f"{where}:{number}: {room} must not import {what}"
                elif not is_typing and imported != file:
                    target = pair_of(package, imported)
                    arrows.setdefault(pair_of(package, file), set()).add(target)
        if loop := loop_in(arrows):
            yield f"{name}: a loop of imports: {' -> '.join(loop)}"
        for room, count in modules.items():
            if count > MOST_PAIRS:
                yield f"{name}/{room}: {count} modules, more than {MOST_PAIRS}"


def main(root: Path | None = None) -> int:
    """Prints the problems; returns the exit status."""
    problems = [*check(root or ROOT), *check_rooms(root or ROOT)]
    good = "all includes and imports are of lower layers, without loops"
    print("\n".join(problems) or good)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
