# SPDX-License-Identifier: BSD-3-Clause
"""Makes an environment hold one package set exactly, from the wheels in dist.

    python tools/package_set.py openreg-runtime openreg-aten

The other packages are removed, and the tool fails if one can still be imported; so
does torch, if no package that needs it was asked for and --torch is not given. No test
can then lean on a package above the ones it tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

from workspace import DIST, PACKAGES


def strangers(packages: Sequence[str], *, torch: bool = False) -> list[str]:
    """Lists the modules that can be imported although the set does not have them.

    Args:
        packages: The packages of the set.
        torch: Whether torch may be there although no package of the set needs it.
    """
    absent = [name.replace("-", "_") for name in PACKAGES if name not in packages]
    if not torch and set(packages) <= {"openreg-runtime"}:
        absent.append("torch")
    return [name for name in absent if importlib.util.find_spec(name)]


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Install exactly these packages.")
    parser.add_argument("packages", nargs="+", choices=PACKAGES)
    parser.add_argument("--torch", action="store_true", help="torch may be there too")
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
