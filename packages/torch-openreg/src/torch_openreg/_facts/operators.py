# SPDX-License-Identifier: BSD-3-Clause
"""Operators that wait for a device, where PyTorch's tags do not tell."""

from __future__ import annotations

TO_COPY = "aten::_to_copy"
COPY_FROM = "aten::_copy_from"
REPEAT_INTERLEAVE = "aten::repeat_interleave"

COPIES = {"aten::copy_", "aten::copy", TO_COPY, COPY_FROM}
# They read a value without a tag of PyTorch's.
UNTAGGED = {"aten::_linalg_check_errors"}
# Their tag holds only where an index is a mask.
INDEXED = {
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
    "aten::_unsafe_index_put",
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
}
