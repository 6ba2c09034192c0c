# SPDX-License-Identifier: BSD-3-Clause
"""Command line: ``python -m openreg_amp rules`` prints the autocast rules."""

from __future__ import annotations

import argparse

from . import rules


def main() -> None:
    """Prints one line for each rule: the operator and its policy."""
    parser = argparse.ArgumentParser(prog="python -m openreg_amp")
    parser.add_argument("command", choices=["rules"], help="list the autocast rules")
    parser.parse_args()
    table = rules()
    if not table:
        print("no rules: OPENREG_DISABLE names autocast")
        return
    width = max(len(operator) for operator, _ in table)
    for operator, policy in table:
        print(f"{operator:<{width}}  {policy}")


if __name__ == "__main__":
    main()
