# SPDX-License-Identifier: BSD-3-Clause
"""Draws Mermaid fences while Sphinx builds, once for light and once for dark mode.

GitHub draws the same fences itself. mermaidx bundles Mermaid with a small JavaScript
engine, so neither the build nor the reader needs a browser, Node or a network. Invalid
Mermaid text stops the build. The ``accTitle:`` line of a picture becomes its
alternative text for screen readers.
"""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import version
from pathlib import Path

import mermaidx
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

THEMES = {"light": "default", "dark": "dark"}
CACHE = Path(__file__).resolve().parents[2] / "build" / "pictures"

_TITLE = re.compile(r"^\s*accTitle:\s*(.+)$", re.MULTILINE)
_SIZE = re.compile(r'viewBox="\S+ \S+ (\S+) (\S+)"')


def draw(source: str, theme: str) -> Path:
    """Draws a picture unless the cache has it.

    Args:
        source: The Mermaid text.
        theme: A key of ``THEMES``.

    Returns:
        The path of the SVG, whose size gives 16-pixel text.
    """
    key = hashlib.sha256(f"{version('mermaidx')}\n{source}".encode()).hexdigest()[:16]
    path = CACHE / f"{key}-{theme}.svg"
    if not path.exists():
        svg = mermaidx.render(source, theme=THEMES[theme]).svg()
        size = _SIZE.search(svg)
        if size is None:
            raise ValueError(f"Mermaid drew nothing for {source!r}")
        svg = svg.replace('width="100%"', f'width="{size[1]}" height="{size[2]}"', 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(svg, encoding="utf-8")
    return path


class Picture(SphinxDirective):
    """A Mermaid fence: two images, one per theme; the page shows the matching image."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Returns the images.

        Raises:
            Error: If the picture has no title or Mermaid cannot draw it.
        """
        source = "\n".join(self.content)
        title = _TITLE.search(source)
        if title is None:
            raise self.error("a picture needs a line 'accTitle: ...'")
        box = nodes.container(classes=["picture"])
        for theme in THEMES:
            try:
                path = draw(source, theme)
            except (ValueError, RuntimeError) as error:
                raise self.error(f"Mermaid: {error}") from error
            name = f"_pictures/{path.name}"
            target = Path(self.env.app.outdir) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
            up = "../" * self.env.docname.count("/")
            box += nodes.raw(
                "",
                f'<img class="only-{theme}" src="{up}{name}" alt="{title[1].strip()}">',
                format="html",
            )
        return [box]


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directive ``mermaid``."""
    app.add_directive("mermaid", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
