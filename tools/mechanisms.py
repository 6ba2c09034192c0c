# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table of docs/mechanisms/index.md from the mechanisms of the code.

The text around the table is written by hand, and stays. The mechanisms are the ones of
the packages that are installed:

    python tools/mechanisms.py          # write the table
    python tools/mechanisms.py --check  # fail if the page has another
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pages import main

from torch_openreg.openreg import Mechanism, mechanisms

PAGE = Path(__file__).parents[1] / "docs" / "mechanisms" / "index.md"
HEAD = """\
| name | what PyTorch calls it | without it | source, in `packages` |
| --- | --- | --- | --- |
"""


def line(mechanism: Mechanism) -> str:
    """Returns the row of a mechanism."""
    name = mechanism.name
    planned = mechanism.state == "planned"
    cells = (
        f"[`{name}`]({f'planned.md#{name}' if planned else f'{name}.md'})",
        f"`{mechanism.summary}`",
        mechanism.without,
        "planned" if planned else f"`{mechanism.source}`",
    )
    return f"| {' | '.join(cells)} |\n"


def page() -> str:
    """Returns the page with the table of the code.

    Raises:
        ValueError: If the page does not have one table with the head of this one.
    """
    table = HEAD + "".join(map(line, mechanisms()))
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(rf"^{re.escape(HEAD)}(?:\|.*\n)*", text, flags=re.MULTILINE)
    if len(parts) != 2:
        raise ValueError(f"{PAGE} has {len(parts) - 1} tables of mechanisms, not one")
    return table.join(parts)


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
