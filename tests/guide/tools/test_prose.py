# SPDX-License-Identifier: BSD-3-Clause
"""tools/prose.py: each pattern is found, and plain English passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.programs import ROOT

# The pattern, a sentence with it, and the sentence in plain English.
PATTERNS = [
    (
        "headless clause",
        "What fails keeps its words.",
        "Errors keep their original message.",
    ),
    (
        "noun of noun",
        "The memory of the device has a limit.",
        "Device memory has a limit.",
    ),
    (
        "pronoun without noun",
        "A dimension may count from the end; of one that there is not, this gives -1.",
        "Out-of-range dimensions map to an index outside the tensor.",
    ),
    (
        "causative",
        "The hook lets the device have the result.",
        "The hook passes the result to the device.",
    ),
    (
        "negation by no",
        "A leak is no matter of streams.",
        "A leak does not involve streams.",
    ),
    (
        "software that talks",
        "The row says which test fails.",
        "The row lists the test that fails.",
    ),
    (
        "avoided verb",
        "The program goes on with the next batch.",
        "The program continues with the next batch.",
    ),
    (
        "vague amount",
        "Each new value counts one of so many.",
        "Each new value has a weight of 1/16.",
    ),
    (
        "wrong particle",
        "The test runs beside another process.",
        "The test runs next to another process.",
    ),
]

PLAIN = [
    "Intermittent stream bugs are reported with the exact source lines:",
    "Features that PyTorch hard-codes to its built-in device types; see the list.",
    "An operator is enqueued on an idle stream when its operands exceed 64 KiB in "
    "total, or when the thread's recent operators did on average.",
    "If `torch._dynamo` has not been imported yet, the first 64 calls skip Python "
    "meta kernels, because importing it takes seconds.",
    "An enqueued kernel may reject a value (for example, an index that is out of "
    "range). The error is then raised by a later call.",
    "Reading the weights of a packed object returns CPU tensors.",
    "Errors keep their original message; PyTorch's own wrappers report only the name "
    "of the function that failed.",
    "Time spent waiting for other settings counts toward the timeout described below.",
    "PyTorch silently takes a different code path than it does for CUDA.",
    "Normalizes a possibly negative dimension. Out-of-range dimensions map to an index "
    "outside the tensor.",
    "aten::mm: result 0 has shape [2, 3], but the cached metadata predicted [3, 2].",
    "OpenReg out of memory: a running kernel needs 2.00 GiB of host memory for "
    "temporaries, and the host allocation failed.",
]


@pytest.fixture
def hits(load_tool, tmp_path):
    """Returns line and rule of each phrase of a file with a text."""
    tool = load_tool("prose")

    def find(text: str, name: str = "page.md") -> list[tuple[int, str]]:
        path = tmp_path / name
        path.write_text(text)
        return [(hit.line, hit.rule.name) for hit in tool.hits_in(path)]

    return find


def test_every_rule_has_a_pattern_here_and_a_row_in_the_guidelines(load_tool):
    names = [rule.name for rule in load_tool("prose").RULES]
    assert names == [name for name, _, _ in PATTERNS]
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in names if f"| {name} |" not in table] == []


@pytest.mark.parametrize(("rule", "bad", "good"), PATTERNS, ids=lambda text: text[:20])
def test_pattern_is_found_with_its_line_and_its_correction_passes(
    hits, rule, bad, good
):
    assert hits(f"# Title\n\nOne line.\n{bad}\n") == [(4, rule)]
    assert hits(f"# Title\n\n{good}\n") == []


@pytest.mark.parametrize("sentence", PLAIN)
def test_plain_english_passes(hits, sentence):
    assert hits(f"{sentence}\n") == []


@pytest.mark.parametrize(
    "place", ["{}", "- {}", "1. {}", "Text. {}", "| a | {} |", "> {}"]
)
def test_headless_clause_is_found_wherever_a_sentence_can_begin(hits, place):
    page = "First.\n\n" + place.format("What fails keeps its words.") + "\n"
    assert hits(page) == [(3, "headless clause")]


def test_phrase_is_found_across_a_line_break(hits):
    assert hits("It runs with the memory of\nthe device.\n") == [(1, "noun of noun")]


@pytest.mark.parametrize(
    "text",
    [
        "```text\nWhat fails goes on beside so many.\n```\n",
        "1. A step:\n\n   ```cpp\n   // beside it\n   ```\n",
        "The call `goes on beside` returns.\n",
        "See [the page](beside.md).\n",
        "<!-- What is left -->\n",
        "It goes on. <!-- prose: ok -->\n",
    ],
)
def test_code_links_comments_and_quoted_phrases_are_skipped(hits, text):
    assert hits(text) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""The kernel runs beside another one."""\n'),
        ("a.py", "x = 1\n# It runs\n# beside another one.\n"),
        ("a.py", "raise ValueError('the kernel runs beside another')\n"),
        ("a.cpp", "// It runs beside another one.\n"),
        ("a.h", '#error "it runs beside another"\n'),
        ("a.toml", "# It runs beside another one.\n"),
    ],
)
def test_comments_docstrings_and_error_texts_are_prose(hits, name, text):
    assert [rule for _, rule in hits(text, name)] == ["wrong particle"]


def test_code_is_not_prose(hits):
    assert hits("beside = so_many = 1\nx = {'beside': 2}\n", "a.py") == []
    assert hits("int beside = 1; // one\n", "a.cpp") == []


def test_tool_prints_each_phrase_and_fails(load_tool, monkeypatch, tmp_path, capsys):
    tool = load_tool("prose")
    page = tmp_path / "page.md"
    page.write_text("It goes on.\n")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "files", lambda places: [page] if places else [])
    monkeypatch.setattr(sys, "argv", ["prose.py", "--pages"])
    assert tool.main() == 1
    printed = capsys.readouterr().out
    assert printed.startswith("page.md:1: avoided verb: 'goes on.': write the verb:")
    page.write_text("It continues.\n")
    assert tool.main() == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys, "argv", ["prose.py", "--count"])
    assert tool.main() == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["0", "in", "all"]


def test_pages_of_this_workspace_are_found(load_tool):
    tool = load_tool("prose")
    pages = tool.files(tool.PAGES)
    assert ROOT / "README.md" in pages
    assert ROOT / "docs/mechanisms/guard.md" in pages
    assert all(isinstance(page, Path) and page.suffix == ".md" for page in pages)
