# SPDX-License-Identifier: BSD-3-Clause
"""Each concept and each mechanism has its picture, on the page that explains it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from support.programs import ROOT

DOCS = ROOT / "docs"
FENCE = re.compile(r"^```mermaid\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^ *accTitle: (.*)$", re.MULTILINE)

# The page, the beginning of the title, and required content of the picture.
CONCEPTS = {
    "architecture.md": [
        (
            "The life of x + y",
            ["AutocastPrivateUse1", "AutogradPrivateUse1", "ADInplaceOrView", "stream"],
        ),
        (
            "The pages of a device are mapped twice",
            ["device mapping", "kernel mapping"],
        ),
    ],
    "asynchrony.md": [("Which copies the host waits for", ["non_blocking", "pinned"])],
    "device.md": [("Two streams, ordered by an event", ["stream a", "stream b"])],
    "dispatcher.md": [("A key set holds", ["functionalities", "backends", "Autograd"])],
    "distributed.md": [
        ("A collective on its streams", ["current stream", "stream of the group"]),
        ("Ranks, their devices", ["openreg:0", "openreg:1", "gloo"]),
    ],
    "memory.md": [("The caching allocator", ["orMalloc", "free block"])],
}
MECHANISMS = {
    f"mechanisms/{each.name}.md": [(f"{each.name}: from", [each.name])]
    for each in torch.openreg.mechanisms()
    if each.state != "planned"
}
PROMISED = [
    (page, title, words)
    for page, pictures in {**CONCEPTS, **MECHANISMS}.items()
    for title, words in pictures
]


def missing(docs: Path) -> list[tuple[str, str]]:
    """Returns page and title of every expected picture that is not in a folder."""
    found = []
    for page, title, words in PROMISED:
        pictures = FENCE.findall((docs / page).read_text(encoding="utf-8"))
        titles = {TITLE.findall(picture)[0]: picture for picture in pictures}
        fitting = [text for each, text in titles.items() if each.startswith(title)]
        if len(fitting) != 1 or not all(word in fitting[0] for word in words):
            found.append((page, title))
    return found


def test_every_promised_picture_is_there() -> None:
    assert missing(DOCS) == []
    assert len(MECHANISMS) >= 40


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    for page in DOCS.rglob("*.md"):
        target = folder / page.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, target)
    return folder


@pytest.mark.parametrize(
    ("page", "title"), [each[:2] for each in PROMISED], ids=lambda text: text[:24]
)
def test_removed_picture_is_found(copy: Path, page: str, title: str) -> None:
    path = copy / page
    before = path.read_text(encoding="utf-8")
    pictures = [each[0] for each in FENCE.finditer(before)]
    (removed,) = (each for each in pictures if f"accTitle: {title}" in each)
    path.write_text(before.replace(removed, ""), encoding="utf-8")
    assert missing(copy) == [(page, title)]
    path.write_text(before, encoding="utf-8")
    assert missing(copy) == []
