# SPDX-License-Identifier: BSD-3-Clause
"""tools/promises.py: a promise without a proof and a wrong number are found."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = """# Promises

| area | what works |
| --- | --- |
| copies | all of them |

## 1. Streams

| no. | promise | shown by |
| --- | --- | --- |
| 1.1 | Work runs in order. | [a.py](../tests/test_a.py): `test_order`, `test_more` |
| 1.2 | A wait, at most 0.5 s, ends. | [a.cpp](../tests/a.cpp): `Wait.Ends` |

## 2. Speed

| no. | promise | shown by |
| --- | --- | --- |
| 2.1 | A call is fast. | [b.py](../tests/b.py): `add 8`, [a.cpp](../tests/a.cpp) |
| 2.3 | Nothing shows this. | [test pending] |
"""
README = """# Project

| call | time | promise |
| --- | --- | --- |
| add 8 | 1.29 | [2.1](docs/promises.md#2-speed) |

```text
| no | table |
```
"""


@pytest.fixture
def found(load_tool, tmp_path, capsys):
    """Returns what is printed about a page and a README in a small workspace."""
    tool = load_tool("promises")
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(
        "def test_order():\n    pass\n\nclass A:\n    def test_more(self): ...\n"
    )
    (tmp_path / "tests" / "a.cpp").write_text("TEST_F(Wait, Ends) {}\n")
    (tmp_path / "tests" / "b.py").write_text('ROWS = {"add 8": None}\n')

    def check(page: str = PAGE, readme: str = README) -> list[str]:
        (tmp_path / "docs" / "promises.md").write_text(page)
        (tmp_path / "README.md").write_text(readme)
        status = tool.main(tmp_path)
        printed: list[str] = capsys.readouterr().out.splitlines()
        good = printed == ["4 promises, all with their links"]
        assert status == (0 if good else 1)
        return [] if good else printed

    return check


def test_promises_of_this_workspace_hold(load_tool, capsys):
    tool = load_tool("promises")
    assert tool.main() == 0, capsys.readouterr().out
    numbers, _ = tool.check_page(Path(tool.ROOT, tool.PAGE))
    assert len(numbers) >= 60


def test_page_with_its_proofs_passes(found):
    assert found() == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("../tests/b.py", "../tests/gone.py", "2.1: there is no file ../tests/gone.py"),
        ("`test_more`", "`test_gone`", "1.1: ../tests/test_a.py has no test_gone"),
        ("`Wait.Ends`", "`Wait.Stops`", "1.2: ../tests/a.cpp has no Wait.Stops"),
        ("`add 8`", "`add 9`", "2.1: ../tests/b.py has no add 9"),
        ("| 1.2 |", "| 1.1 |", "1.1 comes after 1.1"),
        ("| 2.3 |", "| 2.1 |", "2.1 comes after 2.1"),
        ("| 2.3 |", "| 3.1 |", "3.1 is in section 2"),
        ("in order.", "in order", "1.1 is not one sentence"),
        ("in order.", "in order. It ends.", "1.1 is not one sentence"),
        ("[test pending]", "later", "2.3: 'later' is not a list of links"),
        ("| [test pending] |", "|", "the row is not: number, sentence, links"),
    ],
)
def test_promise_that_nothing_shows_is_found(found, old, new, problem):
    assert old in PAGE
    (line,) = found(PAGE.replace(old, new, 1))
    assert line.startswith("promises.md:")
    assert problem in line


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("fast", "README.md:5: the row links to no promise"),
        ("[2.2](docs/promises.md#2-speed)", "README.md:5: there is no promise 2.2"),
        (
            "[2.1](docs/promises.md#1-streams)",
            "README.md:5: promise 2.1 is not in section 1",
        ),
    ],
)
def test_row_of_the_readme_that_is_no_promise_is_found(found, new, problem):
    readme = README.replace("[2.1](docs/promises.md#2-speed)", new)
    assert found(readme=readme) == [problem]
