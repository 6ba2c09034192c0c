# SPDX-License-Identifier: BSD-3-Clause
"""The class, the operations and the bytes of each operator of PyTorch."""

from __future__ import annotations

from openreg_predict._work import Call, Work, distinct_bytes


def classify(call: Call) -> Work:
    """Returns the work of a call."""
    read, written = distinct_bytes(call.tensors()), distinct_bytes(call.results)
    dtype = list(call.results) or call.tensors()
    return Work(
        call.name, "unknown", dtype[0].dtype if dtype else "f32", 0.0, read, written
    )
