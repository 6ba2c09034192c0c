# SPDX-License-Identifier: BSD-3-Clause
"""Compares the devices under the name "cuda" with the devices under "openreg".

A process has one name for its devices, so each side is a separate process. The sides
run the batches of eager.py in turn: the CPU, "openreg" and "cuda". It needs
openreg-cuda.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from eager import CASES
from processes import Side, alternate, format_ratio, serve

SIDES = {"cpu": "openreg", "openreg": "openreg", "cuda": "cuda"}


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs="+", choices=[*CASES], default=[*CASES])
    parser.add_argument(
        "--quick", action="store_true", help="a test run, no measurement"
    )
    options = parser.parse_args()
    if options.serve:
        serve(CASES, options.serve)
        return 0
    sides = {
        device: Side(__file__, device, OPENREG_DEVICE=name)
        for device, name in SIDES.items()
    }
    try:
        heads = "".join(f"{name + ' us':>12}" for name in sides)
        print(f"{'one thread':<22}{heads}{'cuda/openreg':>22}{'cuda/cpu':>22}")
        for case in options.case:
            times = alternate(sides, case, rounds=3 if options.quick else 31)
            columns = "".join(
                f"{statistics.median(each):>12.2f}" for each in times.values()
            )
            to_openreg = format_ratio(times["cuda"], times["openreg"])
            to_cpu = format_ratio(times["cuda"], times["cpu"])
            print(f"{case:<22}{columns}{to_openreg:>22}{to_cpu:>22}", flush=True)
    finally:
        for side in sides.values():
            side.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
