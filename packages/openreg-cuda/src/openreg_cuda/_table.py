# SPDX-License-Identifier: BSD-3-Clause
"""Which names of ``torch.cuda`` are served, constant or refused."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib.resources import files
from typing import NamedTuple


class Name(NamedTuple):
    """A public name of a module.

    Attributes:
        module: The module, such as ``torch.cuda.memory``.
        name: The name in it.
        kind: ``served``, ``constant`` or ``refused``.
        text: The counterpart in ``torch.openreg`` if there is one, the constant, or the
            reason of the refusal.
    """

    module: str
    name: str
    kind: str
    text: str


def names() -> list[Name]:
    """Returns the names of ``torch.cuda`` and of its modules."""
    text = files("openreg_cuda").joinpath("_table.toml").read_text(encoding="utf-8")
    return [
        Name(module, name, kind, text)
        for module, kinds in tomllib.loads(text).items()
        for kind, rows in kinds.items()
        for name, text in rows.items()
    ]


def counts() -> dict[str, int]:
    """Returns how many names there are of each kind."""
    return dict(Counter(each.kind for each in names()))
