# SPDX-License-Identifier: BSD-3-Clause
"""Maps the text of an error to the mechanism that a backend lacks.

The table is that of the guide's page ``docs/errors.md``; ``tools/error_texts.py`` of
the workspace writes both from the same programs.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources

_ANY_KERNEL = re.compile(r"Could not run '\w+::")
# Texts of PyTorch that no program of the guide reproduces.
_MORE = [("does not have a corresponding module registered as", "device_module")]
# Kernels for other kinds of tensors have separate keys.
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
        # The device name replaces the name of another device.
        (re.compile(re.escape(text).replace("openreg", r"\w+"), re.I), mechanism, page)
        for text, mechanism, page in [
            *json.loads(text),
            *((text, name, f"docs/mechanisms/{name}.md") for text, name in _MORE),
        ]
    ]


def explain(message: str) -> tuple[str, str] | None:
    """Finds the mechanism whose absence causes an error text.

    Returns:
        Its name, and its page in the guide of torch-openreg; None for an unknown text.
    """
    kernel = _ANY_KERNEL.search(message)
    for key, mechanism in _KEYS.items() if kernel else ():
        if f"'{key}'" in message:
            return mechanism, f"docs/mechanisms/{mechanism}.md"
    for pattern, mechanism, page in _table():
        # A row about a dispatch key applies to any operator.
        if pattern.search(message) and "with arguments" not in pattern.pattern:
            return mechanism, page
    if kernel:
        return "fallback", "docs/mechanisms/fallback.md"
    return None
