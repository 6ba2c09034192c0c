# SPDX-License-Identifier: BSD-3-Clause
"""tools/stubs.py: its page is current for this torch."""

from __future__ import annotations

import re


def test_page_is_current(load_tool) -> None:
    stubs = load_tool("stubs")
    assert stubs.PAGE.read_text(encoding="utf-8") == stubs.page()


def test_declarations_are_found_in_every_form(load_tool, tmp_path) -> None:
    stubs = load_tool("stubs")
    stubs.NATIVE = tmp_path
    (tmp_path / "Some.h").write_text(
        "// DECLARE_DISPATCH(fn, in_a_comment)\n"
        "DECLARE_DISPATCH(void (*)(int64_t, int64_t), one_line)\n"
        "DECLARE_DISPATCH(\n    void (*)(Tensor&, int64_t),\n    three_lines)\n"
        "DECLARE_DISPATCH(fn, with_semicolon);\n"
    )
    assert stubs.declared() == {
        "Some.h": [("", "one_line"), ("", "three_lines"), ("", "with_semicolon")]
    }


def test_stubs_that_are_not_exported_stand_apart(load_tool) -> None:
    table, hidden = load_tool("stubs").page().split("more are declared")
    names = re.compile(r"`(?:\w+::)?(\w+)`")
    assert {"abs_stub", "sum_stub", "copy_stub"} <= set(names.findall(table))
    assert not set(names.findall(hidden)) & {"abs_stub", "sum_stub", "copy_stub"}
