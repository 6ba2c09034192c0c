# SPDX-License-Identifier: BSD-3-Clause
"""tools/install_orders.py: the program after each order, and failures."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest


@pytest.fixture
def tool(load_tool):
    return load_tool("install_orders")


def test_examples_of_a_page_are_one_program_that_must_use_the_device(tool):
    page = "```python\na = 1\n```\ntext\n```console\n$ b\n```\n```python\nc = 2\n```\n"
    assert tool.examples(page) == "a = 1\n\nc = 2\n\n" + tool.USED
    compile(tool.examples(tool.README.read_text(encoding="utf-8")), "README", "exec")


def test_page_without_examples_is_an_error(tool):
    with pytest.raises(ValueError, match="no Python example"):
        tool.examples("text\n```console\n$ b\n```\n")


def test_orders_are_all_of_four_packages_with_the_others_in_all_places(tool):
    tried, spread = tool.orders(), set(tool.SPREAD)
    assert len(tried) == 24
    others = [tuple(name for name in order if name not in spread) for order in tried]
    assert sorted(others) == sorted(itertools.permutations(set(tool.PACKAGES) - spread))
    assert all(sorted(order) == sorted(tool.PACKAGES) for order in tried)
    for package in spread:
        places = [order.index(package) for order in tried]
        assert set(places) == set(range(len(tool.PACKAGES)))
        for other in set(tool.PACKAGES) - {package}:
            pairs = zip(places, tried, strict=True)
            before = {place < order.index(other) for place, order in pairs}
            assert before == {True, False}


@pytest.mark.parametrize("names", [[], ["torch_openreg-1.whl", "torch_openreg-2.whl"]])
def test_package_without_its_one_wheel_is_named(tool, monkeypatch, tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.setattr(tool, "DIST", tmp_path)
    with pytest.raises(FileNotFoundError, match=f"torch-openreg: {len(names)} wheels"):
        tool.wheel("torch-openreg")


@pytest.mark.parametrize(
    ("program", "failed"),
    [("print(1)", False), ("pass", True), ("raise OSError('no device')", True)],
)
def test_every_order_is_installed_one_by_one_and_tried(
    tool, monkeypatch, tmp_path, program, failed
):
    monkeypatch.setattr(tool, "DIST", tmp_path)
    for package in tool.PACKAGES:
        (tmp_path / f"{package.replace('-', '_')}-1.whl").touch()
    calls = []
    run = subprocess.run

    def record(command, **options):
        if command[:3] != [sys.executable, "-m", "pip"]:
            return run(command, **options)
        calls.append([part for part in command if part.endswith(".whl")])
        return None

    monkeypatch.setattr(tool.subprocess, "run", record)
    orders = [tool.PACKAGES, tool.PACKAGES[::-1]]
    messages = list(tool.failures(orders, program))
    wheels = [[str(tool.wheel(package))] for package in tool.PACKAGES]
    assert calls == [[], *wheels, [], *wheels[::-1]]
    assert len(messages) == (len(orders) if failed else 0)
    if failed:
        assert messages[1].startswith(", ".join(tool.PACKAGES[::-1]))
