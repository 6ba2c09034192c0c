# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_layers.py: an include that points upwards is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = "packages/openreg-runtime/csrc"
ATEN = "packages/openreg-aten/csrc"
DISTRIBUTED = "packages/openreg-distributed/csrc"


@pytest.fixture
def layers(load_tool):
    return load_tool("check_layers")


@pytest.fixture
def found_in_copy(layers, tmp_path, capsys):
    """Gives a function that plants a line in a copy and returns what is printed."""

    def find(path: str, line: str) -> list[str]:
        for name in layers.LAYERS:
            shutil.copytree(ROOT / name, tmp_path / name)
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        text = file.read_text() if file.exists() else ""
        file.write_text(f"{line}\n{text}")
        status = layers.main(tmp_path)
        printed = capsys.readouterr().out.splitlines()
        assert status == (0 if printed == ["no include points upwards"] else 1)
        return printed if status else []

    return find


def test_layers_of_this_workspace_hold(layers):
    assert list(layers.check(ROOT)) == []


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
            f"{ATEN}/mechanism.h",
            "device/device.h",
            "mechanism must not include device/",
        ),
        (
            f"{DISTRIBUTED}/engine.cpp",
            "backend.h",
            "engine must not include backend",
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


def test_include_that_points_downwards_is_allowed(found_in_copy):
    assert found_in_copy(f"{RUNTIME}/api/copy.cpp", '#include "memory/heap.h"') == []


def test_folder_without_a_place_in_the_order_is_found(found_in_copy):
    path = f"{RUNTIME}/graph/graph.h"
    assert found_in_copy(path, "") == [f"{path}:1: graph/ is no layer"]
