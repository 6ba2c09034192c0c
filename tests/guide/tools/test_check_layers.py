# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_layers.py: an include of a higher layer is found."""

from __future__ import annotations

import shutil

import pytest

from support.programs import ROOT

RUNTIME = "packages/openreg-runtime/csrc"
ATEN = "packages/openreg-aten/csrc"
DISTRIBUTED = "packages/openreg-distributed/csrc"
PREDICT = "packages/openreg-predict/src/openreg_predict"


@pytest.fixture
def layers(load_tool):
    return load_tool("check_layers")


@pytest.fixture
def found_in_copy(layers, tmp_path, capsys):
    """Returns a function that plants a line in a copy and returns the output."""

    def find(path: str, line: str) -> list[str]:
        for name in (*layers.LAYERS, *layers.SHARED, *layers.ROOMS):
            shutil.copytree(ROOT / name, tmp_path / name)
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        text = file.read_text() if file.exists() else ""
        file.write_text(f"{line}\n{text}")
        status = layers.main(tmp_path)
        printed = capsys.readouterr().out.splitlines()
        good = ["all includes and imports are of lower layers, without loops"]
        assert status == (0 if printed == good else 1)
        return printed if status else []

    return find


def test_layers_of_this_workspace_hold(layers):
    assert list(layers.check(ROOT)) == []
    assert list(layers.check_rooms(ROOT)) == []


@pytest.mark.parametrize(
    ("path", "include", "message"),
    [
        (
            f"{RUNTIME}/stream/stream.cpp",
            "device/runtime.h",
            "stream/ must not include device/",
        ),
        (
            f"{RUNTIME}/base/error.h",
            "../memory/heap.h",
            "base/ must not include memory/",
        ),
        (
            f"{RUNTIME}/bindings/event.cpp",
            "stream/event.h",
            "bindings/ must not include stream/",
        ),
        (f"{ATEN}/kernel/boxed.h", "ops/copy.h", "kernel/ must not include ops/"),
        (
            f"{ATEN}/base/mechanism.h",
            "device/device.h",
            "base/ must not include device/",
        ),
        (
            f"{DISTRIBUTED}/transport/engine.cpp",
            "occl/backend.h",
            "transport/ must not include occl/",
        ),
    ],
)
def test_include_that_points_upwards_is_found(found_in_copy, path, include, message):
    assert found_in_copy(path, f'#include "{include}"') == [f"{path}:1: {message}"]


def test_angle_brackets_hide_no_include(found_in_copy):
    path = f"{RUNTIME}/memory/heap.h"
    assert found_in_copy(path, "#include <device/device.h>") == [
        f"{path}:1: memory/ must not include device/"
    ]


@pytest.mark.parametrize(
    ("path", "header"),
    [
        (f"{RUNTIME}/memory/heap.cpp", "sys/mman.h"),
        (f"{RUNTIME}/bindings/kernel.cpp", "cxxabi.h"),
        (f"{RUNTIME}/platform/mapping.h", "unistd.h"),
        (f"{ATEN}/memory/ipc.cpp", "unistd.h"),
        (f"{DISTRIBUTED}/transport/shared/peers.cpp", "linux/futex.h"),
        ("packages/openreg-profiler/csrc/clock.cpp", "time.h"),
        (f"{RUNTIME}/device/device.h", "Windows.h"),
        ("extension/gil_release.h", "cxxabi.h"),
    ],
)
def test_system_header_outside_of_platform_is_found(found_in_copy, path, header):
    assert found_in_copy(path, f"#include <{header}>") == [
        f"{path}:1: <{header}> belongs into a file of a system in platform/"
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (f"{RUNTIME}/platform/linux/wait.cpp", "#include <sys/mman.h>"),
        (f"{RUNTIME}/memory/heap.cpp", "#include <cerrno>"),
        (f"{RUNTIME}/memory/heap.cpp", '#include "base/process.h"'),
    ],
)
def test_other_header_is_allowed(found_in_copy, path, line):
    assert found_in_copy(path, line) == []


def test_include_that_points_downwards_is_allowed(found_in_copy):
    assert found_in_copy(f"{RUNTIME}/api/copy.cpp", '#include "memory/heap.h"') == []


def test_folder_without_a_place_in_the_order_is_found(found_in_copy):
    path = f"{RUNTIME}/graph/graph.h"
    assert found_in_copy(path, "") == [f"{path}:1: graph/ is not a layer"]


def test_file_outside_the_folders_is_found(found_in_copy):
    path = f"{ATEN}/more.h"
    assert found_in_copy(path, "") == [
        f"{path}:1: a file outside of folders is not a layer"
    ]


@pytest.mark.parametrize(
    ("path", "include", "loop"),
    [
        (
            f"{ATEN}/alias/alias_pool.h",
            "alias/cpu_aliases.h",
            "alias/alias_pool -> alias/cpu_aliases -> alias/alias_pool",
        ),
        (
            "packages/openreg-profiler/csrc/trace.h",
            "session.h",
            "session -> trace -> session",
        ),
    ],
)
def test_loop_of_pairs_is_found(found_in_copy, path, include, loop):
    (found,) = found_in_copy(path, f'#include "{include}"')
    assert found == f"{path.rpartition('/csrc')[0]}/csrc: a loop of includes: {loop}"


def test_folder_with_too_many_pairs_is_found(found_in_copy, layers, monkeypatch):
    monkeypatch.setattr(layers, "MOST_PAIRS", 9)
    found = found_in_copy(f"{ATEN}/stream/pace.h", "")
    assert f"{ATEN}/memory: 12 pairs; at most 9 are allowed" in found


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        (
            f"{PREDICT}/_memory/allocator.py",
            "from openreg_predict._reports import text",
            "_memory/ must not import _reports/",
        ),
        (
            f"{PREDICT}/_works/work.py",
            "if TYPE_CHECKING: from openreg_predict._costs.interval import Interval",
            "_works/ must not import _costs/",
        ),
        (
            f"{PREDICT}/_commands/run.py",
            "import openreg_predict.__main__",
            "_commands/ must not import a file outside of rooms",
        ),
    ],
)
def test_import_that_points_upwards_is_found(found_in_copy, path, line, message):
    assert found_in_copy(path, line) == [f"{path}:1: {message}"]


def test_loop_of_modules_in_a_room_is_found(found_in_copy):
    line = "from openreg_predict._works import operators"
    assert found_in_copy(f"{PREDICT}/_works/work.py", line) == [
        f"{PREDICT}: a loop of imports: _works/work -> _works/operators -> "
        "_works/table -> _works/work"
    ]


def test_module_outside_of_the_known_rooms_is_found(found_in_copy):
    assert found_in_copy(f"{PREDICT}/_others/new.py", "import torch") == [
        f"{PREDICT}/_others/new.py:1: _others/ is not a room"
    ]
