# SPDX-License-Identifier: BSD-3-Clause
"""tools/pages.py: writing and checking generated pages."""

from __future__ import annotations

import sys


def test_page_is_written_and_then_current(load_tool, monkeypatch, tmp_path):
    pages = load_tool("pages")
    path = tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["tool.py"])
    assert pages.main("Writes it.", path, lambda: "new\n") == 0
    assert path.read_text() == "new\n"
    monkeypatch.setattr(sys, "argv", ["tool.py", "--check"])
    assert pages.main("Writes it.", path, lambda: "new\n") == 0


def test_page_that_is_not_current_is_named_and_left(
    load_tool, monkeypatch, tmp_path, capsys
):
    pages = load_tool("pages")
    path = tmp_path / "page.md"
    path.write_text("old\n")
    monkeypatch.setattr(sys, "argv", ["tools/it.py", "--check"])
    assert pages.main("Writes it.", path, lambda: "new\n") == 1
    assert capsys.readouterr().err == (
        f"{path} is not current: run python tools/it.py\n"
    )
    assert path.read_text() == "old\n"
