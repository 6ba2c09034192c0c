# SPDX-License-Identifier: BSD-3-Clause
"""One rank of ``openreg-predict run --ranks``: runs a script and writes its record.

``torchrun`` starts it as ``-m openreg_predict._commands.rank FOLDER SCRIPT ...``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from openreg_predict._commands._errors import CommandError
from openreg_predict._commands.run import record_of_rank, run_script


def main() -> int:
    """Runs the rank; returns the exit status."""
    folder, script, *arguments = sys.argv[1:]
    file = record_of_rank(Path(folder), int(os.environ["RANK"]))
    try:
        run_script(Path(script), arguments, dry=False, save=file)
    except CommandError as error:
        print(f"openreg-predict run: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
