# SPDX-License-Identifier: BSD-3-Clause
"""The guide builds without a warning.

Sphinx is needed, which only tox's environment ``docs`` has; the name of the file keeps
pytest from collecting it elsewhere: ``pytest tests/docs/check_build.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.programs import run

DOCS = Path(__file__).parents[2] / "docs"


def test_guide_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
    result = run(*command, DOCS, tmp_path)
    assert result.returncode == 0, result.stderr
    pages = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    built = {page.relative_to(tmp_path) for page in tmp_path.rglob("*.html")}
    assert pages <= {page.with_suffix("") for page in built}
