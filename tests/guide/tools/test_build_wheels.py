# SPDX-License-Identifier: BSD-3-Clause
"""tools/build_wheels.py: incremental builds and clean wheels."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

from support.programs import ROOT


@pytest.fixture
def build_wheels(load_tool):
    return load_tool("build_wheels")


def write_sdist(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"package-1.0/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def write_wheel(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_unpack_leaves_unchanged_files_untouched(build_wheels, tmp_path):
    sdist, target = tmp_path / "s.tar.gz", tmp_path / "source"
    write_sdist(sdist, {"same.cpp": b"1", "a/changed.cpp": b"1", "gone.cpp": b"1"})
    build_wheels.unpack(sdist, target)
    for path in ("same.cpp", "a/changed.cpp"):
        os.utime(target / path, (1000, 1000))

    write_sdist(sdist, {"same.cpp": b"1", "a/changed.cpp": b"2", "new.cpp": b"1"})
    build_wheels.unpack(sdist, target)

    assert (target / "same.cpp").stat().st_mtime == 1000
    assert (target / "a/changed.cpp").read_bytes() == b"2"
    assert (target / "a/changed.cpp").stat().st_mtime > 1000
    assert (target / "new.cpp").exists()
    assert not (target / "gone.cpp").exists()


def test_is_installed_compares_the_files_not_the_version(build_wheels, tmp_path):
    own = metadata.distribution("pytest")
    name = f"pytest-{own.version}.dist-info/RECORD"
    files = own.read_text("RECORD").splitlines()
    same = write_wheel(tmp_path / "same.whl", {name: "\n".join(files[:5])})
    other = write_wheel(tmp_path / "other.whl", {name: "_pytest/x.py,sha256=0,1"})

    assert build_wheels.is_installed("pytest", same)
    assert not build_wheels.is_installed("pytest", other)
    assert not build_wheels.is_installed("no-such-package", same)


def test_leaks_finds_a_folder_of_this_machine(build_wheels, tmp_path):
    files = {
        "clean.so": b"\x7fELF $ORIGIN/../torch/lib",
        "root.so": b"\x7fELF\0" + os.fsencode(ROOT) + b"/csrc/a.cpp",
        "prefix.so": b"\x7fELF\0" + os.fsencode(sys.prefix) + b"/lib",
        "versioned.so.0.1": b"\x7fELF\0" + os.fsencode(ROOT) + b"/csrc/a.cpp",
        "text.py": os.fsencode(ROOT),
    }
    wheel = write_wheel(tmp_path / "w.whl", files)
    assert build_wheels.leaks(wheel) == ["root.so", "prefix.so", "versioned.so.0.1"]


def test_build_environment_keeps_the_choices_of_the_caller(build_wheels, monkeypatch):
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "7")
    monkeypatch.setenv("CMAKE_CXX_COMPILER_LAUNCHER", "")
    environment = build_wheels.build_environment()
    assert environment["CMAKE_BUILD_PARALLEL_LEVEL"] == "7"
    assert environment["CMAKE_CXX_COMPILER_LAUNCHER"] == ""
    assert environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"


@pytest.mark.parametrize("found", [None, "/usr/bin/ccache"])
def test_build_environment_uses_ccache_only_if_there(build_wheels, monkeypatch, found):
    monkeypatch.delenv("CMAKE_CXX_COMPILER_LAUNCHER", raising=False)
    monkeypatch.setattr(build_wheels.shutil, "which", lambda name: found)
    environment = build_wheels.build_environment()
    assert ("CMAKE_CXX_COMPILER_LAUNCHER" in environment) == (found is not None)


def test_files_every_sdist_carries_are_equal_to_their_source(build_wheels):
    for package in build_wheels.PACKAGES:
        copy = ROOT / "packages" / package / "LICENSE"
        assert copy.read_bytes() == (ROOT / "LICENSE").read_bytes()
