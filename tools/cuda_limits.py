# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/cuda_limits.md: what OPENREG_CUDA_LIMITS=1 refuses, and by which source.

The rows come from packages/openreg-aten/csrc/ops/cuda_limits.def:

    python tools/cuda_limits.py          # write the page
    python tools/cuda_limits.py --check  # fail if the page is not that of the table
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

from pages import main
from workspace import ROOT

TABLE = ROOT / "packages" / "openreg-aten" / "csrc" / "ops" / "cuda_limits.def"
PAGE = ROOT / "docs" / "cuda_limits.md"
EXAMPLE = ROOT / "docs" / "examples" / "cuda_limits.py"

_ROW = re.compile(r"^(CUDA_\w+)\((.*)\)$", re.M)
_CELL = re.compile(r'"([^"]*)"|(\w+)')

# ruff: noqa: E501 - lines of a page
TEXT = """\
# What CUDA refuses

Some calls run on the CPU and fail on CUDA. With `OPENREG_CUDA_LIMITS=1` they fail on openreg, too, in CUDA's words. The
[pytest plugin](testing_your_library.md#what-cuda-refuses) sets the variable; elsewhere the default is `0`, and nothing
is checked. It is read when torch is imported.

The rows name operators of `aten`. Without an overload, a row is for all overloads and the in-place variant. An operator
that consists of others, such as `matmul`, `linear`, `einsum` or `cross_entropy`, is refused by its parts. The sources are
in `aten/src/ATen` of PyTorch; they were read at versions near 2.13, and the table has not been run against a GPU. The
dtypes are those that PyTorch's operator database (`dtypes` and `dtypesIfCUDA`) has for the CPU and not for CUDA; a test
compares the two. `tools/cuda_limits.py` writes this page from `csrc/ops/cuda_limits.def` of openreg-aten.

<!-- quote: examples/cuda_limits.py
start-at: # environment
-->

[`docs/examples/cuda_limits.py`](examples/cuda_limits.py)

```python
{example}
```

## Dtypes

{dtypes_count} rows. Where the text is a name in quotation marks, the error is a `NotImplementedError` such as
`"addmm_cuda" not implemented for 'Long'`; other texts are a `RuntimeError`. `all` means that all tensors have to have the
same one of these dtypes, `first` that only the first tensor counts. Wrong sizes are reported first, as on CUDA.

| operator | dtypes | tensors | condition | text | source |
| --- | --- | --- | --- | --- | --- |
{dtypes}

`not empty`: every tensor has elements. `resizes` means that the output has other sizes
than the input.

## Operators without a kernel

CUDA has no kernel for these operators: `NotImplementedError`.

| operator | source |
| --- | --- |
{missing}

## Deterministic algorithms

After `torch.use_deterministic_algorithms(True)` these operators raise a `RuntimeError` with the name and "does not have a
deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. ...", and warn with
`warn_only=True`.

| operator | condition | name | source |
| --- | --- | --- | --- |
{determinism}

`max_unpool1d`, `max_unpool2d`, `max_unpool3d` and `put_` without `accumulate` are refused on every device, so they are no
rows. `F.interpolate` with `bilinear` and `trilinear` uses a different path in this mode, on openreg as on CUDA; the rows are
for calls of the operators. Two operators are refused by CUDA only where nothing in Python has replaced them before, and
are no rows: `replication_pad*_backward`, for which `F.pad` uses a different path on CUDA, and
`max_pool3d_with_indices_backward`. `cumsum` and `kthvalue` are not refused by these versions of PyTorch, although the
documentation of `torch.use_deterministic_algorithms` lists `cumsum`.

## Assertions

A kernel of CUDA that finds an index out of range cannot raise an exception: an assertion fails, the call has long
returned, and the device is unusable to the end of the process. With the limits these errors of the CPU's kernels do the
same: the call succeeds, its results are undefined, and every later call for the device raises
`torch.AcceleratorError`, "device-side assert triggered", with the operator and the CPU's text. Unlike CUDA's,
the device works again after `torch.openreg.reset_device()`, which frees all its memory. With
`OPENREG_LAUNCH_BLOCKING=1` the call raises the error itself, and so does a call with a result whose shape depends on
values, or that warns.

| operator | text of the error | source |
| --- | --- | --- |
{assertions}

## What is not refused

- Sparse and quantized tensors, and float8: the rows are for dense tensors of the other dtypes.
- Code that `torch.compile` has compiled: no operator is called.
- Errors that need CUDA's libraries, such as alignment, or matrices that are too large.
"""


class Row(NamedTuple):
    """A row of the table: its macro and the arguments."""

    kind: str
    cells: tuple[str, ...]


def rows() -> list[Row]:
    """Reads the table."""
    text = TABLE.read_text(encoding="utf-8")
    return [
        Row(kind, tuple(quoted or bare for quoted, bare in _CELL.findall(arguments)))
        for kind, arguments in _ROW.findall(text)
    ]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def page() -> str:
    """Makes the page."""
    table = rows()
    dtypes = [
        _line(
            _code(name),
            ", ".join(_code(each) for each in names.split()),
            operands,
            condition,
            _code(f'"{text}"' if kind == "CUDA_REFUSES_DTYPES" else text),
            _code(source),
        )
        for kind, (name, names, operands, condition, text, source) in (
            row
            for row in table
            if row.kind in ("CUDA_REFUSES_DTYPES", "CUDA_REJECTS_DTYPES")
        )
    ]
    source = EXAMPLE.read_text(encoding="utf-8")
    return TEXT.format(
        example=source[source.index("# environment") :].rstrip("\n"),
        dtypes_count=len(dtypes),
        dtypes="\n".join(dtypes),
        missing="\n".join(
            _line(_code(name), _code(source))
            for kind, (name, source, *_) in table
            if kind == "CUDA_HAS_NO_KERNEL"
        ),
        determinism="\n".join(
            _line(
                _code(row.cells[0]),
                row.cells[1],
                _code(row.cells[2]),
                _code(row.cells[3]),
            )
            for row in table
            if row.kind == "CUDA_IS_NOT_DETERMINISTIC"
        ),
        assertions="\n".join(
            _line(
                _code(row.cells[0]), _code(row.cells[1]) or "any", _code(row.cells[2])
            )
            for row in table
            if row.kind == "CUDA_ASSERTS"
        ),
    )


if __name__ == "__main__":
    sys.exit(main(__doc__ or "", PAGE, page))
