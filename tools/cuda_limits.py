# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/cuda_limits.md: the calls that OPENREG_CUDA_LIMITS=1 rejects.

The rows come from packages/openreg-aten/csrc/ops/cuda_limits.def:

    python tools/cuda_limits.py          # write the page
    python tools/cuda_limits.py --check  # fail if the page differs from the table
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

Some calls succeed on the CPU and fail on CUDA. This page lists the ones that fail on openreg too, with CUDA's error
messages, when `OPENREG_CUDA_LIMITS=1` is set. It is for authors of tests that run without a GPU. The
[pytest plugin](testing_failures.md#what-cuda-refuses) sets the variable. Elsewhere the default is `0`, which checks
nothing. The variable is read when torch is imported.

<!-- quote: examples/cuda_limits.py
start-at: # environment
-->

[`docs/examples/cuda_limits.py`](examples/cuda_limits.py)

```python
{example}
```

## Dtypes

{dtypes_count} rows. A text in quotation marks is a name; the call raises a `NotImplementedError` such as
`"addmm_cuda" not implemented for 'Long'`. Any other text is the message of a `RuntimeError`. Wrong sizes are reported
first, as on CUDA.

| operator | dtypes | tensors | condition | text | source |
| --- | --- | --- | --- | --- | --- |
{dtypes}

- `all`: all tensors have the same one of these dtypes. `first`: only the first tensor counts.
- `not empty`: every tensor has elements.
- `resizes`: the spatial sizes of the output differ from the input.

## Operators without a kernel

CUDA has no kernel for these operators. The call raises a `NotImplementedError`.

| operator | source |
| --- | --- |
{missing}

## Deterministic algorithms

After `torch.use_deterministic_algorithms(True)`, these operators raise a `RuntimeError`. Its message is the name in the
table, followed by "does not have a deterministic implementation, but you set
'torch.use_deterministic_algorithms(True)'. ...". With `warn_only=True` they warn instead.

| operator | condition | name | source |
| --- | --- | --- | --- |
{determinism}

`not cuDNN's`: cuDNN does not handle the call. It handles bilinear sampling with zero padding and `align_corners=True`
for at most 1024 channels in float16, float32 or float64.

The table leaves out

- `max_unpool1d`, `max_unpool2d`, `max_unpool3d`, and `put_` without `accumulate`: PyTorch refuses them on every device;
- `replication_pad*_backward` and `max_pool3d_with_indices_backward`: CUDA refuses them only if nothing in Python has
  replaced them before (on CUDA, `F.pad` uses a different path);
- `cumsum` and `kthvalue`: these versions of PyTorch accept them, although the documentation of
  `torch.use_deterministic_algorithms` lists `cumsum`.

In this mode `F.interpolate` with `bilinear` and `trilinear` uses a different path, on openreg as on CUDA. The rows
apply to direct calls of the operators.

## Assertions

A CUDA kernel that finds an index out of range cannot raise an exception, because the call has already returned. Instead
an assertion fails, and the device is unusable until the process ends. With the limits, the CPU kernel errors below
behave the same way:

- The call succeeds, and its results are undefined.
- Every later call for the device raises `torch.AcceleratorError`, "device-side assert triggered", with the operator and
  the text of the CPU kernel.
- Unlike on CUDA, `torch.openreg.reset_device()` makes the device usable again. It frees all memory of that device.
- With `OPENREG_LAUNCH_BLOCKING=1` the call itself raises the error. A call that warns, or whose result shape depends on
  values, always does.

| operator | text of the error | source |
| --- | --- | --- |
{assertions}

## What is not refused

- Sparse and quantized tensors, and float8: the rows apply to dense tensors of the other dtypes.
- `norm` of complex32: its behavior on CUDA was not found in the sources.
- Kernels that `torch.compile` generates, because they do not call operators.
- Errors that depend on CUDA's libraries, such as alignment or matrices that are too large.

## Sources of the table

- A row names an operator of `aten`. Without an overload it applies to all overloads and to the in-place variant.
- A composite operator, such as `matmul`, `linear`, `einsum` or `cross_entropy`, is refused by the operators that it
  calls.
- Source files are in `aten/src/ATen` of PyTorch. They were read at versions near 2.13; the table has not been run
  against a GPU.
- The dtypes are the difference between `dtypes` and `dtypesIfCUDA` in PyTorch's operator database. A test compares
  them.
- `tools/cuda_limits.py` writes this page from `csrc/ops/cuda_limits.def` of openreg-aten.
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
    """Returns the whole page."""
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
