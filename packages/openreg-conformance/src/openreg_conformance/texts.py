# SPDX-License-Identifier: BSD-3-Clause
"""From the text of an error to the mechanism that a backend lacks.

The table is that of the guide's page ``docs/errors.md``; ``tools/error_texts.py`` of
the workspace writes both from the same programs.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources

_ANY_KERNEL = re.compile(r"Could not run '\w+::")


@functools.cache
def _table() -> list[tuple[re.Pattern[str], str, str]]:
    text = resources.files(__package__).joinpath("error_texts.json").read_text("utf-8")
    return [
        # The name of the device stands where that of another one does.
        (re.compile(re.escape(text).replace("openreg", r"\w+"), re.I), mechanism, page)
        for text, mechanism, page in json.loads(text)
    ]


def explain(message: str) -> tuple[str, str] | None:
    """Finds the mechanism without which PyTorch gives a text.

    Returns:
        Its name, and its page in the guide of torch-openreg; None if no text is known.
    """
    for pattern, mechanism, page in _table():
        if pattern.search(message):
            return mechanism, page
    if _ANY_KERNEL.search(message):
        return "fallback", "docs/mechanisms/fallback.md"
    return None
