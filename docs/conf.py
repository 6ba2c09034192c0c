# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx builds the guide: ``sphinx-build -W docs build/docs``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "torch-openreg"
author = "torch-openreg contributors"
version = release = (Path(__file__).parents[1] / "VERSION").read_text().strip()

extensions = [
    "myst_parser",
    "pictures",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
templates_path = ["_templates"]
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "description"
exclude_patterns = ["examples"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["guide.css"]
html_title = f"{project} {version}"
