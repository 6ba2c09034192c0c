# SPDX-License-Identifier: BSD-3-Clause
"""Builds the sdist and the wheel of every package, in dependency order.

Each wheel is built from its sdist, which proves that the sdist is complete. There is no
build isolation: this interpreter's environment needs torch and the build tools, and the
tool installs the packages that later packages compile against. Build trees are kept in
build/, so a second run compiles only changed files.

    python tools/build_wheels.py             builds wheels and sdists into dist
    python tools/build_wheels.py --output F  builds them into the folder F
    python tools/build_wheels.py --install   also installs all of them here
    python tools/build_wheels.py --sanitize  openreg-aten for tools/fuzz_messages.py
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from workspace import DIST, PACKAGES, ROOT

COMPILED_AGAINST = ("openreg-runtime",)
SANITIZED = "openreg-aten"

_HOOK = """
import importlib, sys
backend, hook, target, *arguments = sys.argv[1:]
options = dict(a.split("=", 1) for a in arguments)
getattr(importlib.import_module(backend), hook)(target, options)
"""


def call_backend(source: Path, hook: str, target: Path, *options: str) -> None:
    """Calls the build backend of a package, as pip does.

    Args:
        source: The folder with ``pyproject.toml``.
        hook: ``build_sdist`` or ``build_wheel``.
        target: The output folder.
        options: Settings for the backend, such as ``build-dir=build``.
    """
    with (source / "pyproject.toml").open("rb") as file:
        backend = tomllib.load(file)["build-system"]["build-backend"]
    subprocess.run(
        [sys.executable, "-c", _HOOK, backend, hook, str(target), *options],
        cwd=source,
        env=build_environment(),
        check=True,
    )


def build_environment() -> dict[str, str]:
    """Returns the environment variables of a build, with all cores and any ccache."""
    environment = dict(os.environ, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    # Finds the cmake and ninja of this interpreter even if it is not activated.
    programs = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([programs, environment.get("PATH", "")])
    cores = len(os.sched_getaffinity(0))
    environment.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(cores))
    if shutil.which("ccache"):
        environment.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    return environment


def unpack(sdist: Path, target: Path) -> None:
    """Updates a folder to the contents of an sdist, without touching unchanged files.

    Args:
        sdist: The ``.tar.gz``, with one top-level folder.
        target: The folder to write; it is created if it does not exist.
    """
    wanted: dict[Path, bytes] = {}
    with tarfile.open(sdist) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                inner = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                wanted[target / inner] = content.read()
    for path in [p for p in target.rglob("*") if p.is_file() and p not in wanted]:
        path.unlink()
    for path, data in wanted.items():
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def record(wheel: Path) -> set[str]:
    """Returns the lines of a wheel's RECORD: each file with its hash."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/RECORD"))
        return set(archive.read(name).decode().splitlines())


def is_installed(package: str, wheel: Path) -> bool:
    """Returns whether this environment contains the exact files of a wheel."""
    try:
        installed = metadata.distribution(package).read_text("RECORD") or ""
    except metadata.PackageNotFoundError:
        return False
    return record(wheel) <= set(installed.splitlines())


def install(package: str, wheel: Path) -> None:
    """Installs a wheel if it changed, because new header dates cause a rebuild."""
    if is_installed(package, wheel):
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--no-index", "--force-reinstall", str(wheel)], check=True
    )


def leaks(wheel: Path) -> list[str]:
    """Lists the libraries of a wheel that contain the path of a local folder."""
    folders = [os.fsencode(folder) for folder in (ROOT, Path(sys.prefix))]
    with zipfile.ZipFile(wheel) as archive:
        return [
            name
            for name in archive.namelist()
            if ".so" in PurePosixPath(name).suffixes  # also lib.so.0.1
            and any(folder in archive.read(name) for folder in folders)
        ]


def build_tree(package: str) -> Path:
    """Returns the build folder of a package, which belongs to one environment.

    It refers to the compilers and the torch of this interpreter.
    """
    number = hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]
    return ROOT / "build" / number / package


def build(package: str, output: Path) -> Path:
    """Builds the sdist and the wheel of one package.

    Args:
        package: The name of the package.
        output: The folder for both, where they replace earlier ones.

    Returns:
        The wheel.

    Raises:
        RuntimeError: If a library in the wheel contains the path of a local folder.
    """
    prefix = package.replace("-", "_") + "-"
    for old in output.glob(prefix + "*"):
        old.unlink()
    call_backend(ROOT / "packages" / package, "build_sdist", output)
    (sdist,) = output.glob(prefix + "*.tar.gz")
    tree = build_tree(package)
    unpack(sdist, tree / "source")
    call_backend(tree / "source", "build_wheel", output, f"build-dir={tree / 'cmake'}")
    (wheel,) = output.glob(prefix + "*.whl")
    if found := leaks(wheel):
        raise RuntimeError(f"{wheel.name}: local paths in {', '.join(found)}")
    return wheel


def build_sanitized() -> None:
    """Builds a wheel of ``SANITIZED`` with sanitizers, from the last build's source.

    The wheel is written to ``build/sanitized``. With ccache, only files that depend on
    the sanitizers are compiled.
    """
    tree = build_tree(SANITIZED)
    target = ROOT / "build" / "sanitized"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    options = f"build-dir={tree / 'sanitized'}", "cmake.define.OPENREG_SANITIZE=address"
    call_backend(tree / "source", "build_wheel", target, *options)


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build all sdists and wheels.")
    parser.add_argument("--install", action="store_true", help="install all of them")
    parser.add_argument("--sanitize", action="store_true", help="only openreg-aten")
    parser.add_argument("--output", type=Path, default=DIST, help="default: dist")
    arguments = parser.parse_args()
    install_all = arguments.install
    output = arguments.output.resolve()
    if arguments.sanitize:
        build_sanitized()
        return 0
    output.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for number, package in enumerate(PACKAGES, 1):
        print(f"[{number}/{len(PACKAGES)}] {package}", flush=True)
        try:
            wheel = build(package, output)
        except subprocess.CalledProcessError as error:
            print(f"{package}: the build failed, see above", file=sys.stderr)
            return error.returncode
        if install_all or package in COMPILED_AGAINST:
            install(package, wheel)
    seconds = time.monotonic() - start
    print(f"wheels and sdists are in {output.name} ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
