# SPDX-License-Identifier: BSD-3-Clause
"""Messages to the executor: accepted and refused calls."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable

import pytest
import torch

from openreg_aten import _C
from support.isolation import marked
from support.messages import (
    BOOL,
    COMPOSED,
    COUNT,
    CPU,
    DESCRIBED,
    DEVICE,
    DONE,
    DROP,
    FAILED,
    FRESH,
    INT,
    KNOWN,
    LIST,
    NEW,
    NO,
    NONE,
    PLACE,
    SPARSE,
    SPARSE_BSR,
    TENSOR,
    ZERO,
    call,
    changed,
    channels,
    compressed,
    indices,
    integers,
    known,
    made,
    nested,
    part,
    quantized,
    replaced,
    sparse,
    tensor,
    whole,
    without_data,
)
from support.programs import ROOT, Program, run


def freed_address(x: torch.Tensor) -> int:
    """An address of freed device memory."""
    torch.accelerator.synchronize()
    address = torch.empty(1 << 28, dtype=torch.uint8, device=x.device).data_ptr()
    torch.accelerator.empty_cache()
    return address


@pytest.fixture
def equal() -> str:
    """An operator that takes two tensors and returns a bool."""
    return "aten::equal"


@pytest.fixture
def x(device: str) -> torch.Tensor:
    return torch.arange(12.0, device=device).view(3, 4)


def test_call_is_run_from_its_bytes(equal: str, x: torch.Tensor) -> None:
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
    reply = _C.execute_message(call("aten::dot", tensor(x), tensor(x)))
    assert reply[0] == FAILED
    assert b"1D tensors expected" in reply


def test_every_beginning_of_a_message_is_refused(equal: str, x: torch.Tensor) -> None:
    message = call(equal, tensor(x), tensor(x))
    for length in range(len(message)):
        with pytest.raises(RuntimeError, match="malformed message"):
            _C.execute_message(message[:length])
    with pytest.raises(RuntimeError, match="the message has 1 unexpected bytes"):
        _C.execute_message(message + b"\0")


WRONG: dict[str, tuple[Callable[[str, torch.Tensor], bytes], str]] = {
    "message": (lambda op, x: b"\x07", "unknown tag 7"),
    "key": (lambda op, x: call(op, tensor(x), tensor(x), key=3), "dispatch key"),
    "threads": (lambda op, x: call(op, tensor(x), tensor(x), threads=0), "threads"),
    "count": (
        lambda op, x: call(op, tensor(x)),
        "aten::equal: expected 2 arguments, but the message has 1",
    ),
    "type": (
        lambda op, x: call(op, tensor(x), INT + struct.pack("<q", 1)),
        "argument other of aten::equal has an unexpected type",
    ),
    "value": (lambda op, x: call(op, tensor(x), BOOL + b"\2"), "expected a flag"),
    "dtype": (lambda op, x: call(op, tensor(x, dtype=99), tensor(x)), "dtype"),
    "flags": (lambda op, x: call(op, tensor(x, flags=128), tensor(x)), "flags"),
    "conjugate": (
        lambda op, x: call(op, tensor(x, flags=1), tensor(x)),
        "real dtype has the conjugate bit",
    ),
    "offset": (lambda op, x: call(op, tensor(x, offset=1), tensor(x)), "storage"),
    "negative": (lambda op, x: call(op, tensor(x, offset=-1), tensor(x)), "storage"),
    "strides": (
        lambda op, x: call(op, tensor(x, strides=(4, 2**62)), tensor(x)),
        "storage",
    ),
    "sizes": (lambda op, x: call(op, tensor(x, sizes=(3,)), tensor(x)), "sizes and"),
    "dimensions": (
        lambda op, x: call(
            op, tensor(x, sizes=[1] * 4097, strides=[1] * 4097), tensor(x)
        ),
        "too many dimensions",
    ),
    "nowhere": (lambda op, x: call(op, tensor(x, address=0), tensor(x)), "no address"),
    "host": (
        lambda op, x: call(op, tensor(x, address=4096), tensor(x)),
        "outside device memory",
    ),
    "end": (
        lambda op, x: call(op, tensor(x, nbytes=2**63), tensor(x)),
        "outside device memory",
    ),
    "storage of no bytes": (
        lambda op, x: call(
            op,
            tensor(x, sizes=(0,), strides=(1,), nbytes=0, address=0),
            tensor(x, offset=1 << 40)[: -len(DEVICE) - 17] + KNOWN,
        ),
        "past the end of its storage",
    ),
    "dtype of a result": (
        lambda op, x: call(
            "aten::_to_copy",
            tensor(x),
            INT + struct.pack("<q", 200),
            *[NONE] * 3,
            BOOL + b"\0",
            NONE,
        ),
        "argument dtype of aten::_to_copy has an unexpected type",
    ),
    "file": (
        lambda op, x: call("aten::from_file"),
        "aten::from_file cannot be called by a message",
    ),
    "depth": (
        lambda op, x: call(op, (LIST + b"\0" + struct.pack("<I", 1)) * 3 + tensor(x)),
        "nested too deeply",
    ),
    "elements": (
        lambda op, x: call(op, LIST + b"\2" + struct.pack("<I", 1) + tensor(x)),
        "does not have the type of its list",
    ),
    "long list": (
        lambda op, x: call(op, LIST + b"\2" + struct.pack("<I", 2**31)),
        "too large",
    ),
    "free memory": (
        lambda op, x: call(op, tensor(x, address=freed_address(x)), tensor(x)),
        "not in allocated device memory",
    ),
    "ticket to drop": (
        lambda op, x: DROP + struct.pack("<Q", 2**60),
        "no results are kept for this ticket",
    ),
    "flags of a list": (
        lambda op, x: call(
            "aten::native_layer_norm_backward",
            *[tensor(x)] * 2,
            integers(4),
            *[tensor(x)] * 2,
            *[NONE] * 2,
            LIST + b"\4" + struct.pack("<I", 2) + (BOOL + b"\1") * 2,
        ),
        "argument output_mask of .* has an unexpected type",
    ),
    "kind of components": (
        lambda op, x: call(op, TENSOR + COMPOSED + b"\x09", tensor(x)),
        "unknown tag 9",
    ),
    "components": (lambda op, x: call(op, sparse(part(x), x), tensor(x)), "shapes"),
    "compressed indices": (
        lambda op, x: call(
            op,
            compressed(x, rows=2),
            tensor(x),
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "nested sizes": (
        lambda op, x: call(op, nested(x, [2, 4], [4, 1], [5]), tensor(x)),
        "past the end of its storage",
    ),
    "nested table": (
        lambda op, x: call(op, nested(x, [2], [4, 1], [0]), tensor(x)),
        "a table of a nested tensor has an unexpected shape",
    ),
    "channels": (
        lambda op, x: call(
            op, quantized(x, channels(1, part(x, sizes=(3,), strides=(1,)))), tensor(x)
        ),
        "a quantizer is inconsistent with its tensor",
    ),
    "axis": (
        lambda op, x: call(
            op,
            quantized(x, channels(2, part(x, sizes=(12,), strides=(1,)))),
            tensor(x),
        ),
        "a quantizer is inconsistent with its tensor",
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
        "a quantizer contains itself",
    ),
    "dtype of a quantizer": (
        lambda op, x: call(op, quantized(x, whole(13)), tensor(x)),
        "a quantizer is inconsistent with its tensor",
    ),
    "zeros without data": (
        lambda op, x: call(op, without_data((12,), offset=2**40), tensor(x)),
        "aten::equal does not accept tensors without data",
    ),
    "zeros that are there": (
        lambda op, x: call(
            "aten::clone",
            TENSOR + ZERO + tensor(x)[len(TENSOR + NEW) :],
            NONE,
        ),
        "a storage has no address and no data",
    ),
    "kernel for a key": (
        lambda op, x: call("aten::_nnz", tensor(x)),
        "aten::_nnz has no kernel for this dispatch key",
    ),
    "arguments for a key": (
        lambda op, x: call("aten::_nnz", tensor(x), key=SPARSE),
        "aten::_nnz has arguments with a different dispatch key",
    ),
    "composed of others": (
        lambda op, x: call("aten::einsum"),
        "aten::einsum cannot be called by a message",
    ),
    "memory that is not checked": (
        lambda op, x: call("inductor::_reinterpret_tensor"),
        "inductor::_reinterpret_tensor cannot be called by a message",
    ),
    "print": (
        lambda op, x: call("aten::_print"),
        "aten::_print cannot be called by a message",
    ),
    "nested extent": (
        lambda op, x: call(
            op,
            # All elements are the same one, according to the buffer's strides.
            nested(x, [4, 16], [16, 1], [0], sizes=(64,), strides=(0,)),
            tensor(x),
        ),
        "component of a tensor has an unexpected dtype",
    ),
    "nested table without offsets": (
        lambda op, x: call(op, nested(x, [], [], [], table=(5, 0)), tensor(x)),
        "the sizes of a nested tensor are inconsistent",
    ),
    "nested table of no rows": (
        lambda op, x: call(op, nested(x, [], [], [], table=(0, 5)), tensor(x)),
        "the sizes of a nested tensor are inconsistent",
    ),
    "strides of channels": (
        lambda op, x: call(
            op,
            quantized(x, channels(0, part(x, sizes=(12,), strides=(0,)))),
            tensor(x),
        ),
        "a quantizer is inconsistent with its tensor",
    ),
    "channels without data": (
        lambda op, x: call(
            op,
            quantized(x, channels(0, without_data((12,))[len(TENSOR) :])),
            tensor(x),
        ),
        "a quantizer is inconsistent with its tensor",
    ),
    "strides of compressed indices": (
        lambda op, x: call(op, compressed(x, rows=3, stride=0), tensor(x)),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "batch of values": (
        lambda op, x: call(
            op,
            compressed(x, rows=2, sizes=(2, 2, 4), batch=(2,), values=(1, 2)),
            tensor(x),
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "batch of indices": (
        lambda op, x: call(
            op,
            compressed(x, rows=3, sizes=(2, 3, 4), batch=(1,), values=(2, 2)),
            tensor(x),
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "dense sizes": (
        lambda op, x: call(
            op, compressed(x, rows=3, sizes=(3, 4, 5), values=(2, 4)), tensor(x)
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "dense dimensions": (
        lambda op, x: call(
            op, compressed(x, rows=3, sizes=(3, 4), values=(2, 4)), tensor(x)
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "width of a block": (
        lambda op, x: call(
            op,
            compressed(x, rows=3, layout=SPARSE_BSR, values=(2, 1, 3)),
            tensor(x),
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "no width of a block": (
        lambda op, x: call(
            op,
            compressed(x, rows=3, layout=SPARSE_BSR, values=(2, 1, 0)),
            tensor(x),
        ),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "rows of values": (
        lambda op, x: call(op, sparse(indices(x), x, sizes=(3, 5)), tensor(x)),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "values of no elements": (
        lambda op, x: call(op, sparse(indices(x), x, sizes=(0, 4)), tensor(x)),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "values of no columns": (
        lambda op, x: call(op, compressed(x, rows=3, sizes=(3, 0)), tensor(x)),
        "components of a sparse tensor have inconsistent shapes",
    ),
    "values without data": (
        lambda op, x: call(
            op,
            sparse(indices(x), x, rows=without_data((3, 4))[len(TENSOR) :]),
            tensor(x),
        ),
        "component of a tensor has an unexpected dtype",
    ),
    "quantized values": (
        lambda op, x: call(
            op,
            sparse(
                part(x, dtype=4, sizes=(1, 12), strides=(12, 1), nbytes=96),
                x,
                sizes=(12, 4),
                rows=quantized(x, whole(12))[len(TENSOR) :],
                dtype=12,
            ),
            tensor(x),
        ),
        "component of a tensor has an unexpected dtype",
    ),
    "ticket": (
        lambda op, x: PLACE + struct.pack("<Q", 2**60),
        "no results are kept for this ticket",
    ),
}


@pytest.mark.parametrize("name", marked(WRONG, {"free memory": "blocks"}))
def test_wrong_message_is_refused_by_name(
    equal: str, x: torch.Tensor, name: str
) -> None:
    write, words = WRONG[name]
    with pytest.raises(RuntimeError, match=f"malformed message: .*{words}"):
        _C.execute_message(write(equal, x))
    reply = _C.execute_message(call(equal, tensor(x), tensor(x)))
    assert reply[-1] == 1  # the executor continues


@pytest.mark.parametrize("operator", ["equal", "aten::no"])
def test_unknown_operator_is_not_implemented(x: torch.Tensor, operator: str) -> None:
    reply = _C.execute_message(call(operator, tensor(x), tensor(x)))
    assert reply[0] == FAILED
    assert f"no operator {operator}".encode() in reply


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
        operator,
        *arguments(x),
        key=int(torch._C.DispatchKey.__members__[key]),
    )
    first = 1 + 4 + len(operator) + 4 + 2  # keeps the operator and its key
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


def altered(
    operator: str,
    tensors: list[torch.Tensor],
    alter: Callable[[bytes], bytes],
    overload: str = "",
) -> list[torch.Tensor]:
    """Runs an operator of tensors; ``alter`` changes the reply after its ticket."""
    return _C.run_with_reply(
        operator, overload, CPU, tensors, lambda reply: reply[:9] + alter(reply[9:])
    )


# An operator, its overload, the indices of its tensors (0: 12 floats on the device, 1:
# 12 integers on the device, 2: one number on the host), and the reply.
WRONG_REPLIES: dict[str, tuple[str, str, tuple[int, ...], bytes, str]] = {
    "storage of an argument that is read": (
        *("aten::nonzero", "", (0,)),
        replaced(0, 96) + COUNT + TENSOR + NEW + made(12, 1),
        "replaces a storage that the call must not change",
    ),
    "smaller storage": (
        *("aten::nonzero", "out", (0, 1)),
        replaced(1, 8) + COUNT + known(1),
        "replaces a storage that the call must not change",
    ),
    "unknown storage": (
        *("aten::nonzero", "out", (0, 1)),
        replaced(2, 96) + COUNT + known(1),
        "replaces a storage that the call must not change",
    ),
    "metadata of an argument that is read": (
        *("aten::nonzero", "out", (0, 1)),
        changed(0, made(2, dtype=6)) + COUNT + known(1),
        "changes a tensor that the call must not change",
    ),
    "dtype of an argument": (
        *("aten::nonzero", "out", (0, 1)),
        changed(1, made(48, dtype=0)) + COUNT + known(1),
        "the dtype of an existing tensor cannot change",
    ),
    "sizes of an argument": (
        *("aten::nonzero", "out", (0, 1)),
        changed(1, made(13)) + COUNT + known(1),
        "past the end of its storage",
    ),
    "another argument": (
        *("aten::nonzero", "out", (0, 1)),
        NO + NO + COUNT + known(0),
        "results do not match aten::nonzero",
    ),
    "host tensor": (
        *("aten::div", "Tensor", (0, 2)),
        NO + NO + COUNT + known(1),
        "the message names an object that only the host has",
    ),
    "host storage": (
        *("aten::div", "Tensor", (0, 2)),
        NO
        + NO
        + COUNT
        + TENSOR
        + NEW
        + made(1, dtype=6)[: -len(FRESH) - 8]
        + b"\0"
        + COUNT,
        "the message names an object that only the host has",
    ),
    "address": (
        *("aten::nonzero", "", (0,)),
        NO
        + NO
        + COUNT
        + TENSOR
        + NEW
        + made(1)[: -len(FRESH) - 8]
        + DEVICE
        + struct.pack("<QQB", 4096, 8, 1),
        "a reply contains a device address",
    ),
    "result": (
        *("aten::nonzero", "", (0,)),
        NO + NO + COUNT + TENSOR + NEW + made(13),
        "past the end of its storage",
    ),
    "type of a result": (
        *("aten::nonzero", "", (0,)),
        NO + NO + COUNT + BOOL + b"\1",
        "results do not match aten::nonzero",
    ),
    "number of results": (
        *("aten::nonzero", "", (0,)),
        NO + NO + NO,
        "results do not match aten::nonzero",
    ),
}


@pytest.mark.parametrize("name", WRONG_REPLIES)
def test_wrong_reply_is_refused_and_changes_nothing(x: torch.Tensor, name: str) -> None:
    operator, overload, chosen, reply, words = WRONG_REPLIES[name]
    tensors = [x, torch.arange(12, device=x.device), torch.tensor(2.0)]
    views = [tensor.view(3, 4) for tensor in tensors[:2]]
    before = [view.cpu().clone() for view in views]
    arguments = [tensors[i] for i in chosen]
    with pytest.raises(RuntimeError, match=f"malformed message: .*{words}"):
        altered(operator, arguments, lambda right: reply, overload)
    assert [tensor.dtype for tensor in tensors] == [
        torch.float32,
        torch.int64,
        torch.float32,
    ]
    assert [tensor.device.type for tensor in tensors] == [x.device.type] * 2 + ["cpu"]
    assert tensors[2].item() == 2
    for view, values in zip(views, before, strict=True):
        assert torch.equal(view.cpu(), values)
    if overload != "Tensor":
        assert altered(operator, arguments, lambda right: right, overload) is not None


def test_reply_is_read_as_it_was_written(x: torch.Tensor) -> None:
    (found,) = altered("aten::nonzero", [x], lambda reply: reply)
    assert torch.equal(found.cpu(), x.cpu().nonzero())
    out = torch.empty(0, dtype=torch.int64, device=x.device)
    assert altered("aten::nonzero", [x, out], lambda reply: reply, "out") == []
    assert torch.equal(out.cpu(), x.cpu().nonzero())


def test_results_of_a_refused_reply_do_not_stay(x: torch.Tensor) -> None:
    for _ in range(5000):  # more than may wait
        with pytest.raises(RuntimeError, match="malformed message"):
            altered("aten::nonzero", [x], lambda reply: b"")


def test_reply_with_an_unknown_ticket_is_refused(x: torch.Tensor) -> None:
    unknown = struct.pack("<Q", 2**60)
    for rest in (lambda reply: b"", lambda reply: reply[9:]):
        with pytest.raises(RuntimeError, match="no results are kept for this ticket"):
            _C.run_with_reply(
                *("aten::nonzero", "", CPU, [x]),
                lambda reply, rest=rest: reply[:1] + unknown + rest(reply),
            )
    (found,) = altered("aten::nonzero", [x], lambda reply: reply)
    assert len(found) == 11


def test_messages_that_are_changed_at_random_are_right() -> None:
    root = ROOT
    files = sorted((root / "tests" / "aten" / "messages").iterdir())
    result = run(
        *(sys.executable, "-W", "ignore", root / "tools" / "fuzz_messages.py"),
        *("--run", *files),
    )
    assert result.returncode == 0, result.stderr
    became = dict(line.split(": ", 1) for line in result.stdout.splitlines())
    assert set(became) == {file.name for file in files}
    right = {"read", f"answered: {DONE}", f"answered: {DESCRIBED}"}
    assert {name: words for name, words in became.items() if words not in right} == {}


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
    yield x[:, torch.arange(4)[1:3]] # a host index that is part of a storage
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


NOT_SENT = """
import torch, openreg_aten
openreg_aten._C.init()
name = torch._C._get_privateuse1_backend_name()

def observe(device):
    one = torch.ones(1, device=device)
    indices = torch.tensor([[0, 2]], device=device)
    # Memory holds one value for two indices.
    sparse = torch.sparse_coo_tensor(indices, one.expand(2), (3,))
    yield sparse.to_dense()
    zero = torch._efficientzerotensor((2,), device=device)
    x = torch.ones(2, device=device)
    yield torch.dot(zero, x).clone(), x.copy_(zero), zero.clone() + 1

def text(values):
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda x: x.cpu().tolist(), list(values)
    )

print(text(observe(name)) == text(observe("cpu")))
for operator, sent, unsent in openreg_aten._C.message_counts():
    if unsent:
        print(operator)
"""


def test_tensors_that_a_message_cannot_have_are_used_without_one(
    run_python: Program,
) -> None:
    result = run_python(
        NOT_SENT, OPENREG_ISOLATION="loopback", OPENREG_ENQUEUE_BURSTS="0"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "True",
        "aten::_sparse_coo_tensor_with_dims_and_tensors",
        "aten::_to_dense",
    ]


def test_results_that_the_host_drops_do_not_stay(equal: str, x: torch.Tensor) -> None:
    nonzero = "aten::nonzero"
    for _ in range(5000):  # more than may wait
        reply = _C.execute_message(call(nonzero, tensor(x)))
        assert reply[0] == DESCRIBED
        assert _C.execute_message(DROP + reply[1:9])[0] == DONE


def test_results_without_places_are_limited(x: torch.Tensor) -> None:
    nonzero = "aten::nonzero"
    tickets = []
    while (reply := _C.execute_message(call(nonzero, tensor(x))))[0] == DESCRIBED:
        tickets.append(reply[1:9])
        assert len(tickets) <= 4096
    assert b"too many results wait to be fetched" in reply
    for ticket in tickets:
        _C.execute_message(DROP + ticket)
    assert _C.execute_message(call(nonzero, tensor(x)))[0] == DESCRIBED
