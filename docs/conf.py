# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx builds the guide: ``sphinx-build -W docs build/docs``."""

from __future__ import annotations

from pathlib import Path

project = "torch-openreg"
author = "torch-openreg contributors"
version = release = (Path(__file__).parents[1] / "VERSION").read_text().strip()

extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "alabaster"
html_theme_options = {
    "description": "An accelerator for PyTorch that needs no hardware.",
    "page_width": "1080px",
}
html_title = f"{project} {version}"
