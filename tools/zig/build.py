# SPDX-License-Identifier: BSD-3-Clause
"""Builds the runtime and its C++ tests for macOS or Windows, with zig.

Needs ``pip install ziglang cmake ninja`` and the sources of GoogleTest (Debian:
``apt install libgtest-dev``). The programs are in FOLDER/runtime, for Windows in its
folder bin.

    python tools/zig/build.py x86_64-windows-gnu build/windows
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("x86_64-windows-gnu", "aarch64-macos", "x86_64-macos")


def build(
    target: str, source: Path, folder: Path, options: list[str], goals: list[str]
) -> None:
    """Configures and builds a CMake project for a target."""
    toolchain = ROOT / "tools/zig/toolchain.cmake"
    configure = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja"]
    configure += ["--toolchain", str(toolchain), f"-DZIG_TARGET={target}", *options]
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(folder), *goals], check=True)


def main() -> int:
    """Builds GoogleTest, then the runtime with its tests."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("folder", type=Path, help="the new folder of the build")
    parser.add_argument(
        "--googletest",
        type=Path,
        default=Path("/usr/src/googletest"),
        help="its sources",
    )
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    installed = folder / "gtest"
    build(
        arguments.target,
        arguments.googletest,
        folder / "googletest",
        ["-DBUILD_GMOCK=OFF", f"-DCMAKE_INSTALL_PREFIX={installed}"],
        ["--target", "install"],
    )
    build(
        arguments.target,
        ROOT / "packages/openreg-runtime",
        folder / "runtime",
        [
            "-DOPENREG_BUILD_TESTS=ON",
            "-DOPENREG_UNITY=ON",
            f"-DCMAKE_PREFIX_PATH={installed}",
            f"-DCMAKE_FIND_ROOT_PATH={installed}",
        ],
        [],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
