# SPDX-License-Identifier: BSD-3-Clause
"""The usage example of PyTorch's reference backend runs unchanged."""

from __future__ import annotations

from collections.abc import Callable

from support.programs import ROOT

Output = Callable[..., str]
FILE = ROOT / "examples" / "usage.py"

EXAMPLE = r"""
import torch

if not torch.openreg.is_available():
    print("OpenReg backend is not available in this build.")
    exit()

print("OpenReg backend is available!")

device = torch.device("openreg")

x = torch.tensor([[1., 2.], [3., 4.]], device=device)
y = x + 2
print("Result y:\n", y)
print(f"Device of y: {y.device}")

z = y.cpu()
print("Result z:\n", z)
print(f"Device of z: {z.device}")
"""

PRINTED = """\
OpenReg backend is available!
Result y:
 tensor([[3., 4.],
        [5., 6.]], device='openreg:0')
Device of y: openreg:0
Result z:
 tensor([[3., 4.],
        [5., 6.]])
Device of z: cpu"""


def test_usage_example_prints_results_and_devices(output: Output) -> None:
    assert output(EXAMPLE) == PRINTED


def test_usage_example_is_the_one_in_the_examples() -> None:
    assert FILE.read_text().endswith(EXAMPLE)


def test_usage_example_without_devices_reports_it(output: Output) -> None:
    printed = output(EXAMPLE, OPENREG_DEVICE_COUNT="none")
    assert printed == "OpenReg backend is not available in this build."
