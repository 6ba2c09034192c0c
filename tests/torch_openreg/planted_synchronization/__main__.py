# SPDX-License-Identifier: BSD-3-Clause
"""Prints which mode finds which planted bug, and on which attempt.

    cd tests/torch_openreg && python -m planted_synchronization [attempts]

``found 3`` means that the third run showed the bug, ``-`` that none did. In the mode
``random`` each attempt has the next seed. The corrected programs run in the same modes;
the column ``false`` counts their failures.
"""

from __future__ import annotations

import sys

from .matrix import MODES, attempt_that_finds, false_alarms
from .programs import BUGS


def main() -> int:
    """Prints the matrix; returns 1 if a bug is not found, or a program is blamed."""
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    width = max(len(bug.name) for bug in BUGS)
    print("bug".ljust(width), *(name.ljust(10) for name in MODES), "false  report")
    missed = alarms = 0
    for bug in BUGS:
        found = {name: attempt_that_finds(bug, name, attempts) for name in MODES}
        false = sum(false_alarms(bug, name, attempts) for name in MODES)
        missed += not any(found[name] for name in MODES if name != "eager")
        alarms += false
        cells = [f"found {n}" if n else "-" for n in found.values()]
        print(
            bug.name.ljust(width),
            *(cell.ljust(10) for cell in cells),
            str(false).ljust(6),
            bug.report,
            flush=True,
        )
    print(f"{len(BUGS)} bugs, {missed} not found, {alarms} false alarms")
    return 1 if missed or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
