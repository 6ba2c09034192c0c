# SPDX-License-Identifier: BSD-3-Clause
"""examples/package_sets: the features of each package set, and errors without them.

The tests run in every package set, and also test the smaller ones by hiding packages.
"""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest

from support.isolation import marked
from support.programs import ROOT, Ended, run, variables

EXAMPLES = ROOT / "examples" / "package_sets"
PACKAGES = (
    "openreg_runtime",
    "openreg_aten",
    "openreg_amp",
    "openreg_distributed",
    "openreg_inductor",
    "openreg_profiler",
    "torch_openreg",
)
# The packages of each example, in import order.
PACKAGE_SETS = {
    "runtime": PACKAGES[:1],
    "aten": PACKAGES[:2],
    "aten_amp": PACKAGES[:3],
    "aten_distributed": (*PACKAGES[:2], "openreg_distributed"),
    "aten_inductor": (*PACKAGES[:2], "openreg_inductor"),
    "full": PACKAGES,
}
# A folder of tests of the same name has no origin.
INSTALLED = {
    name
    for name in PACKAGES
    if (spec := importlib.util.find_spec(name)) and spec.origin
}

# Hides the modules and metadata of packages, as if they were not installed.
HIDE = """
import importlib.metadata, runpy, sys
hidden = {hidden!r}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Finder())
importlib.util.find_spec = lambda name, real=importlib.util.find_spec: (
    None if name in hidden else real(name)
)
version = importlib.metadata.version
def visible(name):
    if name.replace("-", "_") in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = visible
"""


def run_without(source: str, hidden: set[str]) -> Ended:
    """Runs source with hidden packages."""
    environment = variables()
    if "torch_openreg" in hidden:  # its entry point is seen though it is hidden
        environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = (sys.executable, "-c", HIDE.format(hidden=hidden) + source)
    return run(*command, environment=environment)


def above(name: str) -> set[str]:
    """Returns the packages that a package set lacks."""
    absent = set(PACKAGES) - set(PACKAGE_SETS[name])
    return absent | {"torch"} if name == "runtime" else absent


def test_every_example_is_of_a_package_set() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == PACKAGE_SETS.keys()


@pytest.mark.parametrize(
    "name",
    marked(
        [name for name, needed in PACKAGE_SETS.items() if set(needed) <= INSTALLED],
        {"aten_distributed": "occl", "full": "occl"},
    ),
)
def test_example_prints_the_documented_output(name: str) -> None:
    path = EXAMPLES / f"{name}.py"
    source = path.read_text(encoding="utf-8")
    result = run_without(
        f"runpy.run_path({str(path)!r}, run_name='__main__')", above(name)
    )
    said = re.findall(r"^ *# prints: (.*)$", source, re.MULTILINE)
    assert said
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == said


MISSING = [
    (
        {"openreg_inductor"},
        "import torch; x = torch.eye(2, device='openreg');"
        "torch.compile(torch.mm)(x, x)",
        "pip install openreg-inductor==",
    ),
    ({"openreg_runtime"}, "import openreg_aten", "pip install openreg-runtime=="),
    ({"openreg_aten"}, "import torch_openreg", "pip install openreg-aten=="),
    ({"openreg_runtime"}, "import torch_openreg", "pip install openreg-runtime=="),
    (
        {"openreg_amp"},
        "import torch; torch.autocast('openreg')",
        "pip install openreg-amp==",
    ),
    (
        {"openreg_distributed"},
        "import torch.distributed as d;"
        "d.init_process_group(store=d.HashStore(), rank=0, world_size=1)",
        "pip install openreg-distributed==",
    ),
    (
        {"openreg_aten", "torch_openreg"},
        "import torch.distributed as d, openreg_distributed;"
        "openreg_distributed.register();"
        "d.init_process_group('occl', store=d.HashStore(), rank=0, world_size=1)",
        "pip install openreg-aten==",
    ),
    (
        {"openreg_amp", "torch_openreg"},
        "import torch, openreg_aten; torch.autocast('privateuseone')",
        "pip install openreg-amp==",
    ),
    (
        {"torch_openreg"},
        "import torch, openreg_aten; torch.privateuseone.amp",
        "pip install torch-openreg==",
    ),
]


@pytest.mark.skipif(
    len(INSTALLED) < len(PACKAGES), reason="hides one package of the full set"
)
@pytest.mark.parametrize(("hidden", "use", "command"), MISSING)
def test_missing_package_is_named_with_its_pip_command(
    hidden: set[str], use: str, command: str
) -> None:
    result = run_without(use, hidden)
    assert result.returncode == 1
    assert command in result.stderr
