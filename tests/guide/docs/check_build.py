# SPDX-License-Identifier: BSD-3-Clause
"""Checks the output of `sphinx-build -W docs build/docs`, and its errors.

Sphinx is needed, which only tox's environment ``docs`` has; the name of the file keeps
pytest from collecting it elsewhere: ``pytest tests/guide/docs/check_build.py``.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from support.programs import ROOT, run

DOCS = ROOT / "docs"
SITE = ROOT / "build" / "docs"


def test_every_page_is_built() -> None:
    pages = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    built = {page.relative_to(SITE) for page in SITE.rglob("*.html")}
    assert pages <= {page.with_suffix("") for page in built}


def test_a_page_fetches_nothing_from_other_sites() -> None:
    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(
            r"<(?:script|img|link)[^>]*(?:src|href)=.https?:.*?>", text
        )
        assert fetched == [], page


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("flowchart TB\n  a --> b", "needs a line 'accTitle: ...'"),
        ("flowchart TB\n  accTitle: wrong\n  a -->", "Mermaid: "),
    ],
)
def test_picture_without_title_or_sense_stops_the_build(
    tmp_path: Path, picture: str, message: str
) -> None:
    docs = tmp_path / "docs"
    for part in ("_extensions", "_static"):
        shutil.copytree(DOCS / part, docs / part)
    shutil.copy(DOCS / "conf.py", docs)
    shutil.copy(DOCS.parent / "VERSION", tmp_path)
    (docs / "index.md").write_text(f"# Index\n\n```mermaid\n{picture}\n```\n")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", docs, tmp_path / "built"]
    result = run(*command)
    assert result.returncode != 0
    assert message in result.stderr
