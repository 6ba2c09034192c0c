# SPDX-License-Identifier: BSD-3-Clause
"""tools/errors.py: each text of a program without its mechanism is on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.programs import Load


def test_page_is_current(load_tool: Load) -> None:
    tool = load_tool("errors")
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


def test_every_mechanism_with_a_program_is_on_the_page(load_tool: Load) -> None:
    tool = load_tool("errors")
    text = tool.PAGE.read_text(encoding="utf-8")
    failures = tool.failures()
    assert len({failure.name for failure in failures}) > 45
    for failure in failures:
        assert f"[`{failure.name}`](mechanisms/" in text
        assert failure.text.replace("|", r"\|") in text
    errors = text.partition("## No error")[0]
    for name in ("guard", "hooks", "fallback", "copy", "convolution", "graph"):
        assert f"[`{name}`](mechanisms/" in errors
    assert "[`typed`](mechanisms/" not in errors


def test_changed_text_of_a_program_changes_the_page(
    load_tool: Load, tmp_path: Path
) -> None:
    tool = load_tool("errors")
    folder = tmp_path / "examples" / "without"
    folder.mkdir(parents=True)
    program = folder / "no_guard.py"
    program.write_text("# prints: 1\n# without it: RuntimeError: new\n")
    tool.DOCS = tmp_path
    assert "| `RuntimeError: new` | [`guard`](mechanisms/guard.md) |" in tool.page()
    program.write_text("# prints: 1\n")
    with pytest.raises(
        ValueError, match=r"no_guard\.py has no comment '# without it: ...'"
    ):
        tool.page()
