# SPDX-License-Identifier: BSD-3-Clause
"""What is changed in the C++ source of a kernel, so that it may refuse values.

A kernel of the CPU keeps a division by zero in a variable that all kernels of the
process share, since it runs alone. Kernels of two streams do not. And an index that is
out of bounds ends the process if a thread of OpenMP finds it, since no exception may
leave a parallel region. Here each iteration keeps its exception, and the kernel throws
the first one at its end.
"""

from __future__ import annotations

import re
from pathlib import Path

from openreg_inductor import _build

# Of the headers and the library: an editable install keeps built files elsewhere.
FOLDER = Path(_build.__file__).parent

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
# PyTorch's functions write to this name. Here it is null, so that they throw.
_DIVISION_PREFIX = (
    "#define inductor_cpu_integer_div_error_flag openreg_no_flag\n"
    f"{_PREFIX}\n{_FAILURES}{_DIVIDE}"
)
# For a source with several kernels, before each of them.
HEADERS = (
    "#ifndef OPENREG_INDUCTOR_KERNELS\n#define OPENREG_INDUCTOR_KERNELS\n"
    f"{_DIVISION_PREFIX}#endif\n"
)


_NOT_IN_TEXT = re.compile(r'^#(?:pragma once|include "[^"]+")\n', re.MULTILINE)


def headers(*names: str) -> str:
    """Reads headers of this package, for a source that may get them twice.

    Args:
        names: In the order in which they include each other.
    """
    parts = []
    for name in names:
        text = (FOLDER / name).read_text(encoding="utf-8")
        guard = f"OPENREG_INDUCTOR_{name.upper().replace('.', '_')}"
        text = _NOT_IN_TEXT.sub("", text)
        parts.append(f"#ifndef {guard}\n#define {guard}\n{text}#endif\n")
    return "\n".join(parts)


def divides(source: str) -> bool:
    """Tells whether a kernel divides integers, perhaps by zero."""
    return _DIVIDES.search(source) is not None


def may_raise(source: str) -> bool:
    """Tells whether a kernel may refuse the values that it gets."""
    return divides(source) or _CHECKS.search(source) is not None


def rewrite(source: str) -> str:
    """Gives the only kernel of a source its own way to refuse values."""
    body = rewrite_body(source)
    if divides(source):
        return body.replace(_PREFIX, _DIVISION_PREFIX, 1)
    if not may_raise(source) or _BEGIN not in source:
        return body
    return body.replace(_PREFIX, f"{_PREFIX}\n{_FAILURES}", 1)


def rewrite_body(source: str) -> str:
    """Gives a kernel its own way to refuse values, in a source with ``HEADERS``."""
    source = _FLAG.sub("", source)
    if not may_raise(source) or _BEGIN not in source:
        return source.replace(_BEGIN, "").replace(_END, "")
    source = source.replace(_BEGIN, "openreg::inductor::Failures openreg_failures;")
    source = source.replace(_END, "openreg_failures.rethrow();")
    return _guard_loops(source)


def _guard_loops(source: str) -> str:
    """Catches the exceptions within each iteration that a thread of OpenMP may run."""
    lines: list[str] = []
    braces = 0  # to come before the body of a loop
    ends: list[str] = []  # of the bodies that the line is in
    for line in source.splitlines():
        # One that throws must not be within a loop that is declared to be vectors.
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
