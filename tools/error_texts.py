# SPDX-License-Identifier: BSD-3-Clause
"""Writes the error messages of docs/errors.md to a file for openreg-conformance.

python tools/error_texts.py          # write the file
python tools/error_texts.py --check  # fail if the file does not match the programs
"""

from __future__ import annotations

import json
import sys

from errors import _PROBLEM, failures
from pages import main
from workspace import ROOT

FILE = ROOT / "packages/openreg-conformance/src/openreg_conformance/error_texts.json"
SHORTEST = 25  # shorter texts, such as AssertionError, are ambiguous


def table() -> str:
    """Returns the table: a message, the missing mechanism, and its page."""
    rows = sorted(
        (each.text, each.name, f"docs/mechanisms/{place}")
        for each in failures()
        if _PROBLEM.search(each.text) and len(each.text) >= SHORTEST
        for place in [f"planned.md#{each.name}" if each.planned else f"{each.name}.md"]
    )
    return json.dumps(rows, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main((__doc__ or "").splitlines()[0], FILE, table))
