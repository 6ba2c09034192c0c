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
# What PyTorch says in some places only, which no program of the guide comes to.
_MORE = [("does not have a corresponding module registered as", "device_module")]
# Kernels for tensors of another kind have a key of their own.
_KEYS = {
    "SparseCsrPrivateUse1": "sparse_compressed",
    "SparsePrivateUse1": "sparse",
    "QuantizedPrivateUse1": "quantized",
    "NestedTensorPrivateUse1": "nested",
}


@functools.cache
def _table() -> list[tuple[re.Pattern[str], str, str]]:
    text = resources.files(__package__).joinpath("error_texts.json").read_text("utf-8")
    return [
        # The name of the device stands where that of another one does.
        (re.compile(re.escape(text).replace("openreg", r"\w+"), re.I), mechanism, page)
        for text, mechanism, page in [
            *json.loads(text),
            *((text, name, f"docs/mechanisms/{name}.md") for text, name in _MORE),
        ]
    ]


def explain(message: str) -> tuple[str, str] | None:
    """Finds the mechanism without which PyTorch gives a text.

    Returns:
        Its name, and its page in the guide of torch-openreg; None if no text is known.
    """
    kernel = _ANY_KERNEL.search(message)
    for key, mechanism in _KEYS.items() if kernel else ():
        if f"'{key}'" in message:
            return mechanism, f"docs/mechanisms/{mechanism}.md"
    for pattern, mechanism, page in _table():
        # A row about a key says nothing of the operator that stands in it.
        if pattern.search(message) and "with arguments" not in pattern.pattern:
            return mechanism, page
    if kernel:
        return "fallback", "docs/mechanisms/fallback.md"
    return None
