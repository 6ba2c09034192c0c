# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/stubs.md: every DispatchStub that a PrivateUse1 backend can register.

The list comes from the headers and the library of the installed torch:

    python tools/stubs.py          # write the page
    python tools/stubs.py --check  # fail if the page is not current for this torch
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

import torch
from pages import main

PAGE = Path(__file__).parents[1] / "docs" / "stubs.md"
TORCH = Path(torch.__file__).parent
NATIVE = TORCH / "include" / "ATen" / "native"

DECLARATION = re.compile(r"^\s*DECLARE_DISPATCH\(.*?,\s*(\w+)\s*\);?\s*$", re.M | re.S)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
NAMESPACE = re.compile(r"namespace at::native::(\w+)|namespace (cpublas) \{")

# ruff: noqa: E501 - lines of a page
TEXT = """\
# DispatchStubs

This page lists every DispatchStub that a PrivateUse1 backend can register. Backend authors use it to replace the inner
function of a PyTorch operator and to keep the rest of the operator.

A DispatchStub is a table of functions inside a PyTorch operator, with one entry per device type. The operator does the
work that all devices share, such as checking arguments and building an iterator. It then calls the function of the
device. `stub.set_privateuse1_dispatch_ptr(&function)` sets the entry of a PrivateUse1 backend, also from another
library. [DispatchStub](operators.md#dispatchstub) has an example.

A stub has no effect until an operator that calls it runs for the device. Few operators with a composite kernel call a
stub, so a backend usually registers the operator as well. `_fused_sdp_choice_stub` is an exception. `openreg-aten` sets
the entries of `_fused_sdp_choice_stub`, `abs_stub`, and all stubs in `quantized/AffineQuantizer.h`; see
[DispatchStub](registering.md#dispatchstub).

The table lists {count} stubs in {headers} headers of torch {version}. `tools/stubs.py` generates this page.

| header in `ATen/native` | stubs |
| --- | --- |
{rows}
"""

HIDDEN = """
{count} more are declared in these headers, but `libtorch_cpu` does not export them. A backend that registers one of them
cannot be loaded: {names}.
"""


def declared() -> dict[str, list[tuple[str, str]]]:
    """Lists the declarations by header: namespace below ``at::native``, and name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for header in sorted(NATIVE.rglob("*.h")):
        text = COMMENT.sub("", header.read_text(encoding="utf-8"))
        space = NAMESPACE.search(text)
        scope = (space[1] or space[2]) if space else ""
        if stubs := [
            (scope, match[1])
            for match in DECLARATION.finditer(text)
            if header.name != "DispatchStub.h"
        ]:
            found[header.relative_to(NATIVE).as_posix()] = stubs
    return found


def symbol(scope: str, name: str) -> str:
    """Returns the mangled name of the variable ``at::native::[scope::]name``."""
    parts = ["at", "native", *([scope] if scope else []), name]
    return "_ZN" + "".join(f"{len(part)}{part}" for part in parts) + "E"


def page() -> str:
    """Returns the whole page."""
    library = ctypes.CDLL(str(next((TORCH / "lib").glob("libtorch_cpu.*"))))
    rows: list[str] = []
    hidden: list[str] = []
    count = 0
    for header, stubs in declared().items():
        exported: list[str] = []
        for scope, name in stubs:
            full = f"{scope}::{name}" if scope else name
            usable = hasattr(library, symbol(scope, name))
            (exported if usable else hidden).append(f"`{full}`")
        if exported:
            rows.append(f"| `{header}` | {', '.join(exported)} |")
            count += len(exported)
    text = TEXT.format(
        count=count,
        headers=len(rows),
        version=torch.__version__.split("+")[0],
        rows="\n".join(rows),
    )
    if hidden:
        text += HIDDEN.format(count=len(hidden), names=", ".join(hidden))
    return text


if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], PAGE, page))
