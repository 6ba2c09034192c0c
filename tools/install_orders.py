# SPDX-License-Identifier: BSD-3-Clause
"""Installs the wheels of dist in many orders and runs the examples of the README.

    python tools/install_orders.py            tries all orders
    python tools/install_orders.py --step 4   tries every fourth order

The environment of this interpreter needs only torch and numpy. pip installs one wheel
at a time, without dependencies, so that the test and not pip sets the order. Four
packages are tried in all 24 orders. The other packages are inserted at one position of
each order, and over all orders at every position. All combinations would be too many.
After the last wheel of an order, a new process runs the examples, a collective of one
rank, a compiled product and a profile.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from workspace import DIST, PACKAGES, ROOT

SPREAD = (
    "openreg-distributed",
    "openreg-inductor",
    "openreg-profiler",
    "openreg-cuda",
    "openreg-conformance",
    "openreg-predict",
)
README = ROOT / "README.md"
USED = "import torch\nassert torch.openreg.is_initialized(), 'no device was used'\n"
COLLECTIVE = """
import torch.distributed as dist

dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(2, device="openreg")
dist.all_reduce(tensor)
assert tensor.tolist() == [1, 1]
dist.destroy_process_group()
"""
# A matrix product needs no C++ compiler.
COMPILED = """
tensor = torch.eye(2, device="openreg")
assert torch.compile(torch.mm)(tensor, tensor).equal(tensor)
"""
PROFILED = """
from torch.profiler import ProfilerActivity, profile

with profile(activities=[ProfilerActivity.OPENREG]) as result:
    (tensor + 1).sum().item()
assert any(event.device_time > 0 for event in result.events())
"""


def orders() -> list[tuple[str, ...]]:
    """Returns the orders to try. Each contains all packages."""
    others = [package for package in PACKAGES if package not in SPREAD]
    tried = []
    for number, permutation in enumerate(itertools.permutations(others)):
        order = list(permutation)
        for package in SPREAD:
            order.insert(number % (len(order) + 1), package)
        tried.append(tuple(order))
    return tried


def examples(text: str) -> str:
    """Returns the Python examples of a page as one program that must use the device.

    Args:
        text: The page, in Markdown.

    Raises:
        ValueError: If the page has no example.
    """
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        raise ValueError("the page has no Python example")
    return "\n".join([*blocks, USED])


def wheel(package: str) -> Path:
    """Returns the wheel of a package in ``DIST``.

    Raises:
        FileNotFoundError: If there is not exactly one wheel.
    """
    found = list(DIST.glob(f"{package.replace('-', '_')}-*.whl"))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{package}: {len(found)} wheels in {DIST}, expected one; "
            "run python tools/build_wheels.py"
        )
    return found[0]


def failures(tried: Sequence[Sequence[str]], program: str) -> Iterator[str]:
    """Tries the orders and yields a message for each order that fails.

    Args:
        tried: The orders in which to install the packages.
        program: The program to run after each order.
    """
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = {package: wheel(package) for package in PACKAGES}
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENREG_", "TORCH_DEVICE_BACKEND"))
    }
    for order in tried:
        subprocess.run([*pip, "uninstall", "--yes", *PACKAGES], check=True)
        for package in order:
            offline = ["--no-deps", "--no-index", "--no-compile"]
            subprocess.run(
                [*pip, "install", *offline, str(wheels[package])], check=True
            )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not done.stdout:
            yield f"{', '.join(order)}:\n{done.stdout}{done.stderr}"


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Installs the wheels in many orders.")
    parser.add_argument("--step", type=int, default=1, help="try every N-th order")
    step = parser.parse_args().step
    if step < 1:
        parser.error(f"--step is {step}; accepted: 1 or more")
    program = examples(README.read_text(encoding="utf-8"))
    program += COLLECTIVE + COMPILED + PROFILED
    tried = orders()[::step]
    start = time.monotonic()
    failed = list(failures(tried, program))
    print(*failed, sep="\n", end="")
    seconds = time.monotonic() - start
    print(f"{len(tried) - len(failed)} of {len(tried)} orders work ({seconds:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
