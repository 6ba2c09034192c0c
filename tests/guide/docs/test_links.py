# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_links.py: every local link of the guide has a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.programs import Load


def test_every_link_has_a_text_and_leads_somewhere(load_tool: Load) -> None:
    tool = load_tool("check_links")
    pages = tool.pages()
    assert len(pages) > 60
    assert [problem for page in pages for problem in tool.check_page(page)] == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[a](other.md) [b](#a-heading) [c](other.md#there-1)", []),
        ("[a](https://example.org/gone) `[](x)` <!-- [](x) -->", []),
        ("```cpp\n[](void* x) {}\n[a](gone.md)\n```", []),
        ("[](other.md)", ["page.md:3: the link to other.md has no text"]),
        ("[`a`](gone.md)", ["page.md:3: there is no gone.md"]),
        ("[a](#gone)", ["page.md:3: page.md has no heading #gone"]),
        ("\n[a\nb](other.md#no)", ["page.md:4: other.md has no heading #no"]),
    ],
)
def test_links_of_a_page(
    load_tool: Load, tmp_path: Path, text: str, problems: list[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# A `heading`\n\n{text}\n")
    (tmp_path / "other.md").write_text("# There\n\n## There\n\n```\n# no\n```\n")
    found = list(load_tool("check_links").check_page(page))
    assert found == [f"{tmp_path}/{problem}" for problem in problems]


def test_links_of_a_built_site(load_tool: Load, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<a href="a.html#here"></a><a href="a.html#gone"></a><a href="b.html"></a>'
        '<img src="gone.svg"><a href="https://example.org"></a><a href="#"></a>'
    )
    (tmp_path / "a.html").write_text('<p id="here"></p><a href="index.html"></a>')
    page = tmp_path / "index.html"
    assert list(load_tool("check_links").check_site(tmp_path)) == [
        f"{page}: a.html#gone is not an anchor of the page",
        f"{page}: there is no b.html",
        f"{page}: there is no gone.svg",
    ]
