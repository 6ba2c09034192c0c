# SPDX-License-Identifier: BSD-3-Clause
"""The shared library file: its name, its exports, and that it stays loaded."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import libopenreg
import openreg_runtime as runtime
from support.programs import LAUNCHER

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="these are rules of ELF"
)
ABI = ".".join(map(str, runtime.version()[:2]))
LIBRARY = libopenreg.find("lib") / f"libopenreg.so.{ABI}"
needs_binutils = pytest.mark.skipif(
    not shutil.which("readelf"), reason="there is no readelf"
)


def readelf(*options: str) -> str:
    command = ["readelf", "--wide", *options, str(LIBRARY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def exported() -> dict[str, str]:
    """Reads the exported symbols of the library: name and version."""
    symbols = {}
    for line in readelf("--dyn-syms").splitlines():
        columns = line.split()
        if len(columns) >= 8 and columns[0][:-1].isdigit() and columns[6] != "UND":
            name, _, version = columns[7].partition("@@")
            if columns[6] != "ABS":  # version names
                symbols[name] = version
    return symbols


def test_package_holds_one_library_and_a_text_for_the_linker() -> None:
    files = [path for path in LIBRARY.parent.glob("libopenreg*") if path.is_file()]
    assert {path.name for path in files} == {"libopenreg.so", LIBRARY.name}
    assert not any(path.is_symlink() for path in files)
    text = LIBRARY.with_name("libopenreg.so").read_text()
    assert f"INPUT({LIBRARY.name})" in text


@needs_binutils
def test_file_has_the_name_that_programs_ask_for() -> None:
    assert f"soname: [{LIBRARY.name}]" in readelf("--dynamic")


@needs_binutils
def test_every_function_of_the_headers_is_exported_and_nothing_else() -> None:
    header = "".join(
        libopenreg.find(f"include/openreg/{name}.h").read_text()
        for name in ("openreg", "activity")
    )
    declared = set(
        re.findall(r"OPENREG_(?:API|EXPORT)\s[\w\s*]*?\b(or[A-Z]\w*)\(", header)
    )
    assert len(declared) > 60
    assert set(exported()) == declared


@needs_binutils
def test_every_symbol_has_the_version_of_the_abi() -> None:
    assert set(exported().values()) == {f"OPENREG_{ABI}"}


def test_library_stays_loaded_after_dlclose(run_script) -> None:
    """Workers of streams and the fault handler run its code."""
    done = run_script(
        f"""
        import _ctypes
        import ctypes

        library = ctypes.CDLL({str(LIBRARY)!r})
        block = ctypes.c_void_p()
        assert library.orMalloc(ctypes.byref(block), ctypes.c_size_t(16)) == 0
        assert library.orMemsetAsync(block, 1, ctypes.c_size_t(16), None) == 0
        assert library.orDeviceSynchronize() == 0
        _ctypes.dlclose(library._handle)
        with open("/proc/self/maps") as maps:
            assert {LIBRARY.name!r} in maps.read()
        print("closed", flush=True)
        ctypes.memset(block, 0, 1)
        """,
        OPENREG_DEVICE_LAUNCHER=LAUNCHER,
    )
    assert done.stdout == "closed\n", done.stderr
    assert "a pointer to memory of device openreg:0" in done.stderr


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Copies the library."""
    path = tmp_path / "other" / LIBRARY.name
    path.parent.mkdir()
    shutil.copy(LIBRARY, path)
    return path


def test_second_copy_in_a_process_is_refused(run_script, other: Path) -> None:
    done = run_script(
        f"""
        import ctypes
        import openreg_runtime as runtime

        buffer = runtime.Buffer(16)
        other = ctypes.CDLL({str(other)!r})
        other.orGetErrorMessage.restype = ctypes.c_char_p
        for _ in range(2):
            print(other.orInit(), other.orGetErrorMessage().decode())
        buffer.fill(1)
        """
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("9 orInit: another copy of libopenreg")  # NotSupported
        assert str(LIBRARY) in line
        assert str(other) in line
        assert "load the same file" in line


def test_allowed_second_copy_has_separate_devices(run_script, other: Path) -> None:
    done = run_script(
        f"""
        import ctypes
        import openreg_runtime as runtime

        buffer = runtime.Buffer(16)
        other = ctypes.CDLL({str(other)!r})
        pointer = ctypes.c_void_p()
        assert other.orMalloc(ctypes.byref(pointer), 16) == 0
        assert other.orMemset(pointer, 7, 16) == 0
        buffer.fill(1)
        host = (ctypes.c_char * 16)()
        assert other.orMemcpy(host, pointer, 16, 2) == 0
        print(host.raw == bytes([7]) * 16)
        """,
        OPENREG_ALLOW_COPIES="1",
        OPENREG_DEVICE_LAUNCHER=LAUNCHER,
    )
    assert done.stdout == "True\n", done.stderr
