# SPDX-License-Identifier: BSD-3-Clause
"""tools/page_style.py: pages of all packages have one style."""

from __future__ import annotations

import pytest

from support.programs import ROOT


@pytest.fixture
def page_style(load_tool):
    return load_tool("page_style")


def test_copies_of_this_workspace_equal_the_original(page_style):
    assert page_style.main(["--check"]) == 0


def test_changed_copy_is_found_and_written_again(page_style, tmp_path, capsys):
    for path in (page_style.ORIGINAL, *page_style.COPIES):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    changed = page_style.COPIES[0]
    (tmp_path / changed).write_text("STYLE = ''")
    assert page_style.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out.startswith(f"{changed} differs from")
    assert page_style.main([], tmp_path) == 0
    assert page_style.main(["--check"], tmp_path) == 0
