# SPDX-License-Identifier: BSD-3-Clause
"""tools/package_set.py: a package set must not have packages above it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        (
            ["openreg-runtime"],
            [
                "openreg_aten",
                "openreg_amp",
                "openreg_distributed",
                "openreg_inductor",
                "openreg_profiler",
                "torch_openreg",
                "openreg_cuda",
                "openreg_conformance",
                "openreg_predict",
                "torch",
            ],
        ),
        (
            ["openreg-runtime", "openreg-aten"],
            [
                "openreg_amp",
                "openreg_distributed",
                "openreg_inductor",
                "openreg_profiler",
                "torch_openreg",
                "openreg_cuda",
                "openreg_conformance",
                "openreg_predict",
            ],
        ),
        (
            ["openreg-runtime", "openreg-aten", "openreg-amp"],
            [
                "openreg_distributed",
                "openreg_inductor",
                "openreg_profiler",
                "torch_openreg",
                "openreg_cuda",
                "openreg_conformance",
                "openreg_predict",
            ],
        ),
    ],
)
def test_strangers_are_the_packages_above(load_tool, monkeypatch, packages, expected):
    package_set = load_tool("package_set")
    monkeypatch.setattr(package_set.importlib.util, "find_spec", lambda name: object())
    assert package_set.strangers(packages) == expected


def test_strangers_are_only_importable_packages(load_tool, monkeypatch):
    package_set = load_tool("package_set")
    monkeypatch.setattr(package_set.importlib.util, "find_spec", lambda name: None)
    assert package_set.strangers(["openreg-runtime"]) == []


def test_requested_torch_is_not_a_stranger(load_tool, monkeypatch):
    package_set = load_tool("package_set")
    monkeypatch.setattr(package_set.importlib.util, "find_spec", lambda name: name)
    assert "torch" in package_set.strangers(["openreg-runtime"])
    assert "torch" not in package_set.strangers(["openreg-runtime"], torch=True)
