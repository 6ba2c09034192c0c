# SPDX-License-Identifier: BSD-3-Clause
"""Fuzzes the messages between the host and the executor.

Each file in tests/aten/messages is a valid message: a call, or a reply to a call. Its
first line names the operator, its overload, the dispatch key, and for a reply the
tensors of the call. The rest are the bytes of the message. A separate process reads
randomly changed messages. If the process dies, the last message is kept:

    python tools/fuzz_messages.py --seconds 60      # random changes
    python tools/fuzz_messages.py --run FILE        # one kept message
    python tools/fuzz_messages.py --write           # rewrite tests/aten/messages

With a library built with -DOPENREG_SANITIZE=address, ASan and UBSan check the reading
process (tox -e fuzz).
"""

from __future__ import annotations

import argparse
import collections
import importlib
import importlib.util
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workspace import ROOT

CORPUS = ROOT / "tests" / "aten" / "messages"
KEPT = ROOT / "build" / "fuzz"

# Seconds per message. A valid message may request endless work, such as on a tensor
# that is expanded to 2**62 elements. The process is then restarted.
LONGEST = 10

# The address that represents the start of the memory in a file.
MEMORY = 0x7E57_0000_0000_0000
MARK = struct.pack("<Q", MEMORY)[-2:]
NBYTES = 1 << 14
MOST = 1 << 32  # limit of host memory: a message may request results of any size
BLOCK = 1 << 22  # large enough for a separate runtime block
TICKET = slice(1, 9)

# The layout of the memory, in bytes: indices below 3, row starts for compressed
# indices, numbers, flags and results.
INDICES, ROWS, NUMBERS, FLAGS, RESULTS = 0, 1024, 2048, 4096, 8192
DTYPES = {
    "uint8": 0,
    "int32": 3,
    "int64": 4,
    "float32": 6,
    "float64": 7,
    "bool": 11,
    "qint8": 12,
}

FLOATS = [0.0, -1.0, 1e308, float("nan"), float("inf")]
WHOLE = [0, 1, -1, 2, 3, 4, 12, 64, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]
BYTES = bytes([*range(14), 0x7F, 0x80, 0xFE, 0xFF])


@dataclass
class Seed:
    """A valid message."""

    name: str
    operator: str
    overload: str
    key: str
    tensors: list[str]  # of a reply
    message: bytes

    @property
    def is_reply(self) -> bool:
        """Whether the message is a reply, which the host reads."""
        return self.name.endswith(".reply")

    @classmethod
    def read(cls, path: Path) -> Seed:
        """Reads the message in a file."""
        head, _, rest = path.read_bytes().partition(b"\n")
        operator, overload, key, *tensors = head.decode().split(" ")
        return cls(path.name, operator, overload, key, tensors, rest)

    def head(self) -> bytes:
        """Returns the first line of its file."""
        words = [self.operator, self.overload, self.key, *self.tensors]
        return " ".join(words).encode() + b"\n"


class Device:
    """The memory of the messages, the executor, and the host that reads replies."""

    def __init__(self) -> None:
        sys.path[:0] = [str(ROOT / "tests")]
        import torch

        import openreg_aten

        # The module imports torch and openreg_aten itself.
        self.messages: Any = importlib.import_module("support.messages")
        torch.set_num_threads(1)
        openreg_aten._C.init()
        self.torch: Any = torch
        self.module: Any = openreg_aten._C
        name = torch._C._get_privateuse1_backend_name()
        self.block = torch.zeros(BLOCK, dtype=torch.uint8, device=name)
        self.memory = self.block[:NBYTES]
        self.fill()

    def fill(self, zero: bool = False) -> None:
        """Restores the memory, which kernels have changed.

        Kernels for sparse tensors do not check index values (docs/isolation.md). With
        ``zero``, all memory is zero, so every index is valid wherever it is read from.
        """
        self.block.zero_()
        if zero:
            self.torch.accelerator.synchronize()
            return
        torch = self.torch
        content = torch.zeros(NBYTES, dtype=torch.uint8)
        content[INDICES:ROWS].view(torch.int64)[:] = torch.arange(128) % 3
        rows = content[ROWS:NUMBERS].view(torch.int64)
        rows[:] = torch.arange(128).clamp(max=3)
        content[NUMBERS:FLAGS].view(torch.float32)[:] = torch.arange(512) / 4
        content[FLAGS:RESULTS] = torch.arange(RESULTS - FLAGS) % 2
        self.memory.copy_(content)
        torch.accelerator.synchronize()

    def place(self, seed: Seed, message: bytes) -> bytes:
        """Returns a call with its operator and with real memory addresses."""
        begin = self.memory.data_ptr()
        placed = bytearray(message)
        end = placed.find(MARK)
        while end >= 0:
            at = end + len(MARK) - 8
            if at >= 0:
                (word,) = struct.unpack_from("<Q", placed, at)
                struct.pack_into("<Q", placed, at, begin + word - MEMORY)
            end = placed.find(MARK, end + 1)
        text = self.messages.text
        placed[1:1] = text(seed.operator) + text(seed.overload)
        return bytes(placed)

    def answer(self, seed: Seed, message: bytes) -> str:
        """Passes a message to its reader and returns the outcome as text."""
        try:
            if seed.is_reply:
                return self.read_reply(seed, message)
            return self.execute(self.place(seed, message))
        except (RuntimeError, IndexError, TypeError, ValueError, MemoryError) as error:
            words = str(error).split("\n")[0]
            if "malformed message" not in words:
                return f"raised: {type(error).__name__} {words[:50]}"
            return "refused: " + " ".join(
                each for each in words.split()[2:] if not each[-1].isdigit()
            )

    def execute(self, message: bytes) -> str:
        """Passes a message to the executor."""
        reply = self.module.execute_message(message)
        if reply[0] == self.messages.DESCRIBED:
            self.module.execute_message(self.messages.DROP + reply[TICKET])
        return f"answered: {reply[0]}"

    def read_reply(self, seed: Seed, message: bytes) -> str:
        """Passes a reply with a valid ticket to the host."""

        def alter(reply: bytes) -> bytes:
            return reply[: TICKET.stop] + message

        key = int(self.torch._C.DispatchKey.__members__[seed.key])
        tensors = [TENSORS[name](self) for name in seed.tensors]
        made = self.module.run_with_reply(
            seed.operator, seed.overload, key, tensors, alter
        )
        # The memory of all results must be readable. A reply may mark a result as
        # undefined.
        for tensor in [*made, *tensors]:
            if tensor is None or tensor.is_nested:
                continue
            if tensor.layout is self.torch.strided:
                tensor.clone()
        self.torch.accelerator.synchronize()
        return "read"


def view(device: Device, offset: int, dtype: str, *sizes: int) -> Any:
    """Returns a new tensor with a copy of elements of the memory."""
    whole = device.memory[offset:].view(getattr(device.torch, dtype))
    count = device.torch.Size(sizes).numel()
    return whole[:count].view(sizes).clone()


def coo(device: Device) -> Any:
    """Returns a sparse tensor with a duplicate index."""
    indices = view(device, INDICES, "int64", 1, 4)
    values = view(device, NUMBERS, "float32", 4, 4)
    return device.torch.sparse_coo_tensor(indices, values, (3, 4))


TENSORS: dict[str, Callable[[Device], Any]] = {
    "numbers": lambda device: view(device, NUMBERS, "float32", 3, 4),
    "indices": lambda device: view(device, INDICES, "int64", 12),
    "flags": lambda device: view(device, FLAGS, "bool", 3, 4),
    "empty": lambda device: view(device, INDICES, "int64", 0),
    "host": lambda device: device.torch.tensor(2.0),
    "coo": coo,
}


# ---- the corpus ---------------------------------------------------------------


def without_operator(message: bytes) -> bytes:
    """Returns a call without its empty operator and overload."""
    return message[:1] + message[9:]


def calls(device: Device) -> Iterator[Seed]:
    """Yields valid calls of operators whose kernels use the values of tensors."""
    torch, messages = device.torch, device.messages
    tensor, composed, none = messages.TENSOR, messages.COMPOSED, messages.NONE

    def strided(
        offset: int, dtype: str, *sizes: int, strides: tuple[int, ...] = ()
    ) -> Any:
        facts = struct.pack("<Bb", 0, DTYPES[dtype]) + messages.numbers(sizes)
        strides = strides or torch.empty(sizes, device="meta").stride()
        place = struct.pack("<QQB", MEMORY + offset, 1024, 1)
        return (
            tensor
            + messages.NEW
            + facts
            + messages.numbers(strides)
            + struct.pack("<q", 0)
            + messages.DEVICE
            + place
        )

    def part(offset: int, dtype: str, *sizes: int) -> Any:
        return strided(offset, dtype, *sizes)[1:]

    def whole(value: int) -> Any:
        return messages.INT + struct.pack("<q", value)

    def real(value: float) -> bytes:
        return b"\3" + struct.pack("<d", value)

    def flag(value: bool) -> Any:
        return messages.BOOL + struct.pack("<B", value)

    def tensors(*values: bytes, optional: bool = False) -> Any:
        head = messages.LIST + struct.pack("<BI", optional, len(values))
        return head + b"".join(values)

    numbers = strided(NUMBERS, "float32", 3, 4)
    others = strided(NUMBERS, "float32", 4, 3)
    square = strided(NUMBERS, "float32", 3, 3)
    result = strided(RESULTS, "float32", 3, 4)
    row = strided(INDICES, "int64", 3)
    indices = strided(INDICES, "int64", 3, 4)
    flags = strided(FLAGS, "bool", 3, 4)
    sparse = (
        tensor
        + composed
        + struct.pack("<Bb", 0, DTYPES["float32"])
        + messages.numbers((3, 4))
        + struct.pack("<qB", 1, 0)
        + part(INDICES, "int64", 1, 3)
        + part(NUMBERS, "float32", 3, 4)
    )

    def compressed(layout: int, *values: int) -> Any:
        across = 4 if layout in (2, 5) else 5
        return (
            tensor
            + composed
            + struct.pack("<BBb", 1, layout, DTYPES["float32"])
            + messages.numbers((3, 4))
            + part(ROWS, "int64", across)
            + part(INDICES, "int64", 3)
            + part(NUMBERS, "float32", *values)
        )

    tables: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((2, 2), (2, 4, 1, 4)),
        ((2, 2), (4, 1, 4, 1)),
        ((2,), (0, 8)),
    ]
    nested = tensor + composed + b"\2"
    for size, table in tables:
        nested += messages.numbers(size) + messages.numbers(table)
    buffer = part(NUMBERS, "float32", 12)
    nested += buffer[:-9] + struct.pack("<QB", 48, 1)  # the size of its storage

    def quantized(quantizer: bytes) -> Any:
        head = tensor + messages.QUANTIZED
        return head + part(NUMBERS, "qint8", 3, 4)[1:] + quantizer

    scale = messages.whole(DTYPES["qint8"])
    channels = (
        struct.pack("<Bbq", 2, DTYPES["qint8"], 0)
        + part(NUMBERS, "float64", 3)
        + part(INDICES, "int64", 3)
    )
    bag = [flag(False), none, flag(False), whole(-1)]
    wanted: list[tuple[str, str, str, list[bytes]]] = [
        ("aten::equal", "", "CPU", [numbers, numbers]),
        ("aten::nonzero", "", "CPU", [flags]),
        ("aten::nonzero", "out", "CPU", [flags, strided(RESULTS, "int64", 0)]),
        ("aten::index", "Tensor", "CPU", [numbers, tensors(row, optional=True)]),
        ("aten::index", "Tensor", "CPU", [numbers, tensors(flags, optional=True)]),
        (
            *("aten::index_put_", "", "CPU"),
            [result, tensors(row, optional=True), numbers, flag(True)],
        ),
        ("aten::gather", "", "CPU", [numbers, whole(0), indices, flag(False)]),
        ("aten::scatter_add_", "", "CPU", [result, whole(0), indices, numbers]),
        ("aten::index_select", "", "CPU", [numbers, whole(0), row]),
        ("aten::index_add_", "", "CPU", [result, whole(0), row, numbers, whole(1)]),
        ("aten::take", "", "CPU", [numbers, indices]),
        (
            *("aten::embedding", "", "CPU"),
            [numbers, row, whole(-1), flag(False), flag(False)],
        ),
        (
            *("aten::_embedding_bag", "", "CPU"),
            [numbers, row, strided(ROWS, "int64", 2), flag(False), whole(0), *bag],
        ),
        ("aten::copy_", "", "CPU", [result, numbers, flag(False)]),
        (
            *("aten::copy_", "", "CPU"),
            [result, strided(NUMBERS, "float32", 3, 4, strides=(1, 3)), flag(False)],
        ),
        ("aten::clone", "", "CPU", [numbers, none]),
        ("aten::cat", "", "CPU", [tensors(numbers, numbers), whole(0)]),
        ("aten::mm", "", "CPU", [numbers, others]),
        ("aten::sort", "", "CPU", [numbers, whole(-1), flag(False)]),
        (
            *("aten::as_strided", "", "CPU"),
            [numbers, messages.integers(2, 3), messages.integers(4, 1), none],
        ),
        ("aten::bincount", "", "CPU", [row, none, whole(0)]),
        ("aten::repeat_interleave", "Tensor", "CPU", [row, none]),
        ("aten::_unique2", "", "CPU", [row, flag(True), flag(True), flag(True)]),
        ("aten::resize_", "", "CPU", [result, messages.integers(5, 6), none]),
        ("aten::_nnz", "", "SparseCPU", [sparse]),
        ("aten::_coalesce", "", "SparseCPU", [sparse]),
        ("aten::_to_dense", "", "SparseCPU", [sparse, none, none]),
        ("aten::mul", "Tensor", "SparseCPU", [sparse, sparse]),
        ("aten::add", "Tensor", "SparseCPU", [sparse, sparse, whole(1)]),
        (
            *("aten::sparse_resize_", "", "SparseCPU"),
            [sparse, messages.integers(4, 4), whole(1), whole(1)],
        ),
        ("aten::_to_dense", "", "SparseCsrCPU", [compressed(2, 3), none, none]),
        ("aten::_to_dense", "", "SparseCsrCPU", [compressed(4, 3), none, none]),
        ("aten::_to_dense", "", "SparseCsrCPU", [compressed(5, 3, 1, 1), none, none]),
        (
            *("aten::addmm", "", "SparseCsrCPU"),
            [square, compressed(2, 3), others, whole(1), whole(1)],
        ),
        ("aten::_nested_tensor_size", "", "NestedTensorCPU", [nested]),
        ("aten::relu", "", "NestedTensorCPU", [nested]),
        ("aten::to_padded_tensor", "", "NestedTensorCPU", [nested, real(0), none]),
        ("aten::equal", "", "QuantizedCPU", [quantized(scale), quantized(scale)]),
        ("aten::dequantize", "self", "QuantizedCPU", [quantized(scale)]),
        ("aten::dequantize", "self", "QuantizedCPU", [quantized(channels)]),
        ("aten::int_repr", "", "QuantizedCPU", [quantized(channels)]),
        (
            *("aten::quantize_per_channel", "", "CPU"),
            [numbers, strided(NUMBERS, "float32", 3), row, whole(0), whole(12)],
        ),
        ("aten::clone", "", "CPU", [messages.without_data((3, 4)), none]),
        (
            *("aten::dot", "", "CPU"),
            [messages.without_data((4,)), strided(NUMBERS, "float32", 4)],
        ),
    ]
    for number, (operator, overload, key, values) in enumerate(wanted):
        name = f"{number:02}_{operator.split('::')[1]}.call"
        message = without_operator(messages.call("", *values, key=messages.KEYS[key]))
        yield Seed(name, operator, overload, key, [], message)
    # A call with given result memory.
    place = b"\1" + struct.pack("<b", DTYPES["float32"])
    place += messages.numbers((3, 3)) + messages.numbers((3, 1))
    place += struct.pack("<QQ", MEMORY + RESULTS, 36)
    message = without_operator(messages.call("", numbers, others)[:-1])
    message += b"\1" + struct.pack("<I", 1) + place
    yield Seed("50_mm_with_place.call", "aten::mm", "", "CPU", [], message)


def replies(device: Device) -> Iterator[Seed]:
    """Yields replies of the executor."""
    wanted = [
        ("aten::nonzero", "", "CPU", ["flags"]),
        ("aten::nonzero", "out", "CPU", ["flags", "empty"]),
        ("aten::equal", "", "CPU", ["numbers", "numbers"]),
        ("aten::masked_select", "", "CPU", ["numbers", "flags"]),
        ("aten::div", "Tensor", "CPU", ["numbers", "host"]),
        ("aten::_coalesce", "", "SparseCPU", ["coo"]),
        ("aten::mul", "Tensor", "SparseCPU", ["coo", "coo"]),
        ("aten::_values", "", "SparseCPU", ["coo"]),
    ]
    for number, (operator, overload, key, names) in enumerate(wanted):
        got: list[bytes] = []

        def keep(reply: bytes, got: list[bytes] = got) -> bytes:
            got.append(reply[TICKET.stop :])
            return reply

        numbered = int(device.torch._C.DispatchKey.__members__[key])
        tensors = [TENSORS[each](device) for each in names]
        device.module.run_with_reply(operator, overload, numbered, tensors, keep)
        name = f"{number:02}_{operator.split('::')[1]}.reply"
        yield Seed(name, operator, overload, key, names, got[0])


# ---- changes ------------------------------------------------------------------


def change(message: bytes, first: int, others: list[bytes], source: Any) -> bytes:
    """Returns a message with random changes from byte ``first`` on."""
    wrong = bytearray(message)
    for _ in range(source.choice((1, 1, 1, 1, 2, 3, 4))):
        if len(wrong) <= first:
            break
        at = source.randrange(first, len(wrong))
        kind = source.random()
        if kind < 0.35:
            wrong[at] = source.choice(BYTES)
        elif kind < 0.55:
            wrong[at] = source.randrange(256)
        elif kind < 0.65:
            wrong[at] ^= 1 << source.randrange(8)
        elif kind < 0.80:
            wrong[at : at + 8] = struct.pack("<q", source.choice(WHOLE))
        elif kind < 0.83:
            wrong[at : at + 8] = struct.pack("<d", source.choice(FLOATS))
        elif kind < 0.90:
            begin = source.randrange(first, len(wrong))
            wrong[at:at] = wrong[begin : begin + source.randint(1, 60)]
        elif kind < 0.94:
            other = source.choice(others)
            begin = source.randrange(len(other))
            wrong[at : at + source.randint(0, 60)] = other[
                begin : begin + source.randint(1, 60)
            ]
        elif kind < 0.98:
            del wrong[at : at + source.randint(1, 20)]
        else:
            del wrong[at:]
    return bytes(wrong)


class Last:
    """The current message, in a file that outlives the process."""

    def __init__(self, path: Path) -> None:
        with path.open("w+b") as file:
            file.truncate(1 << 16)
            self.bytes = mmap.mmap(file.fileno(), 0)

    def write(self, message: bytes) -> None:
        """Replaces the current message."""
        self.bytes[: len(message) + 4] = struct.pack("<I", len(message)) + message

    @staticmethod
    def read(path: Path) -> bytes:
        """Returns the last message."""
        content = path.read_bytes()
        return content[4 : 4 + struct.unpack_from("<I", content)[0]]


def fuzz(seconds: float, seed: int, last: Last) -> None:
    """Reads changed messages for a number of seconds and prints the outcomes."""
    device = Device()
    source = random.Random(seed)
    seeds = [Seed.read(path) for path in sorted(CORPUS.iterdir())]
    valid = [each.message for each in seeds]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        chosen = source.choice(seeds)
        # Keeps the operator, its key and the number of threads.
        first = 0 if chosen.is_reply else 7
        device.fill(zero="Sparse" in chosen.key)
        for _ in range(200):
            wrong = change(chosen.message, first, valid, source)
            last.write(chosen.head() + wrong)
            signal.alarm(LONGEST)
            counts[chosen.name][device.answer(chosen, wrong)] += 1
    signal.alarm(0)
    total = collections.Counter[str]()
    raised = collections.Counter[str]()
    for name in sorted(counts):
        kinds = collections.Counter[str]()
        for words, count in counts[name].items():
            kinds[words.split(":")[0]] += count
            total[words.split(":")[0]] += count
            if words.startswith("raised"):
                raised[words] += count
        print(f"{name}: {dict(kinds)}")
    for words, count in raised.most_common(8):
        print(f"{count} {words}")
    print(f"{sum(total.values())} messages: {dict(total)}")


def main() -> int:
    """Starts the reading process, with the sanitizers if the library needs them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        if "ASAN_OPTIONS" not in os.environ:  # ASan has its own limit
            resource.setrlimit(resource.RLIMIT_DATA, (MOST, MOST))
        last = Last(options.inside)
        if options.run:
            device = Device()
            for path in options.run:
                seed = Seed.read(path)
                print(f"{path.name}: {device.answer(seed, seed.message)}")
        elif options.write:
            device = Device()
            CORPUS.mkdir(exist_ok=True)
            for each in [*calls(device), *replies(device)]:
                (CORPUS / each.name).write_bytes(each.head() + each.message)
        else:
            fuzz(options.seconds, options.seed, last)
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"last-{os.getpid()}"
    command = [sys.executable, __file__, *sys.argv[1:], "--inside", str(path)]
    end = time.monotonic() + options.seconds
    ended = subprocess.run(command, env=environment(), check=False)
    while ended.returncode == -signal.SIGALRM and (left := end - time.monotonic()) > 0:
        options.seed += 1
        keep(path, "endless")
        more = ["--seconds", str(left), "--seed", str(options.seed)]
        ended = subprocess.run([*command, *more], env=environment(), check=False)
    if ended.returncode == -signal.SIGALRM:
        keep(path, "endless")
        ended.returncode = 0
    if ended.returncode != 0 and path.exists() and not options.run:
        keep(path, f"ended with {ended.returncode}")
    path.unlink(missing_ok=True)
    return int(ended.returncode != 0)


def keep(path: Path, outcome: str) -> None:
    """Saves the last message to a new file and prints its outcome."""
    message = Last.read(path)
    reply = len(message.partition(b"\n")[0].split()) > 3
    kept = KEPT / f"{time.time_ns()}.{'reply' if reply else 'call'}"
    kept.write_bytes(message)
    print(f"{outcome}; the last message is {kept}", flush=True)


def environment() -> dict[str, str]:
    """Returns the environment variables of the reading process."""
    spec = importlib.util.find_spec("openreg_aten")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("openreg_aten is not installed")
    (library,) = (
        file
        for folder in spec.submodule_search_locations
        for file in Path(folder).glob("torch_*/lib/libopenreg_aten.so")
    )
    added = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OPENREG_DEVICE_MEMORY": "256MiB"}
    if b"__asan_init" in library.read_bytes():
        compiler = os.environ.get("CXX", "c++")
        names = ("libasan.so", "libubsan.so", "libstdc++.so")
        found = [
            subprocess.run(
                [compiler, f"-print-file-name={name}"],
                check=True,
                capture_output=True,
                text=True,
            ).stdout.strip()
            for name in names
        ]
        added |= {
            "LD_PRELOAD": " ".join(found),
            # PyTorch leaks memory at exit, and the runtime handles device faults.
            "ASAN_OPTIONS": "detect_leaks=0:detect_odr_violation=0:handle_segv=0:"
            # A message may request more memory than the machine has.
            "allocator_may_return_null=1:max_allocation_size_mb=256",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
    return os.environ | added


if __name__ == "__main__":
    raise SystemExit(main())
