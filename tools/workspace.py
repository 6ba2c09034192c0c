# SPDX-License-Identifier: BSD-3-Clause
"""The packages of the workspace, and where its tools find things."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

# Each after those it needs.
PACKAGES = (
    "openreg-runtime",
    "openreg-aten",
    "openreg-amp",
    "openreg-distributed",
    "openreg-inductor",
    "openreg-profiler",
    "torch-openreg",
    "openreg-conformance",
)
