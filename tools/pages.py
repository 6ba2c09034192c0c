# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the tools that write pages of the guide."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def main(description: str, path: Path, text: Callable[[], str]) -> int:
    """Writes a page, or with ``--check`` fails if it is not current.

    Args:
        description: The description for ``--help``.
        path: The page.
        text: Returns the whole text of the page.

    Returns:
        The exit status.
    """
    return main_of_all(description, lambda: {path: text()})


def main_of_all(description: str, texts: Callable[[], Mapping[Path, str]]) -> int:
    """Writes several pages, or with ``--check`` fails if one is not current.

    Args:
        description: The description for ``--help``.
        texts: Returns the whole text of each page.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check: bool = parser.parse_args().check
    status = 0
    for path, text in texts().items():
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            print(f"{path} is not current: run python {sys.argv[0]}", file=sys.stderr)
            status = 1
    return status
