# SPDX-License-Identifier: BSD-3-Clause
"""Valid and invalid messages to the executor and replies, written in Python."""

from __future__ import annotations

import struct
from typing import Any

import torch

GENERATOR, CALL, PLACE, DROP = b"\0", b"\1", b"\2", b"\3"
DONE, DESCRIBED, FAILED = 1, 2, 4
TENSOR, INT, BOOL, LIST = b"\1", b"\2", b"\4", b"\x09"
NEW, QUANTIZED, COMPOSED = b"\2", b"\3", b"\5"
NONE = b"\0"
KNOWN = b"\0" + struct.pack("<I", 0)  # the first storage, or tensor
DEVICE = b"\1"
ZERO, NOWHERE = b"\4", b"\4"
KEYS = {name: int(key) for name, key in torch._C.DispatchKey.__members__.items()}
CPU = KEYS["CPU"]
SPARSE = KEYS["SparseCPU"]
SPARSE_CSR, SPARSE_BSR = 2, 5  # the numbers of their layouts


def numbers(values: Any) -> bytes:
    """A list of 64-bit integers."""
    return struct.pack(f"<I{len(values)}q", len(values), *values)


def text(value: str) -> bytes:
    """A string."""
    return struct.pack("<I", len(value)) + value.encode()


def tensor(x: torch.Tensor, **changed: Any) -> bytes:
    """A strided float device tensor, with some fields changed."""
    storage = x.untyped_storage()
    facts: dict[str, Any] = {
        "flags": 0,
        "dtype": 6,
        "sizes": x.shape,
        "strides": x.stride(),
        "offset": x.storage_offset(),
        "address": storage.data_ptr(),
        "nbytes": storage.nbytes(),
    } | changed
    return (
        TENSOR
        + NEW
        + struct.pack("<Bb", facts["flags"], facts["dtype"])
        + numbers(facts["sizes"])
        + numbers(facts["strides"])
        + struct.pack("<q", facts["offset"])
        + DEVICE
        + struct.pack("<QQB", facts["address"], facts["nbytes"], 1)
    )


def part(x: torch.Tensor, **changed: Any) -> bytes:
    """A tensor inside another one."""
    return tensor(x, **changed)[len(TENSOR) :]


def without_data(sizes: tuple[int, ...], offset: int = 0) -> bytes:
    """A zero tensor (ZeroTensor) of floats, without data."""
    head = TENSOR + ZERO + struct.pack("<Bb", 0, 6) + numbers(sizes)
    place = struct.pack("<q", offset) + NOWHERE + struct.pack("<Q", 2**62)
    return head + numbers((1,) * len(sizes)) + place


def sparse(
    indices: bytes,
    values: torch.Tensor,
    sizes: tuple[int, ...] = (3, 4),
    rows: bytes | None = None,
    dtype: int = 6,
) -> bytes:
    """A sparse float tensor of 3 x 4, with one sparse dimension."""
    head = struct.pack("<Bb", 0, dtype) + numbers(sizes) + struct.pack("<qB", 1, 0)
    if rows is None:
        rows = part(values, sizes=(3, 4), strides=(4, 1))
    return TENSOR + COMPOSED + head + indices + rows


def compressed(
    x: torch.Tensor,
    rows: int,
    layout: int = SPARSE_CSR,
    sizes: tuple[int, ...] = (3, 4),
    values: tuple[int, ...] = (2,),
    batch: tuple[int, ...] = (),
    stride: int = 1,
) -> bytes:
    """A sparse float tensor of 3 x 4 with two values, its rows compressed."""
    indices = [
        part(x, dtype=4, sizes=(*batch, n), strides=(*[0] * len(batch), stride))
        for n in (rows + 1, 2)
    ]
    strides = torch.empty(values, device="meta").stride()
    head = struct.pack("<BBb", 1, layout, 6) + numbers(sizes)
    components = b"".join(indices) + part(x, sizes=values, strides=strides)
    return TENSOR + COMPOSED + head + components


def nested(
    x: torch.Tensor,
    rows: list[int],
    steps: list[int],
    offsets: list[int],
    table: tuple[int, ...] | None = None,
    **changed: Any,
) -> bytes:
    """A nested float tensor of these sizes and strides over the elements of ``x``."""
    table = table or (len(offsets), len(rows) // len(offsets))
    tables = ((table, rows), (table, steps), ((len(offsets),), offsets))
    numbered = b"".join(numbers(size) + numbers(values) for size, values in tables)
    buffer = part(x, **{"sizes": (x.numel(),), "strides": (1,)} | changed)
    return TENSOR + COMPOSED + b"\2" + numbered + buffer


def whole(dtype: int) -> bytes:
    """A quantizer with one scale and one zero point."""
    return struct.pack("<Bbdq", 1, dtype, 0.5, 0)


def channels(axis: int, scales: bytes) -> bytes:
    """A quantizer with a scale and a zero point for each index of a dimension."""
    return struct.pack("<Bbq", 2, 12, axis) + scales * 2


def quantized(x: torch.Tensor, quantizer: bytes) -> bytes:
    """The memory of ``x`` as qint8."""
    strided = part(x, dtype=12, sizes=(12, 4), strides=(4, 1))
    return TENSOR + QUANTIZED + strided[len(NEW) :] + quantizer


def integers(*values: int) -> bytes:
    """A list of integers."""
    head = LIST + b"\2" + struct.pack("<I", len(values))
    return head + b"".join(INT + struct.pack("<q", value) for value in values)


# The default dtype, two settings of deterministic algorithms, flags, three precisions
# of float32, and the engine of quantized operators.
CONTEXT = struct.pack("<bBBB3BB", 6, 0, 0, 1, 0, 0, 0, torch._C._get_qengine())


def call(operator: str, *values: bytes, key: int = CPU, threads: int = 1) -> bytes:
    """A call that requests a description of its results."""
    head = CALL + text(operator) + text("") + struct.pack("<Hi", key, threads)
    return head + CONTEXT + struct.pack("<I", len(values)) + b"".join(values) + b"\0"


def indices(x: torch.Tensor) -> bytes:
    """The memory of ``x`` as a row of three indices."""
    return part(x, dtype=4, sizes=(1, 3), strides=(3, 1))


COUNT = struct.pack("<I", 1)
NO = struct.pack("<I", 0)
FRESH = b"\3"


def replaced(number: int, nbytes: int) -> bytes:
    """A reply that changes the buffer of an argument's storage."""
    return COUNT + struct.pack("<IQ", number, nbytes) + NO


def changed(number: int, x: bytes) -> bytes:
    """A reply that changes the metadata of an argument."""
    return NO + COUNT + struct.pack("<I", number) + x


def made(*sizes: int, dtype: int = 4, nbytes: int = 96) -> bytes:
    """A new contiguous tensor, 64-bit integers unless another dtype is given."""
    head = struct.pack("<Bb", 0, dtype) + numbers(sizes)
    strides = numbers(torch.empty(sizes, device="meta").stride())
    return head + strides + struct.pack("<q", 0) + FRESH + struct.pack("<Q", nbytes)


def known(number: int) -> bytes:
    """A tensor of the call."""
    return TENSOR + b"\1" + struct.pack("<I", number)
