# SPDX-License-Identifier: BSD-3-Clause
"""The packages and the folders of the workspace."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

# Each package is listed after the packages that it needs.
PACKAGES = (
    "openreg-runtime",
    "openreg-aten",
    "openreg-amp",
    "openreg-distributed",
    "openreg-inductor",
    "openreg-profiler",
    "torch-openreg",
    "openreg-cuda",
    "openreg-conformance",
    "openreg-predict",
)
