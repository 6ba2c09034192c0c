# SPDX-License-Identifier: BSD-3-Clause
"""Builds the sdists and the wheels of a release, checks them, and tags the commit.

    python tools/release.py --dry-run PYTHON...   builds and checks
    python tools/release.py PYTHON...             then also creates the tag

Each PYTHON is the interpreter of an environment with a supported torch and the build
tools of ``[tool.hatch.envs.default]``. Environments of one Python version share a
wheel, which holds the libraries for each torch. This interpreter needs the packages of
``tox -e release``: auditwheel, check-wheel-contents, twine and wheel.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import merge_wheels
import wheels_matrix
from version import torch_minors
from workspace import DIST, ROOT

BUILD = ROOT / "build" / "release"
PLATFORM = "manylinux_2_28"
# The libraries of torch and of openreg-runtime, which other wheels bring.
EXCLUDED = ("libtorch*.so", "libc10*.so", "libopenreg.so.*")
# Checks that do not apply: W002 finds files that are equal for several torches, W004
# takes C++ headers for modules, and W009 counts libopenreg as a second top-level
# package.
IGNORED_CHECKS = "W002,W004,W009"


def problems(version: str) -> list[str]:
    """Lists the reasons why this commit cannot be tagged; empty if there are none.

    Args:
        version: The version to release.
    """
    found = []
    heading = re.compile(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", re.M)
    if not heading.search((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        found.append(f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'")
    if _output("git", "status", "--porcelain"):
        found.append("the working tree has changes")
    if _output("git", "tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} exists")
    return found


def _output(*command: str) -> str:
    """Returns the output of a program in the root of the workspace."""
    done = subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def _names(wheel: Path) -> list[str]:
    """Lists the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _run(*command: str | Path) -> None:
    """Prints and runs a program in the root of the workspace."""
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def build(pythons: Sequence[str]) -> None:
    """Builds the sdists and wheels into dist, with the tag of the platform.

    Args:
        pythons: The interpreters, one per pair of Python and torch.
    """
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.rmtree(DIST, ignore_errors=True)
    folders = []
    for number, python in enumerate(pythons):
        folders.append(BUILD / str(number))
        _run(python, "tools/build_wheels.py", "--output", folders[-1])
    merged = BUILD / "merged"
    if merge_wheels.main([*map(str, folders), "--output", str(merged)]):
        raise RuntimeError("the wheels of different torches cannot be merged")
    expected = {f"torch_{minor.replace('.', '_')}" for minor in torch_minors(ROOT)}
    for wheel in merged.iterdir():
        found = set(re.findall(r"/(torch_\d+_\d+)/", "\n".join(_names(wheel))))
        if found not in (set(), expected):
            raise RuntimeError(f"{wheel.name} has libraries for {sorted(found)} only")
    DIST.mkdir()
    options = ["--plat", f"{PLATFORM}_{platform.machine()}", "--wheel-dir", str(DIST)]
    options += [part for name in EXCLUDED for part in ("--exclude", name)]
    for wheel in sorted(merged.iterdir()):
        if wheel.stem.endswith("-any"):
            shutil.copy(wheel, DIST)
            continue
        _run(sys.executable, "-m", "auditwheel", "repair", *options, wheel)
    for sdist in folders[0].glob("*.tar.gz"):
        shutil.copy(sdist, DIST)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build, check and tag a release.")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--dry-run", action="store_true", help="create no tag")
    arguments = parser.parse_args(argv)
    version = (ROOT / "VERSION").read_text().strip()
    if not arguments.dry_run and (found := problems(version)):
        print(f"cannot tag {version}: {'; '.join(found)}", file=sys.stderr)
        return 1
    try:
        build(arguments.pythons)
        files = sorted(DIST.iterdir())
        _run(sys.executable, "-m", "twine", "check", "--strict", *files)
        wheels = [file for file in files if file.suffix == ".whl"]
        checker = Path(sys.executable).with_name("check-wheel-contents")
        _run(checker, "--ignore", IGNORED_CHECKS, *wheels)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    if status := wheels_matrix.main(arguments.pythons):
        return status
    if arguments.dry_run:
        found = problems(version)
        print(f"{version}: {'; '.join(found) or 'ready to be tagged'}")
        return 0
    _run("git", "tag", "--annotate", f"v{version}", "--message", f"Release {version}")
    print(f"push the tag to publish: git push origin v{version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
