# SPDX-License-Identifier: BSD-3-Clause
"""Messages to the executor: what it runs, and what it refuses to run."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch

from openreg_aten import _C
from support.programs import Program

DEFINE, CALL, PLACE, DROP = b"\0", b"\1", b"\2", b"\3"
DEFINED, DONE, DESCRIBED, FAILED = 0, 1, 2, 4
TENSOR, INT, BOOL, LIST = b"\1", b"\2", b"\4", b"\x09"
NEW, QUANTIZED, COMPOSED = b"\2", b"\3", b"\5"
NONE = b"\0"
KNOWN = b"\0" + struct.pack("<I", 0)  # the first storage
DEVICE = b"\1"
CPU = int(torch._C.DispatchKey.CPU)
SPARSE_CSR = 2  # the number of its layout


def numbers(values: Any) -> bytes:
    """A list of 64-bit integers."""
    return struct.pack(f"<I{len(values)}q", len(values), *values)


def text(value: str) -> bytes:
    """A string."""
    return struct.pack("<I", len(value)) + value.encode()


def tensor(x: torch.Tensor, **changed: Any) -> bytes:
    """A strided float tensor of the device, with some of its numbers changed."""
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
    """A tensor inside of another one."""
    return tensor(x, **changed)[len(TENSOR) :]


def sparse(indices: bytes, values: torch.Tensor) -> bytes:
    """A sparse float tensor of 3 x 4, with one sparse dimension."""
    head = struct.pack("<Bb", 0, 6) + numbers((3, 4)) + struct.pack("<qB", 1, 0)
    rows = part(values, sizes=(3, 4), strides=(4, 1))
    return TENSOR + COMPOSED + head + indices + rows


def compressed(x: torch.Tensor, rows: int) -> bytes:
    """A sparse float tensor of 3 x 4 with two values, its rows compressed."""
    indices = [part(x, dtype=4, sizes=(n,), strides=(1,)) for n in (rows + 1, 2)]
    values = part(x, sizes=(2,), strides=(1,))
    head = struct.pack("<BBb", 1, SPARSE_CSR, 6) + numbers((3, 4))
    return TENSOR + COMPOSED + head + b"".join(indices) + values


def nested(
    x: torch.Tensor, sizes: list[int], strides: list[int], offsets: list[int]
) -> bytes:
    """A nested float tensor over the elements of ``x``."""
    table = (len(offsets), len(sizes) // len(offsets))
    tables = ((table, sizes), (table, strides), ((len(offsets),), offsets))
    numbered = b"".join(numbers(size) + numbers(values) for size, values in tables)
    buffer = part(x, sizes=(x.numel(),), strides=(1,))
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


def freed_address(x: torch.Tensor) -> int:
    """An address of the device that is not allocated any more."""
    torch.accelerator.synchronize()
    address = torch.empty(1 << 28, dtype=torch.uint8, device=x.device).data_ptr()
    torch.accelerator.empty_cache()
    return address


def call(operator: int, *values: bytes, key: int = CPU, threads: int = 1) -> bytes:
    """A call whose results are to be described."""
    head = CALL + struct.pack("<IHiI", operator, key, threads, len(values))
    return head + b"".join(values) + b"\0"


def define(operator: str) -> int:
    """Gives an operator a number."""
    reply = _C.execute_message(DEFINE + text(operator) + text(""))
    kind, number = struct.unpack("<BI", reply)
    assert kind == DEFINED
    return number


@pytest.fixture(scope="module")
def equal() -> int:
    """The number of ``aten::equal``, which takes two tensors and returns a bool."""
    return define("aten::equal")


@pytest.fixture
def x(device: str) -> torch.Tensor:
    return torch.arange(12.0, device=device).view(3, 4)


def test_operator_keeps_its_number(equal: int) -> None:
    assert define("aten::dot") != equal
    assert define("aten::equal") == equal


def test_call_is_run_from_its_bytes(equal: int, x: torch.Tensor) -> None:
    y = x.t().contiguous()
    torch.accelerator.synchronize()
    for other, expected in ((y.t(), 1), (y.t() * 2, 0)):
        torch.accelerator.synchronize()
        reply = _C.execute_message(call(equal, tensor(x), tensor(other)))
        # The kind of reply, a ticket, no storage and no tensor changed, one value.
        kind, _, storages, tensors, count, tag, value = struct.unpack("<BQIIIBB", reply)
        assert (kind, storages, tensors, count) == (DESCRIBED, 0, 0, 1)
        assert (tag, value) == (BOOL[0], expected)


def test_failure_of_a_kernel_is_a_reply(x: torch.Tensor) -> None:
    reply = _C.execute_message(call(define("aten::dot"), tensor(x), tensor(x)))
    assert reply[0] == FAILED
    assert b"1D tensors expected" in reply


def test_every_beginning_of_a_message_is_refused(equal: int, x: torch.Tensor) -> None:
    message = call(equal, tensor(x), tensor(x))
    for length in range(len(message)):
        with pytest.raises(RuntimeError, match="malformed message"):
            _C.execute_message(message[:length])
    with pytest.raises(RuntimeError, match="malformed message: 1 bytes too many"):
        _C.execute_message(message + b"\0")


WRONG: dict[str, tuple[Callable[[int, torch.Tensor], bytes], str]] = {
    "message": (lambda op, x: b"\x07", "unknown tag 7"),
    "operator": (lambda op, x: call(60000, tensor(x), tensor(x)), "not known"),
    "name": (
        lambda op, x: DEFINE + text("aten::no") + text(""),
        "no operator aten::no",
    ),
    "key": (lambda op, x: call(op, tensor(x), tensor(x), key=3), "dispatch key"),
    "threads": (lambda op, x: call(op, tensor(x), tensor(x), threads=0), "threads"),
    "count": (lambda op, x: call(op, tensor(x)), "number of arguments"),
    "type": (
        lambda op, x: call(op, tensor(x), INT + struct.pack("<q", 1)),
        "argument other of aten::equal is of another type",
    ),
    "value": (lambda op, x: call(op, tensor(x), BOOL + b"\2"), "neither 0 nor 1"),
    "dtype": (lambda op, x: call(op, tensor(x, dtype=99), tensor(x)), "dtype"),
    "flags": (lambda op, x: call(op, tensor(x, flags=128), tensor(x)), "flags"),
    "offset": (lambda op, x: call(op, tensor(x, offset=1), tensor(x)), "storage"),
    "negative": (lambda op, x: call(op, tensor(x, offset=-1), tensor(x)), "storage"),
    "strides": (
        lambda op, x: call(op, tensor(x, strides=(4, 2**62)), tensor(x)),
        "storage",
    ),
    "sizes": (lambda op, x: call(op, tensor(x, sizes=(3,)), tensor(x)), "do not fit"),
    "dimensions": (
        lambda op, x: call(op, tensor(x, sizes=[1] * 65, strides=[1] * 65), tensor(x)),
        "too many dimensions",
    ),
    "nowhere": (lambda op, x: call(op, tensor(x, address=0), tensor(x)), "nowhere"),
    "host": (
        lambda op, x: call(op, tensor(x, address=4096), tensor(x)),
        "not the device's",
    ),
    "end": (
        lambda op, x: call(op, tensor(x, nbytes=2**63), tensor(x)),
        "not the device's",
    ),
    "storage of no bytes": (
        lambda op, x: call(
            op,
            tensor(x, sizes=(0,), strides=(1,), nbytes=0, address=0),
            tensor(x, offset=1 << 40)[: -len(DEVICE) - 17] + KNOWN,
        ),
        "does not lie in its storage",
    ),
    "dtype of a result": (
        lambda op, x: call(
            define("aten::_to_copy"),
            tensor(x),
            INT + struct.pack("<q", 200),
            *[NONE] * 3,
            BOOL + b"\0",
            NONE,
        ),
        "argument dtype of aten::_to_copy is of another type",
    ),
    "file": (
        lambda op, x: DEFINE + text("aten::from_file") + text(""),
        "aten::from_file does not run by messages",
    ),
    "depth": (
        lambda op, x: call(op, (LIST + b"\0" + struct.pack("<I", 1)) * 3 + tensor(x)),
        "nested too deeply",
    ),
    "elements": (
        lambda op, x: call(op, LIST + b"\2" + struct.pack("<I", 1) + tensor(x)),
        "not of its list's type",
    ),
    "long list": (
        lambda op, x: call(op, LIST + b"\2" + struct.pack("<I", 2**31)),
        "too large",
    ),
    "free memory": (
        lambda op, x: call(op, tensor(x, address=freed_address(x)), tensor(x)),
        "in no memory that is allocated",
    ),
    "ticket to drop": (
        lambda op, x: DROP + struct.pack("<Q", 2**60),
        "no results with this ticket",
    ),
    "flags of a list": (
        lambda op, x: call(
            define("aten::native_layer_norm_backward"),
            *[tensor(x)] * 2,
            integers(4),
            *[tensor(x)] * 2,
            *[NONE] * 2,
            LIST + b"\4" + struct.pack("<I", 2) + (BOOL + b"\1") * 2,
        ),
        "argument output_mask of .* is of another type",
    ),
    "kind of components": (
        lambda op, x: call(op, TENSOR + COMPOSED + b"\x09", tensor(x)),
        "unknown tag 9",
    ),
    "components": (lambda op, x: call(op, sparse(part(x), x), tensor(x)), "do not fit"),
    "compressed indices": (
        lambda op, x: call(
            op,
            compressed(x, rows=2),
            tensor(x),
        ),
        "components of a sparse tensor do not fit",
    ),
    "nested sizes": (
        lambda op, x: call(op, nested(x, [2, 4], [4, 1], [5]), tensor(x)),
        "does not lie in its storage",
    ),
    "nested table": (
        lambda op, x: call(op, nested(x, [2], [4, 1], [0]), tensor(x)),
        "a table of a nested tensor has another size",
    ),
    "channels": (
        lambda op, x: call(
            op, quantized(x, channels(1, part(x, sizes=(3,), strides=(1,)))), tensor(x)
        ),
        "a quantizer does not fit its tensor",
    ),
    "axis": (
        lambda op, x: call(
            op,
            quantized(x, channels(2, part(x, sizes=(12,), strides=(1,)))),
            tensor(x),
        ),
        "a quantizer does not fit its tensor",
    ),
    "quantizer of itself": (
        lambda op, x: call(
            op,
            quantized(
                x,
                channels(0, quantized(x, b"\0" + struct.pack("<I", 0))[len(TENSOR) :]),
            ),
            tensor(x),
        ),
        "a quantizer is a part of itself",
    ),
    "dtype of a quantizer": (
        lambda op, x: call(op, quantized(x, whole(13)), tensor(x)),
        "a quantizer does not fit its tensor",
    ),
    "ticket": (
        lambda op, x: PLACE + struct.pack("<Q", 2**60),
        "no results with this ticket",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_message_is_refused_by_name(
    equal: int, x: torch.Tensor, name: str
) -> None:
    write, words = WRONG[name]
    with pytest.raises(RuntimeError, match=f"malformed message: .*{words}"):
        _C.execute_message(write(equal, x))
    reply = _C.execute_message(call(equal, tensor(x), tensor(x)))
    assert reply[-1] == 1  # it goes on


def indices(x: torch.Tensor) -> bytes:
    """The memory of ``x`` as one row of three indices."""
    return part(x, dtype=4, sizes=(1, 3), strides=(3, 1))


# An operator that only reads, its arguments, and the key of its kernel.
READERS: dict[str, tuple[str, Callable[[torch.Tensor], list[bytes]], str]] = {
    "strided": ("aten::equal", lambda x: [tensor(x), tensor(x)], "CPU"),
    "sparse": ("aten::_nnz", lambda x: [sparse(indices(x), x)], "SparseCPU"),
    "compressed": ("aten::_nnz", lambda x: [compressed(x, rows=3)], "SparseCsrCPU"),
    "nested": (
        "aten::_nested_tensor_size",
        lambda x: [nested(x, [2, 4, 1, 4], [4, 1, 4, 1], [0, 8])],
        "NestedTensorCPU",
    ),
    "quantized": (
        "aten::equal",
        lambda x: [quantized(x, whole(12))] * 2,
        "QuantizedCPU",
    ),
    "quantized by channel": (
        "aten::equal",
        lambda x: [
            quantized(x, channels(0, part(x, sizes=(12,), strides=(1,)))),
            tensor(x),
        ],
        "QuantizedCPU",
    ),
}


@pytest.mark.parametrize("kind", READERS)
def test_changed_messages_are_refused_or_answered(x: torch.Tensor, kind: str) -> None:
    operator, arguments, key = READERS[kind]
    message = call(
        define(operator),
        *arguments(x),
        key=int(torch._C.DispatchKey.__members__[key]),
    )
    first = 1 + 4 + 2  # the operator and its key stay
    source = random.Random(0)

    def answers(wrong: bytes) -> bool:
        try:
            reply = _C.execute_message(wrong)
        except RuntimeError as error:
            if "malformed message" in str(error):
                return False
            raise
        if reply[0] == DESCRIBED:
            _C.execute_message(DROP + reply[1:9])
        return reply[0] in (DESCRIBED, FAILED)

    assert answers(message)
    refused = 0
    for _ in range(3000):
        wrong = bytearray(message)
        for _ in range(source.randint(1, 3)):
            wrong[source.randrange(first, len(wrong))] = source.randrange(256)
        if source.random() < 0.1:
            del wrong[source.randrange(first, len(wrong)) :]
        refused += not answers(bytes(wrong))
    assert refused > 1000


TRAINING = """
import torch, openreg_aten
from torch import nn
torch.set_num_threads(1)
openreg_aten._C.init()
name = torch._C._get_privateuse1_backend_name()

def losses(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Flatten(), nn.Linear(288, 4),
    )
    x, y = torch.randn(4, 3, 8, 8), torch.randint(4, (4,))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        yield loss.item()

print(list(losses(name)) == list(losses("cpu")))
x = torch.tensor([0.0, 2, 0, 3], device=name)
print(x.nonzero().flatten().tolist(), torch.unique(x).tolist())
out = torch.empty(0, device=name)
torch.add(x, x, out=out)
print(out.tolist())
try:
    x[torch.tensor([9], device=name)]
except IndexError as error:
    print(error)
counts = openreg_aten._C.message_counts()
print([name for name, sent, unsent in counts if unsent], len(counts) > 20)
"""


def test_loopback_trains_and_answers_by_messages_alone(run_python: Program) -> None:
    result = run_python(
        TRAINING, OPENREG_ISOLATION="loopback", OPENREG_ENQUEUE_BURSTS="0"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "True",
        "[1, 3] [0.0, 2.0, 3.0]",
        "[0.0, 4.0, 0.0, 6.0]",
        "index 9 is out of bounds for dimension 0 with size 4",
        "[] True",
    ]


COMPOSED_TENSORS = """
import warnings
import torch, openreg_aten
warnings.simplefilter("ignore")
openreg_aten._C.init()
name = torch._C._get_privateuse1_backend_name()

def observe(device):
    x = torch.tensor([[0.0, 1, 2], [3, 0, 0]], device=device)
    sparse = x.to_sparse()
    yield (sparse + sparse).to_dense()
    sparse.mul_(3)
    sparse.sparse_resize_((4, 3), 2, 0)
    yield sparse.coalesce().indices(), sparse.is_coalesced(), sparse.to_dense()
    for layout in (torch.sparse_csr, torch.sparse_csc):
        compressed = x.to_sparse(layout=layout)
        yield compressed @ torch.ones(3, 2, device=device)
        yield (compressed * 2).values()
    yield x.to_sparse_bsr((1, 3)).to_dense()
    nested = torch.nested.nested_tensor(
        [torch.ones(2, 3), torch.arange(3.0).view(1, 3)], device=device
    )
    yield (nested * 2).unbind()
    nested.mul_(3)
    yield torch.nested.to_padded_tensor(nested, -1.0)
    yield (torch.nested.nested_tensor([], device=device) * 2).size(0)
    whole = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    yield whole.int_repr(), whole.clone().q_scale()
    scales = torch.tensor([0.1, 0.2], device=device)
    points = torch.tensor([0, 1], device=device)
    by_row = torch.quantize_per_channel(x, scales, points, 0, torch.qint8)
    yield by_row.dequantize(), by_row.q_per_channel_scales(), by_row.int_repr()
    yield x[:, torch.arange(4)[1:3]] # an index of the host, part of a storage
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        yield torch.autograd.forward_ad.unpack_dual(dual.relu() * 2).tangent

def text(values):
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda x: x.cpu().tolist(), list(values)
    )

print(text(observe(name)) == text(observe("cpu")))
counts = openreg_aten._C.message_counts()
print([name for name, sent, unsent in counts if unsent], len(counts) > 15)
"""


def test_sparse_nested_and_quantized_tensors_go_as_messages(
    run_python: Program,
) -> None:
    result = run_python(
        COMPOSED_TENSORS, OPENREG_ISOLATION="loopback", OPENREG_ENQUEUE_BURSTS="0"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["True", "[] True"]


def test_results_that_the_host_drops_do_not_stay(equal: int, x: torch.Tensor) -> None:
    nonzero = define("aten::nonzero")
    for _ in range(5000):  # more than may wait
        reply = _C.execute_message(call(nonzero, tensor(x)))
        assert reply[0] == DESCRIBED
        assert _C.execute_message(DROP + reply[1:9])[0] == DONE


def test_results_without_places_are_limited(x: torch.Tensor) -> None:
    nonzero = define("aten::nonzero")
    tickets = []
    while (reply := _C.execute_message(call(nonzero, tensor(x))))[0] == DESCRIBED:
        tickets.append(reply[1:9])
        assert len(tickets) <= 4096
    assert b"too many results wait for their places" in reply
    for ticket in tickets:
        _C.execute_message(DROP + ticket)
    assert _C.execute_message(call(nonzero, tensor(x)))[0] == DESCRIBED
