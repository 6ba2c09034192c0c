# SPDX-License-Identifier: BSD-3-Clause
"""Tests of memory: the rules of the allocator, peaks, and what makes runs fit."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

import openreg_predict
from openreg_predict import DescribedDevice, Record, load_device
from openreg_predict._analysis.analysis import analyze
from openreg_predict._memory.allocator import (
    MIN_BLOCK,
    Block,
    CachingAllocator,
    OutOfMemoryError,
)
from openreg_predict._memory.replay import MemoryModel
from openreg_predict._predictions.remedies import remedies_of

torch.set_num_threads(1)
MIB = 1 << 20


def statistics() -> tuple[int, int, int]:
    """Returns the counters of the device's own allocator."""
    stats = torch.openreg.memory_stats()
    names = ("allocated_bytes", "reserved_bytes", "inactive_split_bytes")
    return tuple(stats[f"{name}.all.current"] for name in names)  # type: ignore[return-value]


@pytest.mark.parametrize("seed", range(8))
def test_the_counters_are_those_of_the_allocator_of_the_device(seed: int) -> None:
    torch.openreg.synchronize()
    torch.openreg.empty_cache()
    base = statistics()
    assert base[2] == 0
    rng = random.Random(seed)
    allocator = CachingAllocator()
    live: list[tuple[torch.Tensor, Block]] = []
    for _ in range(150):
        size = int(2 ** rng.uniform(4, 25))
        tensor = torch.empty(size, dtype=torch.uint8, device="openreg")
        live.append((tensor, allocator.malloc(size)))
        del tensor
        while len(live) > 40 or (live and rng.random() < 0.45):
            allocator.free(live.pop(rng.randrange(len(live)))[1])
            found = (
                allocator.allocated,
                allocator.reserved,
                allocator.inactive_split(),
            )
            expected = [now - b for now, b in zip(statistics(), base, strict=True)]
            assert list(found) == expected


@pytest.mark.parametrize(
    ("size", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 1, 10 * MIB, 10 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        (19 * MIB, 20 * MIB, 20 * MIB),
        (21 * MIB, 22 * MIB, 22 * MIB),
    ],
)
def test_sizes_are_rounded(size: int, block: int, segment: int) -> None:
    allocator = CachingAllocator()
    assert allocator.malloc(size).size in (block, segment)
    assert allocator.reserved == segment


def test_streams_do_not_share_blocks() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.malloc(30 * MIB, 0))
    allocator.malloc(30 * MIB, 1)
    assert allocator.reserved == 60 * MIB
    allocator.malloc(30 * MIB, 0)
    assert allocator.reserved == 60 * MIB


def test_short_memory_empties_the_cache_before_it_fails() -> None:
    allocator = CachingAllocator(100 * MIB)
    allocator.free(allocator.malloc(60 * MIB))
    allocator.malloc(80 * MIB)
    assert allocator.retries == 1
    with pytest.raises(OutOfMemoryError) as error:
        allocator.malloc(30 * MIB)
    assert error.value.short == 10 * MIB


def test_expandable_segments_leave_no_holes() -> None:
    sizes = [30 * MIB, 50 * MIB]
    reserved = []
    for expandable in (False, True):
        allocator = CachingAllocator(expandable=expandable)
        for block in [allocator.malloc(size) for size in sizes]:
            allocator.free(block)
        allocator.malloc(80 * MIB)
        reserved.append(allocator.reserved)
    assert reserved == [160 * MIB, 80 * MIB]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(256, 256, bias=False) for _ in range(4)))


def train(batch: int = 64, *, dry: bool = False) -> Record:
    with openreg_predict.record(dry=dry) as record:
        model = small_model().to("openreg")
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.ones(batch, 256, device="openreg")
        for _ in range(2):
            y = x
            for layer in model:
                y = layer(y).relu()
            y.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return record


def test_the_peak_of_a_run_is_that_of_the_device() -> None:
    torch.openreg.synchronize()
    torch.openreg.empty_cache()
    base = torch.openreg.memory_allocated()
    torch.openreg.reset_peak_memory_stats()
    with openreg_predict.record() as record:
        x = torch.ones(1000, 1000, device="openreg")
        y = [x + i for i in range(4)]
        z = (y[0] * y[1]).exp_()
        y.clear()
        z = z + x
    use = MemoryModel(record).use(load_device("t4"))
    assert use.allocated_peak == torch.openreg.max_memory_allocated() - base
    del z


def test_a_dry_run_has_the_peak_of_a_real_one() -> None:
    uses = [
        train(dry=dry).predict("h100-sxm").memory[0].allocated_peak
        for dry in (False, True)
    ]
    assert uses[0] == uses[1]


def test_holders_at_the_peak_have_the_sizes_of_the_model() -> None:
    holders = train().predict("h100-sxm").memory[0].holders
    weight = 256 * 256 * 4
    assert holders["parameters"] == 4 * weight
    assert holders["gradients"] == 4 * weight
    # Two moments of each parameter, and its step.
    assert 8 * weight <= holders["optimizer"] <= 8 * weight + 4 * MIN_BLOCK
    assert holders["workspace"] == 32 * MIB


def test_activations_at_the_peak_have_the_module_that_made_them() -> None:
    with openreg_predict.record(dry=True) as record:
        model = nn.Sequential(nn.Linear(64, 4096), nn.GELU(), nn.Linear(4096, 1))
        model.to("openreg")
        model(torch.ones(4096, 64, device="openreg")).sum().backward()
    modules = record.predict("h100-sxm").memory[0].modules
    assert {"0", "1"} & set(modules)


def scaled(capacity: int) -> DescribedDevice:
    device = load_device("h100-sxm")
    return device.scaled(memory_capacity=capacity / device["memory_capacity"])


def test_the_verdict_counts_what_is_missing() -> None:
    record = train(2**16)
    use = record.predict("h100-sxm").memory[0]
    assert use.fits
    assert use.spare == use.capacity - use.context - use.reserved_peak
    small = record.predict(scaled(use.context + use.allocated_peak // 2)).memory[0]
    assert not small.fits
    assert small.out_of_memory > use.allocated_peak // 4


def test_remedies_are_computed_by_a_replay() -> None:
    with openreg_predict.record(dry=True) as record:
        model = nn.ModuleDict({"blocks": nn.ModuleList(
            nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
            for _ in range(8)
        )}).to("openreg")  # fmt: skip
        holder = _Holder(model)
        optimizer = torch.optim.AdamW(model.parameters())
        holder(torch.ones(2**14, 512, device="openreg")).sum().backward()
        optimizer.step()
    prediction = record.predict("h100-sxm")
    peak = prediction.memory[0].reserved_peak
    remedies = {each.change: each for each in remedies_of(prediction)}
    assert remedies["checkpointing of each block"].peak < 0.5 * peak
    assert remedies["batch size / 2"].peak < 0.6 * peak
    assert remedies["bfloat16 instead of float32"].peak < 0.6 * peak
    stages = [name for name in remedies if name.startswith("ZeRO")]
    assert len(stages) == 3


class _Holder(nn.Module):
    """A model whose blocks are called one after the other."""

    def __init__(self, model: nn.ModuleDict) -> None:
        super().__init__()
        self.blocks = model["blocks"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Calls the blocks."""
        for block in self.blocks:
            x = block(x)
        return x


@pytest.mark.parametrize("dropout_p", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dry_run_takes_attention_of_tensors_that_were_made_before(
    dtype: torch.dtype, dropout_p: float
) -> None:
    x = torch.zeros(2, 4, 64, 8, device="openreg", dtype=dtype, requires_grad=True)
    for dry in (False, True):
        with openreg_predict.record(dry=dry) as record:
            y = nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=dropout_p)
            y.sum().backward()
        assert isinstance(y, FakeTensor) == dry
        kernels = [op.call.name for op in record.ops() if "attention" in op.call.name]
        assert len(kernels) == 2, kernels  # one in each direction
        x.grad = None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_with_dropout_has_the_peak_of_a_dry_run(dtype: torch.dtype) -> None:
    def run(dry: bool) -> int:
        with openreg_predict.record(dry=dry) as record:
            x = torch.zeros(2, 64, 3 * 32, device="openreg", dtype=dtype)
            x.requires_grad_()
            parts = (y.view(2, 64, 4, 8).transpose(1, 2) for y in x.split(32, 2))
            y = nn.functional.scaled_dot_product_attention(*parts, dropout_p=0.5)
            y.transpose(1, 2).reshape(2, 64, 32).square().sum().backward()
        return record.predict("t4").memory[0].allocated_peak

    assert run(dry=False) == run(dry=True)


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("early_stop", [False, True])
def test_compiled_checkpoints_keep_only_what_the_backward_pass_reads(
    dry: bool, early_stop: bool
) -> None:
    """The result of the second product of a block is kept, but only added."""
    from torch.utils.checkpoint import (
        checkpoint,
        create_selective_checkpoint_contexts,
        set_checkpoint_early_stop,
    )

    def contexts() -> object:
        return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up = nn.Linear(64, 64, bias=False)
            self.down = nn.Linear(64, 64, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Computes the block, and again in the backward pass."""
            return checkpoint(self.inner, x, use_reentrant=False, context_fn=contexts)  # type: ignore[no-any-return]

        def inner(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.down(self.up(x).sin())

    def peak(*, is_compiled: bool) -> int:
        with (
            openreg_predict.record(dry=dry) as record,
            set_checkpoint_early_stop(early_stop),
        ):
            blocks = [Block().to("openreg") for _ in range(4)]
            if is_compiled:
                blocks = [torch.compile(block, backend="eager") for block in blocks]
            x = torch.zeros(1024, 64, device="openreg", requires_grad=True)
            kept = []
            for block in blocks:
                x = block(x)
                kept.append(x)
            x.sum().backward()
            del kept
        return analyze(record).memory.use(load_device("t4")).allocated_peak

    size = 1024 * 64 * 4
    eager, compiled = peak(is_compiled=False), peak(is_compiled=True)
    # Four results of products, of which the last is not there at each peak.
    assert 3 * size < eager - compiled <= 6 * size


def test_storages_that_a_program_empties_count_again_when_it_fills_them() -> None:
    with openreg_predict.record() as record:
        x = torch.empty(2**20, dtype=torch.uint8, device="openreg")
        x.untyped_storage().resize_(0)
        y = torch.empty(2**20, dtype=torch.uint8, device="openreg")
        del y
        x.untyped_storage().resize_(2**20)
    assert MemoryModel(record).use(load_device("t4")).allocated_peak == 2**20
