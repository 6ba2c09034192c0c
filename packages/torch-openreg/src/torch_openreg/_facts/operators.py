# SPDX-License-Identifier: BSD-3-Clause
"""Operators that wait for a device, where PyTorch's tags do not tell."""

from __future__ import annotations

TO_COPY = "aten::_to_copy"
COPY_FROM = "aten::_copy_from"
REPEAT_INTERLEAVE = "aten::repeat_interleave"

COPIES = {"aten::copy_", "aten::copy", TO_COPY, COPY_FROM}
# They read a value without a tag of PyTorch's.
# Arguments that operators only write, although their schemas do not say so.
OUTPUTS = {
    "c10d::_allgather_base_": "output_tensor",
    "c10d::_reduce_scatter_base_": "output_tensor",
    "c10d::allgather_": "output_tensors",
    "c10d::allgather_coalesced_": "output_lists",
    "c10d::allgather_into_tensor_coalesced_": "outputs",
    "c10d::alltoall_": "output_tensors",
    "c10d::alltoall_base_": "output",
    "c10d::gather_": "output_tensors",
    "c10d::recv_": "tensors",
    "c10d::recv_any_source_": "tensors",
    "c10d::reduce_scatter_": "output_tensors",
    "c10d::reduce_scatter_tensor_coalesced_": "outputs",
    "c10d::scatter_": "output_tensors",
    "fsdp::all_gather_copy_in": "all_gather_output",
}
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
