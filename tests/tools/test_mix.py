# SPDX-License-Identifier: BSD-3-Clause
"""tools/mix.py: a mix must not have what is above it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        (
            ["openreg-runtime"],
            ["openreg_aten", "openreg_amp", "torch_openreg", "torch"],
        ),
        (["openreg-runtime", "openreg-aten"], ["openreg_amp", "torch_openreg"]),
        (["openreg-runtime", "openreg-aten", "openreg-amp"], ["torch_openreg"]),
    ],
)
def test_strangers_are_the_packages_above(load_tool, monkeypatch, packages, expected):
    mix = load_tool("mix")
    monkeypatch.setattr(mix.importlib.util, "find_spec", lambda name: object())
    assert mix.strangers(packages) == expected


def test_strangers_are_only_what_can_be_imported(load_tool, monkeypatch):
    mix = load_tool("mix")
    monkeypatch.setattr(mix.importlib.util, "find_spec", lambda name: None)
    assert mix.strangers(["openreg-runtime"]) == []
