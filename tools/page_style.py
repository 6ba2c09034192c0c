# SPDX-License-Identifier: BSD-3-Clause
"""Copies the style of report pages to the packages that have a page.

    python tools/page_style.py          # write the copies
    python tools/page_style.py --check  # fail if a copy differs

The original is the module ``page_style`` of openreg-conformance. The packages must not
depend on each other, and an sdist has only the files of one package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from workspace import ROOT

ORIGINAL = Path("packages/openreg-conformance/src/openreg_conformance/page_style.py")
COPIES = (
    Path("packages/openreg-profiler/src/openreg_profiler/_page_style.py"),
    Path("packages/torch-openreg/src/torch_openreg/hunt/_page_style.py"),
    Path("packages/openreg-predict/src/openreg_predict/_reports/page_style.py"),
)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Writes or checks the copies; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    check: bool = parser.parse_args(arguments).check
    text = (root / ORIGINAL).read_text(encoding="utf-8")
    status = 0
    for copy in COPIES:
        file = root / copy
        if check and (not file.is_file() or file.read_text(encoding="utf-8") != text):
            print(f"{copy} differs from {ORIGINAL}: run python tools/page_style.py")
            status = 1
        elif not check:
            file.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
