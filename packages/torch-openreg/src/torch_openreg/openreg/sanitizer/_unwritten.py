# SPDX-License-Identifier: BSD-3-Clause
"""The bytes of new memory that no operator has written.

Only memory of operators such as ``empty`` is followed, until all of it is written. Any
other memory may have been written by code that the sanitizer does not see.

Copies pass unwritten elements on, as it is legal to copy them. Any other operator that
reads them is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from torch_openreg._lines import Place
from torch_openreg.openreg._utils import device_type

from ._memory import Region, region_of, storage_address

aten = torch.ops.aten


class Operand(NamedTuple):
    """A tensor that an operator uses.

    Attributes:
        tensor: The tensor.
        name: The schema's name of the argument; ``output`` for a result.
        reads: Whether the operator may read it.
        writes: Whether the operator may write to it.
    """

    tensor: torch.Tensor
    name: str
    reads: bool
    writes: bool


class Read(NamedTuple):
    """A read of unwritten elements.

    Attributes:
        operand: The tensor that is read.
        unwritten: The number of its elements that were never written.
        first: The index of the first of them.
        allocated: The line that allocated the memory.
    """

    operand: Operand
    unwritten: int
    first: tuple[int, ...]
    allocated: Place | None


@dataclass(eq=False, slots=True)
class _Block:
    """The memory of a storage.

    Attributes:
        size: Its bytes.
        place: The line that allocated it, or the memory that was copied to it.
        captured: Whether it belongs to the pool of a capture.
        written: A mask of its bytes; None if no byte is written.
    """

    size: int
    place: Place | None
    captured: bool
    written: torch.Tensor | None = None


# ---- operators that do not read an argument as a whole

# They replace the contents of their first argument.
_OVERWRITES = {
    aten._foreach_zero_,
    aten.bernoulli_,
    aten.cauchy_,
    aten.exponential_,
    aten.fill_,
    aten.geometric_,
    aten.log_normal_,
    aten.normal_,
    aten.random_,
    aten.uniform_,
    aten.zero_,
}
# They replace the elements of their first argument that other arguments select. The
# values of these arguments are not known here, so all elements count as written.
_PUTS = {
    aten._index_put_impl_,
    aten.fill_diagonal_,
    aten.index_copy,
    aten.index_copy_,
    aten.index_fill,
    aten.index_fill_,
    aten.index_put,
    aten.index_put_,
    aten.masked_fill,
    aten.masked_fill_,
    aten.masked_scatter,
    aten.masked_scatter_,
    aten.put,
    aten.put_,
    aten.scatter,
    aten.scatter_,
}
# They add to these elements.
_ADDS = {aten.index_add_, aten.index_reduce_, aten.scatter_add_, aten.scatter_reduce_}
# They select elements of the named arguments. Results count as unwritten only if all
# elements to select from are.
_SELECTS = {
    aten.embedding: {"weight"},
    aten.gather: {"self"},
    aten.index: {"self"},
    aten.index_select: {"self"},
    aten.masked_select: {"self"},
    aten.take: {"self"},
    aten.where: {"self", "other"},
}
# With beta=0 they do not read their first argument.
_SCALED = {
    packet
    for name in ("addbmm", "addmm", "addmv", "addr", "baddbmm")
    for packet in (getattr(aten, name), getattr(aten, name + "_"))
}
# Further arguments that are only written.
_OUTPUTS = {
    aten._flash_attention_forward_no_dropout_inplace: {"out"},
    aten.rrelu_with_noise: {"noise"},
    aten.rrelu_with_noise_: {"noise"},
}

Mask = torch.Tensor
_Masks = Callable[[torch.Tensor], Mask]


def _cat(masks: _Masks, tensors: Sequence[torch.Tensor], dim: int = 0) -> Mask:
    kept = [each for each in tensors if each.shape != (0,)]  # which cat skips
    return torch.cat([masks(each) for each in kept], dim) if kept else _zeros(0)


def _stack(masks: _Masks, tensors: Sequence[torch.Tensor], dim: int = 0) -> Mask:
    return torch.stack([masks(each) for each in tensors], dim)


def _constant_pad_nd(
    masks: _Masks, tensor: torch.Tensor, pad: list[int], *_: float
) -> Mask:
    padded: Mask = aten.constant_pad_nd(masks(tensor), pad, 0)
    return padded


def _scatter_part(packet: Any) -> Callable[..., Mask]:
    def scatter(
        masks: _Masks, tensor: torch.Tensor, part: torch.Tensor, *args: Any, **kw: Any
    ) -> Mask:
        scattered: Mask = packet(masks(tensor), masks(part), *args, **kw)
        return scattered

    return scatter


def _like_itself(packet: Any) -> Callable[..., Mask]:
    def move(masks: _Masks, tensor: torch.Tensor, *args: Any, **kw: Any) -> Mask:
        moved: Mask = packet(masks(tensor), *args, **kw)
        return moved

    return move


# Operators that move elements: each computes the unwritten elements of its result from
# masks of its arguments.
_MOVES: dict[Any, Callable[..., Mask]] = {
    aten._to_copy: lambda masks, tensor, **_: masks(tensor),
    aten.clone: lambda masks, tensor, **_: masks(tensor),
    aten.cat: _cat,
    aten.constant_pad_nd: _constant_pad_nd,
    aten.stack: _stack,
    **{
        packet: _scatter_part(packet)
        for packet in (
            aten.as_strided_scatter,
            aten.diagonal_scatter,
            aten.select_scatter,
            aten.slice_scatter,
        )
    },
    **{
        packet: _like_itself(packet)
        for packet in (aten.flip, aten.repeat, aten.roll, aten.tril, aten.triu)
    },
}
_COPIES = {aten.copy_, aten._foreach_copy_}


class Unwritten:
    """The unwritten bytes of all devices. The caller has a lock."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}

    def __bool__(self) -> bool:
        return bool(self._blocks)

    # ---- memory

    def add(self, tensor: torch.Tensor, place: Place | None, *, captured: bool) -> None:
        """Follows the memory of a new tensor, none of which is written."""
        size = tensor.untyped_storage().nbytes()
        if size:
            self._blocks[storage_address(tensor)] = _Block(size, place, captured)

    def drop(self, address: int) -> None:
        """Stops to follow the memory of a storage."""
        self._blocks.pop(address, None)

    def grow(
        self, tensor: torch.Tensor, before: int, place: Place | None, *, captured: bool
    ) -> None:
        """Follows what ``resize_`` added to a storage of ``before`` bytes."""
        size = tensor.untyped_storage().nbytes()
        if size > before:
            block = _Block(size, place, captured)
            with torch._C._DisableTorchDispatch():
                block.written = _zeros(size)
                block.written[:before] = True
            self._blocks[storage_address(tensor)] = block

    def write(self, tensor: torch.Tensor) -> None:
        """Notes that all elements of a tensor are written."""
        address = storage_address(tensor)
        block = self._blocks.get(address)
        if block is None or tensor.numel() == 0:
            return
        if _covers(tensor, block):
            self.drop(address)
            return
        with torch._C._DisableTorchDispatch():
            _bytes(block, tensor).fill_(True)

    def write_masked(
        self, tensor: torch.Tensor, mask: Mask, place: Place | None, *, captured: bool
    ) -> None:
        """Notes that a tensor has received elements, of which some are unwritten.

        Args:
            tensor: The tensor.
            mask: True for each unwritten element.
            place: The line that allocated the unwritten elements.
            captured: Whether the tensor belongs to the pool of a capture.
        """
        if tensor.numel() == 0:
            return
        with torch._C._DisableTorchDispatch():
            if not mask.any():
                self.write(tensor)
                return
            address = storage_address(tensor)
            block = self._blocks.get(address)
            if block is None:
                block = _Block(tensor.untyped_storage().nbytes(), place, captured)
                block.written = _zeros(block.size).fill_(True)
                self._blocks[address] = block
            target = _bytes(block, tensor)
            target.copy_(~mask.expand(tensor.shape).unsqueeze(-1))

    def mask(self, tensor: torch.Tensor) -> Mask:
        """Returns a mask of a tensor: True for each unwritten element."""
        block = self._blocks.get(storage_address(tensor))
        if block is None or block.written is None:
            return _zeros(()).fill_(block is not None).expand(tensor.shape)
        return ~_bytes(block, tensor).all(-1)

    # ---- operators

    def uses(self, operands: list[Operand]) -> bool:
        """Returns whether one of the tensors has unwritten memory."""
        return any(storage_address(each.tensor) in self._blocks for each in operands)

    def call(
        self,
        func: torch._ops.OpOverload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        operands: list[Operand],
        captured: bool,
    ) -> Read | Moved | None:
        """Notes an operator that is about to be called.

        Args:
            func: The operator.
            args: Its arguments.
            kwargs: Its keyword arguments.
            operands: The tensors among them.
            captured: Whether it is captured, so that it does not run now. Memory from
                outside the capture is checked at each replay.

        Returns:
            A read that has to be reported; or the unwritten elements of the result, if
            there are some; else None.
        """
        if captured:
            operands = [each for each in operands if self._is_captured(each.tensor)]
        with torch._C._DisableTorchDispatch():
            packet = func.overloadpacket
            if packet in _COPIES:
                return self._copy(args, operands, captured)
            if packet in _MOVES and not any(each.writes for each in operands):
                return self._move(packet, args, kwargs, operands)
            return self._compute(func, kwargs, operands)

    def launch(self, operands: list[Operand], captured: bool) -> Read | None:
        """Notes a kernel that may use only a part of its operands."""
        if captured:
            operands = [each for each in operands if self._is_captured(each.tensor)]
        with torch._C._DisableTorchDispatch():
            read = self._first_read(
                (each for each in operands if each.reads and not each.writes),
                every=True,
            )
            for each in operands:
                if each.writes:
                    self.write(each.tensor)
        return read

    def replay(
        self, region: Region, *, writes: bool
    ) -> tuple[int, Place | None] | None:
        """Notes that a replay of a graph uses a region.

        Returns:
            The number of bytes and the line that allocated them, if the replay reads
            the region and no byte of it is written.
        """
        for address, block in [*self._blocks.items()]:
            if not address <= region.start < address + block.size or block.captured:
                continue
            with torch._C._DisableTorchDispatch():
                if not writes:
                    part = _part(block, address, region)
                    return None if part.any() else (part.numel(), block.place)
                if region.end - region.start == block.size and not region.gaps:
                    self.drop(address)
                else:
                    _part(block, address, region).fill_(True)
        return None

    def _is_captured(self, tensor: torch.Tensor) -> bool:
        block = self._blocks.get(storage_address(tensor))
        return block is not None and block.captured

    def _copy(
        self, args: tuple[Any, ...], operands: list[Operand], captured: bool
    ) -> Read | None:
        targets, sources = args[0], args[1]
        if isinstance(targets, torch.Tensor):
            targets, sources = [targets], [sources]
        followed = {id(each.tensor) for each in operands}
        for target, source in zip(targets, sources, strict=True):
            if target.device.type != device_type():
                read = self._first_read(
                    [Operand(source, "src", reads=True, writes=False)]
                    if id(source) in followed
                    else []
                )
                if read is not None:
                    return read
            elif captured and not self._is_captured(target):
                continue  # each replay writes to it
            elif isinstance(source, torch.Tensor) and id(source) in followed:
                self.write_masked(
                    target,
                    self.mask(source),
                    self._place_of([source]),
                    captured=captured,
                )
            else:
                self.write(target)
        return None

    def _move(
        self,
        packet: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        operands: list[Operand],
    ) -> Read | Moved | None:
        if not all(map(_is_plain, tree_leaves((args, kwargs)))):
            return None  # the parts of sparse and nested tensors move together
        device = kwargs.get("device")
        if device is not None and torch.device(device).type != device_type():
            return self._first_read(operands)
        mask = _MOVES[packet](self.mask, *args, **kwargs)
        tensors = [each.tensor for each in operands]
        return Moved(mask, self._place_of(tensors)) if mask.any() else None

    def _compute(
        self,
        func: torch._ops.OpOverload,
        kwargs: dict[str, Any],
        operands: list[Operand],
    ) -> Read | Moved | None:
        packet = func.overloadpacket
        partly = func.namespace != "aten"  # it may read a part
        communicates = func.namespace == "c10d"
        reads = (
            each
            for each in operands
            if each.name not in _SELECTS.get(packet, ())
            and packet not in _ADDS
            and _reads(func, kwargs, each)
        )
        if communicates:  # it may also write to each of its tensors
            reduces = "reduce" in func._schema.name
            reads = (each for each in operands if reduces and not each.writes)
        read = self._first_read(reads, every=partly)
        if read is None and packet in _ADDS:
            read = self._first_read(operands[:1], every=True)
            read = read or self._first_read(operands[1:])
        if read is not None:
            return read
        for each in operands:
            if each.writes or communicates:
                self.write(each.tensor)
        selected = [
            each.tensor for each in operands if each.name in _SELECTS.get(packet, ())
        ]
        if selected and all(bool(self.mask(each).all()) for each in selected):
            return Moved(_zeros(()).fill_(True), self._place_of(selected))
        return None

    def _first_read(
        self, operands: Iterator[Operand] | Sequence[Operand], *, every: bool = False
    ) -> Read | None:
        """Returns the first operand with an unwritten element, or with ``every``."""
        for operand in operands:
            address = storage_address(operand.tensor)
            block = self._blocks.get(address)
            if block is None or operand.tensor.numel() == 0:
                continue
            mask = self.mask(operand.tensor)
            unwritten = int(mask.sum())
            if unwritten and (not every or unwritten == mask.numel()):
                index = int(mask.reshape(-1).to(torch.uint8).argmax())
                first = []
                for size in reversed(mask.shape):
                    index, rest = divmod(index, size)
                    first.append(rest)
                return Read(operand, unwritten, tuple(reversed(first)), block.place)
            if not unwritten and _covers(operand.tensor, block):
                self.drop(address)
        return None

    def _place_of(self, tensors: Sequence[torch.Tensor]) -> Place | None:
        for tensor in tensors:
            block = self._blocks.get(storage_address(tensor))
            if block is not None:
                return block.place
        return None


class Moved(NamedTuple):
    """The unwritten elements of a result.

    Attributes:
        mask: True for each unwritten element.
        allocated: The line that allocated them.
    """

    mask: Mask
    allocated: Place | None


def _reads(
    func: torch._ops.OpOverload, kwargs: dict[str, Any], operand: Operand
) -> bool:
    """Returns whether an operator reads the elements of an argument."""
    packet = func.overloadpacket
    argument = next(a for a in func._schema.arguments if a.name == operand.name)
    if argument.is_out or operand.name in _OUTPUTS.get(packet, ()):
        return False
    first = operand.name == func._schema.arguments[0].name
    if first and (packet in _OVERWRITES or packet in _PUTS):
        return False
    if first and packet in _SCALED and kwargs.get("beta", 1) == 0:
        return False
    if operand.writes:
        if packet is aten._fused_sgd_ and operand.name == "momentum_buffer_list":
            return not kwargs.get("is_first_step")
        # Other libraries also declare outputs as arguments that they write to.
        return func.namespace == "aten"
    return operand.reads


def _is_plain(leaf: object) -> bool:
    return not isinstance(leaf, torch.Tensor) or (
        leaf.layout == torch.strided and not leaf.is_nested
    )


def _zeros(shape: int | tuple[int, ...]) -> Mask:
    return torch.zeros(shape, dtype=torch.bool, device="cpu")


def _bytes(block: _Block, tensor: torch.Tensor) -> torch.Tensor:
    """Returns the mask of a tensor's bytes: its shape, and the bytes of an element."""
    if block.written is None:
        block.written = _zeros(block.size)
    item = tensor.element_size()
    return block.written.as_strided(
        (*tensor.shape, item),
        (*(stride * item for stride in tensor.stride()), 1),
        int(tensor.storage_offset()) * item,
    )


def _covers(tensor: torch.Tensor, block: _Block) -> bool:
    """Returns whether a tensor has all bytes of a storage."""
    region = region_of(tensor)
    if region is None or region.gaps:
        return False
    return region.end - region.start >= block.size


def _part(block: _Block, address: int, region: Region) -> torch.Tensor:
    """Returns the mask of the bytes of a region."""
    if block.written is None:
        block.written = _zeros(block.size)
    start, end, gaps = region
    if not gaps:
        return block.written[start - address : end - address]
    sizes, strides = zip(*gaps, strict=True)
    return block.written.as_strided(sizes, strides, start - address)
