# SPDX-License-Identifier: BSD-3-Clause
"""The contents of the installed package."""

from __future__ import annotations

import ctypes
import pickle
import sys
from importlib.metadata import entry_points, requires
from importlib.resources import files
from pathlib import Path

import pytest

import libopenreg
import openreg_runtime as runtime


def test_import_does_not_need_torch(run_script) -> None:
    done = run_script(
        """
        import sys
        sys.modules["torch"] = None  # makes its import fail
        import openreg_runtime as runtime
        runtime.Buffer(16).fill(1)
        assert "numpy" not in sys.modules
        """
    )
    assert done.returncode == 0, done.stderr


def test_package_requires_nothing() -> None:
    assert not requires("openreg-runtime")


def test_public_names_exist_and_are_documented() -> None:
    for name in runtime.__all__:
        assert getattr(runtime, name).__doc__, name


def test_cmake_finds_header_and_package() -> None:
    (entry,) = entry_points(group="cmake.root", name="openreg")
    root = files(entry.load())
    for path in (
        "include/openreg/activity.h",
        "include/openreg/openreg.h",
        "include/openreg/openreg.hpp",
        "lib/cmake/openreg/openregConfig.cmake",
    ):
        assert root.joinpath(path).is_file(), path


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("linux", "libopenreg.so.0.1"),
        ("darwin", "libopenreg.0.1.dylib"),
        ("win32", "openreg.dll"),
    ],
)
def test_library_of_each_platform_is_found(
    platform: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lib").mkdir()
    for other in ("libopenreg.so", "libopenreg.dll.a", "libopenreg.dylib", name):
        (tmp_path / "lib" / other).touch()
    monkeypatch.setattr(libopenreg, "__path__", [str(tmp_path)])
    monkeypatch.setattr(sys, "platform", platform)
    loaded: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", loaded.append)
    libopenreg.load()
    assert loaded == [str(tmp_path / "lib" / name)]


def test_missing_library_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libopenreg, "__path__", ["/nowhere"])
    with pytest.raises(ImportError, match=r"libopenreg\S+ is not in /nowhere; install"):
        libopenreg.load()


def test_error_survives_pickling() -> None:
    with pytest.raises(runtime.OpenRegError) as caught:
        runtime.Device(99)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.code, error.name) == (
        str(caught.value),
        4,
        "orErrorInvalidDevice",
    )
