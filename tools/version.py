# SPDX-License-Identifier: BSD-3-Clause
"""Checks and sets the version of all packages; the file ``VERSION`` is the source.

Each package has a copy of the version in its ``pyproject.toml``, so that its sdist
depends on no other file, and pins the other packages with ``==``. The conda recipe has
a copy, too. The range of torch in each package, and the torches of the recipe, are
compared with ``extension/torch_versions.txt``.

    python tools/version.py              prints the version, fails if a copy differs
    python tools/version.py --set 0.2.0  writes the version everywhere
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from workspace import PACKAGES, ROOT

_OWN = re.compile(r'(?m)^((?:version =|  version:) ")([^"]*)(")$')
_PIN = re.compile(rf'(?m)(?<!^name = )("(?:{"|".join(PACKAGES)}))([=<>!~][^"]*|)(")')
_TORCH = re.compile(r'(?m)"torch([=<>!~][^"]*|)"')
_VARIANTS = re.compile(r'(?m)^pytorch:\n((?:  - ".*"\n)+)')
_VERSION = re.compile(r"\d+\.\d+\.\d+")


def copies(root: Path) -> list[Path]:
    """Returns the files with a copy of the version.

    Args:
        root: The root of the workspace.
    """
    projects = [root / "packages" / name / "pyproject.toml" for name in PACKAGES]
    return [*projects, root / "recipe" / "recipe.yaml"]


def torch_minors(root: Path) -> list[str]:
    """Returns the supported minor versions of torch, such as ``2.13``.

    Args:
        root: The root of the workspace.
    """
    versions = (root / "extension" / "torch_versions.txt").read_text().split()
    return [version.rpartition(".")[0] for version in versions]


def torch_range(root: Path) -> str:
    """Returns the requirement that admits all minor versions of the supported torches.

    Args:
        root: The root of the workspace.
    """
    minors = torch_minors(root)
    major, _, last = minors[-1].partition(".")
    return f">={minors[0]},<{major}.{int(last) + 1}"


def check(root: Path) -> list[str]:
    """Compares every copy of the version, and every range of torch, with its source.

    Args:
        root: The root of the workspace.

    Returns:
        One sentence for each copy that differs; an empty list if all agree.
    """
    version = (root / "VERSION").read_text().strip()
    problems = []
    variants = root / "recipe" / "variants.yaml"
    (listed,) = _VARIANTS.findall(variants.read_text())
    if (found := re.findall(r'"(.*)"', listed)) != torch_minors(root):
        problems.append(
            f"{variants.relative_to(root)}: pytorch is {found}, expected "
            f"{torch_minors(root)}"
        )
    supported = (root / "extension" / "torch_versions.txt").read_text().split()
    problems += [
        f"{name}: torch {found} is not in extension/torch_versions.txt"
        for name in ("tox.ini", "pyproject.toml")
        for found in re.findall(r"(?<!\w)torch==(\d[\d.]*)", (root / name).read_text())
        if found not in supported
    ]
    for path in copies(root):
        where, text = path.relative_to(root), path.read_text()
        problems += [
            f"{where}: version is {found!r}, VERSION says {version!r}"
            for _, found, _ in _OWN.findall(text)
            if found != version
        ]
        problems += [
            f"{where}: {sibling[1:]} is pinned {pin!r}, expected '=={version}'"
            for sibling, pin, _ in _PIN.findall(text)
            if pin != f"=={version}"
        ]
        problems += [
            f"{where}: torch is pinned {pin!r}, expected {torch_range(root)!r}"
            for pin in _TORCH.findall(text)
            if pin != torch_range(root)
        ]
    return problems


def set_version(root: Path, version: str) -> None:
    """Writes a version to ``VERSION`` and to every copy.

    Args:
        root: The root of the workspace.
        version: Three numbers, such as ``0.2.0``.

    Raises:
        ValueError: If ``version`` is not three numbers with dots.
    """
    if not _VERSION.fullmatch(version):
        raise ValueError(f"version is {version!r}; accepted: three numbers as in 0.2.0")
    (root / "VERSION").write_text(version + "\n")
    for path in copies(root):
        text = _OWN.sub(rf"\g<1>{version}\g<3>", path.read_text())
        path.write_text(_PIN.sub(rf"\g<1>=={version}\g<3>", text))


def main(argv: list[str] | None = None, root: Path | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check or set the version.")
    parser.add_argument("--set", metavar="X.Y.Z", help="write this version everywhere")
    arguments = parser.parse_args(argv)
    root = root or ROOT
    if arguments.set:
        try:
            set_version(root, arguments.set)
        except ValueError as error:
            parser.error(str(error))
    problems = check(root)
    print("\n".join(problems) or (root / "VERSION").read_text().strip())
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
