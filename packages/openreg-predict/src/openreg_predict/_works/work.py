# SPDX-License-Identifier: BSD-3-Clause
"""The work of one operator: its class, operations, bytes and shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# The classes of operators, and what decides the time of each.
CLASSES: Mapping[str, str] = {
    "gemm": "matrix products",
    "grouped": "products of a mixture of experts, or of another ragged group",
    "attention": "scaled dot product attention, forward and backward",
    "convolution": "convolutions, also transposed, grouped and depthwise",
    "pointwise": "element by element",
    "copy": "copies, casts, concatenations and fills",
    "reduction": "sums, means, maxima and norms of vectors",
    "norm": "softmax, and normalization by layer, batch, group or RMS",
    "pool": "pooling and interpolation",
    "gather": "reads of rows by index, such as embeddings",
    "scatter": "writes of rows by index",
    "sort": "sort, topk and unique",
    "scan": "cumulative sums and products",
    "optimizer": "fused and foreach steps of optimizers",
    "random": "random numbers",
    "linalg": "factorizations and solvers",
    "fft": "Fourier transforms",
    "rnn": "fused recurrent layers",
    "transfer": "copies between host and device",
    "collective": "operations of a process group",
    "view": "host time only",
    "unknown": "costed as bandwidth-bound, and listed with its share",
}
# Bytes of an element; tf32 is stored as float32.
SIZES: Mapping[str, int] = {
    "f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f8": 1, "fp8": 1,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "b8": 1,
    "u16": 2, "u32": 4, "u64": 8, "c32": 4, "c64": 8, "c128": 16,
}  # fmt: skip
_SHORT: Mapping[str, str] = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8", "float8_e5m2": "f8", "float8_e4m3fnuz": "f8",
    "float8_e5m2fnuz": "f8", "float8_e8m0fnu": "f8", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "bool": "b8", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "qint8": "i8", "quint8": "u8", "qint32": "i32",
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """The work of an operator, which is the same on every device.

    Attributes:
        operator: The name of the operator, such as ``mm``.
        kind: The class of the operator, a key of ``CLASSES``.
        dtype: The type of the computation, such as ``bf16``.
        flops: Arithmetic operations.
        read: Bytes read from distinct tensors.
        written: Bytes written to distinct tensors.
        facts: Facts about the shape, such as ``m``, ``n``, ``k`` and ``b`` of a
            product; ``pass`` is ``forward``, ``backward``, ``input`` or ``weight``.
        compiled: Whether the operator is part of a compiled program.
        graph: Whether the operator is launched by the replay of a graph.
    """

    operator: str
    kind: str
    dtype: str
    flops: float = 0.0
    read: float = 0.0
    written: float = 0.0
    facts: Mapping[str, int | float | str] = field(default_factory=dict)
    compiled: bool = False
    graph: bool = False

    def __post_init__(self) -> None:
        if self.kind not in CLASSES:
            raise ValueError(
                f"the class of {self.operator} is {self.kind!r}; accepted are "
                f"{', '.join(CLASSES)}"
            )

    def __hash__(self) -> int:
        return hash((self.operator, self.kind, self.dtype, self.flops, self.read,
                     self.written, tuple(self.facts.items()), self.compiled,
                     self.graph))  # fmt: skip

    @property
    def bytes(self) -> float:
        """Bytes read and written."""
        return self.read + self.written

    def fact(self, name: str, default: int = 0) -> int:
        """Returns a fact that is a whole number."""
        return int(self.facts.get(name, default))


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """The metadata of a tensor.

    Attributes:
        shape: The sizes.
        stride: The strides, in elements.
        dtype: The type, such as ``bf16``.
        storage: An identity of the storage, or ``None``; equal ones are counted once.
        device: The type of the device.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    storage: int | None = None
    device: str = ""

    @property
    def elements(self) -> int:
        """The number of elements, including repeated ones."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of the distinct elements: dimensions of stride 0 count once."""
        distinct = (
            size
            for size, stride in zip(self.shape, self.stride, strict=True)
            if stride != 0 or size == 0
        )
        return math.prod(distinct) * SIZES[self.dtype]

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill a block of memory without gaps, in any order."""
        expected = 1
        pairs = zip(self.stride, self.shape, strict=True)
        for stride, size in sorted(p for p in pairs if p[1] != 1):
            if stride != expected:
                return False
            expected *= size
        return True


def contiguous(shape: Iterable[int], dtype: str) -> TensorFacts:
    """Returns the metadata of a contiguous tensor."""
    shape = tuple(shape)
    stride = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        stride[i] = stride[i + 1] * max(shape[i + 1], 1)
    return TensorFacts(shape, tuple(stride), dtype)


def short_dtype(dtype: object) -> str:
    """Returns the short name of a ``torch.dtype``, such as ``bf16``."""
    name = str(dtype).removeprefix("torch.")
    if name not in _SHORT:
        raise ValueError(f"dtype {name} is not one of {', '.join(_SHORT)}")
    return _SHORT[name]


@dataclass(frozen=True)
class Call:
    """A call of an operator, with metadata in place of tensors.

    Attributes:
        name: The operator without namespace and overload, such as ``mm``.
        arguments: The arguments by the names of the schema.
        results: The tensors that it returned.
        is_view: Whether the results only alias an argument.
        tags: Tags of PyTorch, such as ``pointwise`` and ``reduction``.
        namespace: The namespace of the operator.
    """

    name: str
    arguments: Mapping[str, object]
    results: Sequence[TensorFacts]
    is_view: bool = False
    tags: frozenset[str] = frozenset()
    namespace: str = "aten"

    def tensors(self) -> list[TensorFacts]:
        """Returns the tensors among the arguments, also tensors in lists."""
        return [t for value in self.arguments.values() for t in _flat(value)]

    def tensor(self, *names: str) -> TensorFacts:
        """Returns the first of the named arguments that is a tensor.

        Raises:
            LookupError: If none of them is.
        """
        for name in names:
            if isinstance(value := self.arguments.get(name), TensorFacts):
                return value
        raise LookupError(f"{self.name} has no tensor {' or '.join(names)}")

    def numbers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns an argument that is a list of whole numbers."""
        value = self.arguments.get(name)
        if isinstance(value, (list, tuple)):
            return tuple(int(v) for v in value)
        return (int(value),) if isinstance(value, int) else tuple(default)


def _flat(value: object) -> Iterable[TensorFacts]:
    if isinstance(value, TensorFacts):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _flat(each)


def distinct_bytes(tensors: Iterable[TensorFacts]) -> int:
    """Returns the bytes of tensors; a tensor that occurs twice counts once."""
    seen: set[TensorFacts] = set()
    size = 0
    for each in tensors:
        if each.storage is not None and each in seen:
            continue
        seen.add(each)
        size += each.bytes
    return size


Rule = Callable[[Call], Work]
