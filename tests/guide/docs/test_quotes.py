# SPDX-License-Identifier: BSD-3-Clause
"""tools/quotes.py: the code on the pages equals the files."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from support.programs import ROOT, Load

PAGES = sorted((ROOT / "docs").rglob("*.md"))
MARKS = re.compile(r"^ *(?://|#) \[docs:", re.MULTILINE)


@pytest.fixture
def tool(load_tool: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Returns the tool, with a repository of two files."""
    module = load_tool("quotes")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "code.py").write_text("# first\nif x:\n    y = 1\n\n    z = 2\n# end\n")
    return module


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "docs" / "page.md"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_quotations_are_current(load_tool: Load, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert load_tool("quotes").updated(text, path) == text
    assert "{literalinclude}" not in text


def test_the_guide_quotes_without_the_marks(load_tool: Load) -> None:
    quotes: ModuleType = load_tool("quotes")
    found = [
        (page, quote)
        for page in PAGES
        for quote in quotes.quotes(page.read_text(encoding="utf-8"))
    ]
    assert len(found) > 300
    for page, quote in found:
        assert not MARKS.search(quotes.selected(quote, page.parent)), (page, quote)


def test_include_becomes_a_quotation(tool: ModuleType, page: Path) -> None:
    text = (
        "before\n\n```{literalinclude} ../code.py\n:language: python\n"
        ':start-at: "y = 1"\n:end-before: end\n:dedent: 4\n```\n\nafter\n'
    )
    assert tool.updated(text, page) == (
        "before\n\n<!-- quote: ../code.py\nstart-at: y = 1\nend-before: end\n-->\n\n"
        "[`code.py`](../code.py)\n\n```python\ny = 1\n\nz = 2\n```\n\nafter\n"
    )


def test_quotation_may_select_several_parts_of_a_file(
    tool: ModuleType, page: Path
) -> None:
    (page.parent / "a.c").write_text("a;\n// [docs: b]\nb;\n// [docs: end]\nc;\nd;\n")
    comment = "<!-- quote: a.c\nend-at: a;\nstart-at: b;\nend-before: end\nstart-at: d;"
    text = tool.updated(f"{comment}\n-->\n", page)
    assert text.endswith("```c\na;\n\nb;\n\nd;\n```\n")
    assert tool.updated(text, page) == text
    (page.parent / "a.py").write_text("a = 1\nb = 2\nc = 3\n")
    text = tool.updated("<!-- quote: a.py\nend-at: a\nstart-at: c\n-->\n", page)
    assert "```python\na = 1\n\n\nc = 3\n```\n" in text


def test_marks_between_two_functions_leave_two_lines(
    tool: ModuleType, page: Path
) -> None:
    (page.parent / "a.py").write_text(
        "a = 1\n# [docs: end]\n\n\n# [docs: b]\n\nb = 2\n"
    )
    text = tool.updated("<!-- quote: a.py\nlines: 1-\n-->\n", page)
    assert "```python\na = 1\n\n\nb = 2\n```\n" in text


def test_quotation_without_options_is_the_whole_file(
    tool: ModuleType, page: Path
) -> None:
    (tmp := page.parent / "a.toml").write_text("a = 1\n")
    assert tool.updated("<!-- quote: a.toml -->\n", page) == (
        "<!-- quote: a.toml -->\n\n[`docs/a.toml`](a.toml)\n\n```toml\na = 1\n```\n"
    )
    assert tmp.exists()


def test_changed_file_changes_the_quotation_and_nothing_else(
    tool: ModuleType, page: Path
) -> None:
    comment = "<!-- quote: ../code.py\nlines: 3-\nend-before: end\n-->\n"
    first = tool.updated(f"one\n\n{comment}\ntwo\n\n```python\nkept\n```\n", page)
    assert first.endswith("z = 2\n```\n\ntwo\n\n```python\nkept\n```\n")
    assert tool.updated(first, page) == first
    code = page.parents[1] / "code.py"
    code.write_text(code.read_text().replace("y = 1", "y = 7"))
    assert tool.updated(first, page) == first.replace("y = 1", "y = 7")


def test_fences_in_a_quoted_file_do_not_end_the_quotation(
    tool: ModuleType, page: Path
) -> None:
    (page.parent / "a.md").write_text("```python\nx\n```\n")
    text = tool.updated("<!-- quote: a.md -->\n", page)
    assert "````markdown\n```python\nx\n```\n````\n" in text
    assert tool.updated(text, page) == text


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("<!-- quote: ../gone.py -->", "the quoted file ../gone.py does not exist"),
        ("<!-- quote: ../code.py\nstart-at: gone\n-->", "no 'gone' from line 1"),
        (
            "<!-- quote: ../code.py\nstart-at: y\nend-at: first\n-->",
            "'first' from line 3",
        ),
        ("<!-- quote: ../code.py\nlines: 9-\n-->", "select no lines"),
        ("<!-- quote: ../code.py\nafter: y\n-->", "unknown option after"),
    ],
)
def test_wrong_quotation_names_the_page_and_the_fault(
    tool: ModuleType, page: Path, comment: str, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as found:
        tool.updated(f"{comment}\n", page)
    assert str(found.value).startswith("docs/page.md: ")


def test_check_fails_for_a_changed_page_and_writes_nothing(
    tool: ModuleType,
    page: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page.write_text("<!-- quote: ../code.py\nlines: 3-\n-->\n")
    before = page.read_text()
    monkeypatch.setattr("sys.argv", ["quotes.py", "--check"])
    assert tool.main() == 1
    assert page.read_text() == before
    assert "docs/page.md is not current" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["quotes.py"])
    assert tool.main() == 0
    assert "z = 2" in page.read_text()
    monkeypatch.setattr("sys.argv", ["quotes.py", "--check"])
    assert tool.main() == 0
