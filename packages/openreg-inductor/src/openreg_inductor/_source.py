# SPDX-License-Identifier: BSD-3-Clause
"""Changes the C++ source of a kernel so that it can raise errors.

A CPU kernel notes a division by zero in a variable that all kernels of the process
share, which fails if kernels of two streams run at the same time. An index out of
bounds ends the process if an OpenMP thread finds it, because exceptions must not leave
a parallel region. The changed source keeps the exception of each iteration and throws
the first one at the end of the kernel.
"""

from __future__ import annotations

import re
from pathlib import Path

import openreg_inductor

# The folder of the headers and the library, which were built for the installed torch.
FOLDER = Path(openreg_inductor.__path__[-1])

_PREFIX = "#include <torch/csrc/inductor/cpp_prefix.h>"
_BEGIN = "std::atomic<int> inductor_cpu_integer_div_error{0};"
_FLAG = re.compile(r"^\s*inductor_cpu_integer_div_error_flag = .*;\n", re.MULTILINE)
_END = "inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);"
_DIVIDES = re.compile(
    r"\b(?:floor_divide_integral|truncate_divide_integral|remainder_integral|mod)\("
)
_CHECKS = re.compile(r"\bTORCH_CHECK\(")
_LOOP = re.compile(r"#pragma omp for\b(?:.*collapse\((\d+)\))?")
_FAILURES, _DIVIDE = (
    (FOLDER / name).read_text(encoding="utf-8") for name in ("failures.h", "divide.h")
)
# PyTorch's functions write to this name. It is null here, so that they throw.
_DIVISION_PREFIX = (
    "#define inductor_cpu_integer_div_error_flag openreg_no_flag\n"
    f"{_PREFIX}\n{_FAILURES}{_DIVIDE}"
)
# Precedes each kernel in a source with several kernels.
HEADERS = (
    "#ifndef OPENREG_INDUCTOR_KERNELS\n#define OPENREG_INDUCTOR_KERNELS\n"
    f"{_DIVISION_PREFIX}#endif\n"
)


_NOT_IN_TEXT = re.compile(r'^#(?:pragma once|include "[^"]+")\n', re.MULTILINE)


def headers(*names: str) -> str:
    """Reads headers of this package, guarded against double inclusion.

    Args:
        names: The headers, ordered by their includes.
    """
    parts = []
    for name in names:
        text = (FOLDER / name).read_text(encoding="utf-8")
        guard = f"OPENREG_INDUCTOR_{name.upper().replace('.', '_')}"
        text = _NOT_IN_TEXT.sub("", text)
        parts.append(f"#ifndef {guard}\n#define {guard}\n{text}#endif\n")
    return "\n".join(parts)


def divides(source: str) -> bool:
    """Returns whether a kernel divides integers, perhaps by zero."""
    return _DIVIDES.search(source) is not None


def may_raise(source: str) -> bool:
    """Returns whether a kernel may refuse its input values."""
    return divides(source) or _CHECKS.search(source) is not None


def rewrite(source: str) -> str:
    """Adds error handling to a source with a single kernel."""
    body = rewrite_body(source)
    if divides(source):
        return body.replace(_PREFIX, _DIVISION_PREFIX, 1)
    if not may_raise(source) or _BEGIN not in source:
        return body
    return body.replace(_PREFIX, f"{_PREFIX}\n{_FAILURES}", 1)


def rewrite_body(source: str) -> str:
    """Adds error handling to a kernel, in a source with ``HEADERS``."""
    source = _FLAG.sub("", source)
    if not may_raise(source) or _BEGIN not in source:
        return source.replace(_BEGIN, "").replace(_END, "")
    source = source.replace(_BEGIN, "openreg::inductor::Failures openreg_failures;")
    source = source.replace(_END, "openreg_failures.rethrow();")
    return _guard_loops(source)


def _guard_loops(source: str) -> str:
    """Catches exceptions within each iteration that an OpenMP thread may run."""
    lines: list[str] = []
    braces = 0  # expected before the body of a loop
    ends: list[str] = []  # of the bodies around the line
    for line in source.splitlines():
        # A throwing iteration must not be in a SIMD loop.
        text = line.strip()
        if text.startswith("#pragma omp simd"):
            continue
        loop = _LOOP.match(text)
        if loop is not None:
            line = re.sub(r"\bsimd simdlen\(\d+\) ?", "", line)
            braces = int(loop[1] or 1)
        elif text == "#pragma omp single":
            braces = 1
        if ends and line.rstrip() == ends[-1]:
            ends.pop()
            lines.append("} catch (...) { openreg_failures.keep(); }")
        lines.append(line)
        if braces and text == "{":
            braces -= 1
            if not braces:
                ends.append(line.rstrip().replace("{", "}"))
                lines.append("try {")
    return "\n".join(lines) + "\n"
