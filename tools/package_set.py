# SPDX-License-Identifier: BSD-3-Clause
"""Installs exactly one package set from the wheels in dist.

    python tools/package_set.py openreg-runtime openreg-aten

The tool uninstalls the other packages and fails if one of them can still be imported.
It also fails if torch can be imported, unless a package of the set needs torch or
--torch is given. This way, no test depends on a package outside of its set.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

from workspace import DIST, PACKAGES


def strangers(packages: Sequence[str], *, torch: bool = False) -> list[str]:
    """Lists the modules that can be imported although they are not in the set.

    Args:
        packages: The packages of the set.
        torch: Whether torch is allowed although no package of the set needs it.
    """
    absent = [name.replace("-", "_") for name in PACKAGES if name not in packages]
    if not torch and set(packages) <= {"openreg-runtime"}:
        absent.append("torch")
    return [name for name in absent if importlib.util.find_spec(name)]


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Install exactly these packages.")
    parser.add_argument("packages", nargs="+", choices=PACKAGES)
    parser.add_argument("--torch", action="store_true", help="also allow torch")
    options = parser.parse_args()
    packages: list[str] = options.packages

    pip = [sys.executable, "-m", "pip", "--quiet"]
    subprocess.run([*pip, "uninstall", "--yes", *PACKAGES], check=True)
    offline = ["--no-deps", "--no-index", "--find-links", str(DIST)]
    subprocess.run([*pip, "install", *offline, *packages], check=True)
    importlib.invalidate_caches()

    found = strangers(packages, torch=options.torch)
    if found:
        print(f"this package set must not have {', '.join(found)}", file=sys.stderr)
        return 1
    print("package set:", *packages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
