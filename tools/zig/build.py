# SPDX-License-Identifier: BSD-3-Clause
"""Builds the runtime and its C++ tests for macOS or Windows, with zig.

Needs ``pip install ziglang==0.16.0 cmake ninja`` and the sources of GoogleTest (Debian:
``apt install libgtest-dev``). The programs are in FOLDER/runtime, for Windows in its
folder bin.

    python tools/zig/build.py x86_64-windows-gnu build/windows

With ``--torch``, also builds the packages that extend PyTorch, for macOS. The option
names a folder with the unpacked wheel of torch for macOS, and this Python needs
``pip install nanobind pyyaml typing_extensions``. The libraries are in FOLDER/PACKAGE.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("x86_64-windows-gnu", "aarch64-macos", "x86_64-macos")
# The packages that extend torch.
PACKAGES = (
    "openreg-aten",
    "openreg-amp",
    "openreg-distributed",
    "openreg-inductor",
    "openreg-profiler",
)


def build(
    target: str, source: Path, folder: Path, options: list[str], goals: list[str]
) -> None:
    """Configures and builds a CMake project for a target."""
    toolchain = ROOT / "tools/zig/toolchain.cmake"
    configure = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja"]
    configure += ["--toolchain", str(toolchain), f"-DZIG_TARGET={target}"]
    # Without optimization, zig adds checks whose library it does not link.
    configure += ["-DCMAKE_BUILD_TYPE=Release", *options]
    subprocess.run(configure, check=True)
    subprocess.run(["cmake", "--build", str(folder), *goals], check=True)


def copy_nanobind(folder: Path) -> Path:
    """Copies nanobind without an option that zig lacks; returns its CMake folder."""
    command = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    source = Path(subprocess.check_output(command, text=True).strip()).parent
    shutil.copytree(source, folder, dirs_exist_ok=True)
    config = folder / "cmake/nanobind-config.cmake"
    # A list of Python's functions, which the module finds in the process.
    listed = '"-Wl,@${NB_DIR}/cmake/${NB_LINKER_RESPONSE_FILE}"'
    text = config.read_text()
    assert listed in text
    config.write_text(text.replace(listed, '"-Wl,-undefined,dynamic_lookup"'))
    return config.parent


def build_packages(target: str, torch: Path, folder: Path) -> None:
    """Builds the packages that extend torch, after the runtime in the same folder.

    The build reads the Python headers of this machine.
    """
    installed = folder / "installed"
    install = ["cmake", "--install", str(folder / "runtime"), "--prefix"]
    subprocess.run([*install, str(installed)], check=True)
    nanobind = copy_nanobind(folder / "nanobind")
    # CMake and the programs of the build find this torch.
    os.environ["PYTHONPATH"] = str(torch)
    for package in PACKAGES:
        build(
            target,
            ROOT / "packages" / package,
            folder / package,
            [
                f"-DSKBUILD_PROJECT_NAME={package}",
                f"-DSKBUILD_PROJECT_VERSION={(ROOT / 'VERSION').read_text().strip()}",
                "-DCMAKE_CROSSCOMPILING_EMULATOR=env",  # Python runs without one
                f"-DPython_EXECUTABLE={sys.executable}",
                f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
                f"-Dnanobind_DIR={nanobind}",
                f"-Dopenreg_DIR={installed / 'lib/cmake/openreg'}",
            ],
            [],
        )


def main() -> int:
    """Builds GoogleTest, then the runtime with its tests, then the other packages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("folder", type=Path, help="the new folder of the build")
    parser.add_argument(
        "--googletest",
        type=Path,
        default=Path("/usr/src/googletest"),
        help="its sources",
    )
    parser.add_argument(
        "--torch", type=Path, help="the folder of an unpacked wheel of torch for macOS"
    )
    arguments = parser.parse_args()
    if arguments.torch and arguments.target != "aarch64-macos":
        parser.error(f"--torch needs the target aarch64-macos, not {arguments.target}")
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
    if arguments.torch:
        build_packages(arguments.target, arguments.torch.resolve(), folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
