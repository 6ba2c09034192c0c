# SPDX-License-Identifier: BSD-3-Clause
"""Writes libraries to link against, with only the symbols of old system libraries.

A link against the compiler's own libc and libstdc++ binds each symbol in the newest
version there is, which an older system lacks. The written libraries have the same
names, but no code, and no version newer than ``NEWEST``. The linker therefore binds an
older version of the symbol, or reports that there is none.

    python tools/manylinux/link_libraries.py g++ FOLDER           writes the libraries
    python tools/manylinux/link_libraries.py g++ --check LIBRARY  lists what they lack
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# The newest versions that auditwheel accepts in manylinux_2_28.
NEWEST = {
    "GLIBC": (2, 28),
    "GLIBCXX": (3, 4, 24),
    "CXXABI": (1, 3, 11),
}
LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6")
# The linker finds these under other names than the loader.
SCRIPTS = {
    "libc.so": "GROUP(libc.so.6 {libc_nonshared.a} AS_NEEDED({loader}))",
    "libm.so": "INPUT(libm.so.6)",
    "libstdc++.so": "INPUT(libstdc++.so.6)",
}


class Symbol(NamedTuple):
    """A dynamic symbol of a library."""

    name: str
    version: str
    kind: str
    size: int
    weak: bool
    defined: bool


def symbols(library: Path) -> Iterator[Symbol]:
    """Yields the dynamic symbols of a library."""
    command = ["readelf", "--wide", "--dyn-syms", str(library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        # "number: value size type binding visibility section name@@version"
        fields = line.split()
        if len(fields) >= 8 and re.fullmatch(r"\d+:", fields[0]):
            name, _, version = fields[7].partition("@")
            size = int(fields[2], 0)
            weak, defined = fields[4] == "WEAK", fields[6] != "UND"
            version = version.lstrip("@")
            yield Symbol(name, version, fields[3], size, weak, defined)


def number_of(version: str) -> tuple[int, ...] | None:
    """Returns the number in a version if an old library has it, else None."""
    prefix, _, digits = version.partition("_")
    if prefix not in NEWEST or not re.fullmatch(r"[\d.]+", digits):
        return None
    number = tuple(int(part) for part in digits.split("."))
    return number if number <= NEWEST[prefix] else None


def path_of(compiler: str, name: str) -> Path:
    """Returns the path of a library of the compiler."""
    command = [compiler, f"-print-file-name={name}"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return Path(found.stdout.strip())


def old_symbols(library: Path) -> dict[str, Symbol]:
    """Returns each symbol of an old library, in the newest version that it has."""
    found: dict[str, Symbol] = {}
    newest: dict[str, tuple[int, ...]] = {}
    for symbol in symbols(library):
        number = number_of(symbol.version)
        if symbol.defined and number and number > newest.get(symbol.name, ()):
            found[symbol.name] = symbol
            newest[symbol.name] = number
    return found


def definition(symbol: Symbol) -> str:
    """Returns assembly that defines a symbol without its content."""
    name = f'"{symbol.name}"'
    sections = {"OBJECT": ".bss", "TLS": '.section .tbss,"awT",%nobits'}
    kinds = {"OBJECT": "%object", "TLS": "%tls_object"}
    size = max(symbol.size, 1) if symbol.kind in kinds else 1
    return (
        f"{sections.get(symbol.kind, '.text')}\n.globl {name}\n"
        f".type {name}, {kinds.get(symbol.kind, '%function')}\n"
        f".size {name}, {size}\n{name}: .zero {size}\n"
    )


def write_library(compiler: str, name: str, folder: Path) -> None:
    """Writes the library with the old symbols of one library of the compiler."""
    versions: dict[str, list[str]] = {}
    assembly = folder / f"{name}.s"
    with assembly.open("w") as file:
        for symbol in old_symbols(path_of(compiler, name)).values():
            versions.setdefault(symbol.version, []).append(f'"{symbol.name}";')
            file.write(definition(symbol))
    script = folder / f"{name}.map"
    script.write_text(
        "".join(
            f"{version} {{ {' '.join(names)} }};\n"
            for version, names in versions.items()
        )
    )
    link = [f"-Wl,-soname,{name}", f"-Wl,--version-script={script}"]
    output = ["-o", str(folder / name), str(assembly)]
    command = [compiler, "-shared", "-nostdlib", *link, *output]
    subprocess.run(command, check=True)


def write_libraries(compiler: str, folder: Path) -> None:
    """Writes all libraries, and the names under which the linker finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in LIBRARIES:
        write_library(compiler, name, folder)
    described = path_of(compiler, "libc.so").read_text()
    parts = {
        "libc_nonshared.a": path_of(compiler, "libc_nonshared.a"),
        "loader": re.findall(r"\S+/ld-linux\S+", described)[0],
    }
    for name, script in SCRIPTS.items():
        content = re.sub(r"\{(.+?)\}", lambda found: str(parts[found[1]]), script)
        (folder / name).write_text(f"/* GNU ld script */\n{content}\n")


def lacking(compiler: str, library: Path) -> list[str]:
    """Lists the symbols without a version that only newer system libraries have.

    A linker reports them itself, but not in a module of Python, which leaves Python's
    own symbols undefined.
    """
    undefined = {
        s.name for s in symbols(library) if not (s.defined or s.weak or s.version)
    }
    paths = [path_of(compiler, name) for name in LIBRARIES]
    known = {s.name for p in paths for s in symbols(p) if s.defined}
    old = {name for path in paths for name in old_symbols(path)}
    return sorted(undefined & known - old)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("compiler")
    parser.add_argument("path", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not arguments.check:
        write_libraries(arguments.compiler, arguments.path)
        return 0
    found = lacking(arguments.compiler, arguments.path)
    for name in found:
        print(f"{arguments.path}: manylinux_2_28 has no {name}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
