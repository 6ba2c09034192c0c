# SPDX-License-Identifier: BSD-3-Clause
"""Writes the texts of docs/errors.md for openreg-conformance, which explains them.

python tools/error_texts.py          # write the file
python tools/error_texts.py --check  # fail if it is not that of the programs
"""

from __future__ import annotations

import json
import sys

from errors import _PROBLEM, failures
from pages import main
from workspace import ROOT

FILE = ROOT / "packages/openreg-conformance/src/openreg_conformance/error_texts.json"
SHORTEST = 25  # what is shorter, such as AssertionError, says too little


def table() -> str:
    """Returns the table: a text, the mechanism that is missing, and its page."""
    rows = sorted(
        (each.text, each.name, f"docs/mechanisms/{place}")
        for each in failures()
        if _PROBLEM.search(each.text) and len(each.text) >= SHORTEST
        for place in [f"planned.md#{each.name}" if each.planned else f"{each.name}.md"]
    )
    return json.dumps(rows, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main((__doc__ or "").splitlines()[0], FILE, table))
