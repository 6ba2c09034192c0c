# SPDX-License-Identifier: BSD-3-Clause
"""Every collective, with every type and geometry, against values computed here.

All cases run in one group of three ranks, once through shared memory and once through
gloo.
"""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist

from openreg_distributed import Options
from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

RANKS = 3
DEVICE = "openreg"
INTEGERS = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint16, torch.uint32, torch.uint64),
)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)
COMPLEX = (torch.complex64, torch.complex128)
DTYPES = (torch.bool, *INTEGERS, *FLOATS, *EIGHT_BITS, *COMPLEX)
# The dtypes that gloo reduces on CPU tensors.
GLOO = (*FLOATS, torch.uint8, torch.int8, torch.int32, torch.int64)
LAYOUTS = ("contiguous", "strided", "transposed", "empty", "scalar")
SHAPES = {"empty": (0, 3), "scalar": ()}
CASES: dict[str, Callable[..., None]] = {}


def case(function: Callable[..., None]) -> Callable[..., None]:
    CASES[function.__name__] = function
    return function


def values(rank: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Returns a rank's input, small enough to be exact in every dtype."""
    generator = torch.Generator().manual_seed(rank)
    numbers = torch.randint(0, 3, shape, generator=generator)
    return (numbers > 0) if dtype == torch.bool else numbers.to(dtype)


def place(value: torch.Tensor, layout: str, device: str = DEVICE) -> torch.Tensor:
    """Returns a copy on the device with the strides of a layout."""
    if layout == "strided":
        shape = (*value.shape[:-1], 2 * value.shape[-1])
        placed = torch.zeros(shape, dtype=value.dtype, device=device)[..., ::2]
        return placed.copy_(value)
    if layout == "transposed":
        return value.t().contiguous().to(device).t()
    return value.to(device, copy=True)


def blank(shape: tuple[int, ...], dtype: torch.dtype, layout: str) -> torch.Tensor:
    return place(torch.zeros(shape).to(dtype), layout)


def numbers(tensor: torch.Tensor) -> torch.Tensor:
    host = tensor.detach().cpu()
    return host.to(torch.complex128 if host.is_complex() else torch.float64)


mismatches: list[str] = []


def expect(found: torch.Tensor, wanted: torch.Tensor, what: object) -> None:
    """Records a difference. Raising would leave the others in the next collective."""
    same = found.shape == wanted.shape and found.dtype == wanted.dtype
    if not same or not torch.equal(numbers(found), numbers(wanted)):
        mismatches.append(f"{what}: found {found.cpu()}, wanted {wanted}")


def every(dtypes: tuple[torch.dtype, ...] = DTYPES) -> Iterator[tuple]:
    for dtype in dtypes:
        for layout in LAYOUTS:
            yield dtype, layout, SHAPES.get(layout, (4, 3))


def reduced(op: dist.ReduceOp, given: list[torch.Tensor]) -> torch.Tensor:
    """Computes the same reduction with PyTorch's operators."""
    dtype = given[0].dtype
    if dtype.is_complex:  # parts are divided by a real number
        parts = [torch.view_as_real(each) for each in given]
        return torch.view_as_complex(reduced(op, parts))
    wide = torch.float64
    if op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        wide = torch.int64
    stacked = torch.stack([each.to(wide) for each in given])
    if op == dist.ReduceOp.SUM:
        result = stacked.sum(0)
    elif op == dist.ReduceOp.AVG:
        result = stacked.sum(0)
        exact = dtype.is_floating_point
        result = (result.to(dtype) if exact else result) / len(given)
        result = result if exact else result.trunc()
    elif op == dist.ReduceOp.PRODUCT:
        result = stacked.prod(0)
    elif op == dist.ReduceOp.MIN:
        result = stacked.amin(0)
    elif op == dist.ReduceOp.MAX:
        result = stacked.amax(0)
    else:
        result = stacked[0]
        for each in stacked[1:]:
            if op == dist.ReduceOp.BAND:
                result = result & each
            elif op == dist.ReduceOp.BOR:
                result = result | each
            else:
                result = result ^ each
    return (result != 0) if dtype == torch.bool else result.to(dtype)


def operations(dtype: torch.dtype) -> list[dist.ReduceOp]:
    names = ["SUM"]
    if not dtype.is_complex:
        names += ["PRODUCT", "MIN", "MAX"]
    if dtype not in (torch.bool, torch.uint64, *EIGHT_BITS):
        names += ["AVG"]
    if dtype == torch.bool or dtype in INTEGERS:
        names += ["BAND", "BOR", "BXOR"]
    return [getattr(dist.ReduceOp, name) for name in names]


def gathered(dtype: torch.dtype, shape: tuple[int, ...]) -> list[torch.Tensor]:
    return [values(rank, dtype, shape) for rank in range(RANKS)]


@case
def broadcast(rank: int) -> None:
    for dtype, layout, shape in every():
        tensor = place(values(rank, dtype, shape), layout)
        dist.broadcast(tensor, 1)
        expect(tensor, values(1, dtype, shape), (dtype, layout))


@case
def all_reduce(rank: int) -> None:
    for dtype, layout, shape in every():
        for op in operations(dtype):
            tensor = place(values(rank, dtype, shape), layout)
            dist.all_reduce(tensor, op)
            expect(tensor, reduced(op, gathered(dtype, shape)), (dtype, layout, op))


@case
def sums_of_floats_to_the_bit(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    for dtype in GLOO:
        given = []
        for each in range(RANKS):
            generator = torch.Generator().manual_seed(each)
            given.append((torch.randn(257, generator=generator) * 9).to(dtype))
        tensor = given[rank].to(DEVICE)
        dist.all_reduce(tensor)
        # gloo sums in its own order, shared memory in the order of ranks.
        wanted = given[rank].clone()
        dist.all_reduce(wanted)
        if backend.shares_memory:
            wanted = given[0] + given[1] + given[2]
        assert torch.equal(tensor.cpu(), wanted), dtype


@case
def all_reduce_with_factor(rank: int) -> None:
    for dtype in (*FLOATS, torch.complex64):
        wanted = 2 * reduced(dist.ReduceOp.SUM, gathered(dtype, (4, 3)))
        for factor in (2.0, torch.tensor([2.0], dtype=dtype, device=DEVICE)):
            if dtype.is_complex and not isinstance(factor, float):
                continue
            tensor = place(values(rank, dtype, (4, 3)), "contiguous")
            dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
            expect(tensor, wanted, (dtype, factor))


@case
def all_reduce_of_large_unsigned_numbers(rank: int) -> None:
    dtype = torch.uint64
    for op, wanted in ((dist.ReduceOp.MIN, 5), (dist.ReduceOp.MAX, 2**63 + 2)):
        tensor = torch.tensor([2**63 + 2, 2**63, 5][rank], dtype=dtype).to(DEVICE)
        dist.all_reduce(tensor, op)
        assert tensor.cpu().item() == wanted


@case
def a_number_wins_over_nan(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    if not backend.shares_memory:
        return  # the results of gloo depend on its order
    nan = float("nan")
    given = [[nan, 1.0, nan, nan], [1.0, nan, nan, nan], [2.0, 2.0, 2.0, nan]]
    for dtype in FLOATS:
        for op, wanted in (
            (dist.ReduceOp.MIN, [1.0, 1.0, 2.0, nan]),
            (dist.ReduceOp.MAX, [2.0, 2.0, 2.0, nan]),
        ):
            tensor = torch.tensor(given[rank], dtype=dtype, device=DEVICE)
            dist.all_reduce(tensor, op)
            assert str(tensor.tolist()) == str(wanted)


@case
def all_reduce_coalesced(rank: int) -> None:
    shapes = [(3,), (2, 2), ()]
    tensors = [place(values(rank, torch.float32, each), "") for each in shapes]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor, shape in zip(tensors, shapes, strict=True):
        wanted = reduced(dist.ReduceOp.SUM, gathered(torch.float32, shape))
        expect(tensor, wanted, shape)


@case
def reduce(rank: int) -> None:
    for dtype, layout, shape in every():
        for op in operations(dtype):
            tensor = place(values(rank, dtype, shape), layout)
            dist.reduce(tensor, 2, op)
            wanted = values(rank, dtype, shape)  # the others keep their data
            if rank == 2:
                wanted = reduced(op, gathered(dtype, shape))
            expect(tensor, wanted, (dtype, layout, op))


@case
def all_gather(rank: int) -> None:
    for dtype, layout, shape in every():
        outputs = [blank(shape, dtype, layout) for _ in range(RANKS)]
        dist.all_gather(outputs, place(values(rank, dtype, shape), layout))
        for source, output in enumerate(outputs):
            expect(output, values(source, dtype, shape), (dtype, layout))


@case
def all_gather_of_different_sizes(rank: int) -> None:
    for dtype in DTYPES:
        shapes = [(each, 2) for each in range(RANKS)]  # the first rank has none
        outputs = [torch.zeros(each).to(dtype).to(DEVICE) for each in shapes]
        dist.all_gather(outputs, values(rank, dtype, shapes[rank]).to(DEVICE))
        for source, output in enumerate(outputs):
            expect(output, values(source, dtype, shapes[source]), dtype)


@case
def all_gather_into_tensor(rank: int) -> None:
    for dtype, layout, shape in every():
        for dimension in ("concatenated", "stacked"):
            join = torch.cat if dimension == "concatenated" else torch.stack
            if not shape and dimension == "concatenated":
                continue
            wanted = join(
                [each.to(torch.complex128) for each in gathered(dtype, shape)]
            )
            wanted = (wanted if dtype.is_complex else wanted.real).to(dtype)
            kind = layout if wanted.dim() == 2 else "contiguous"
            output = blank(tuple(wanted.shape), dtype, kind)
            input = place(values(rank, dtype, shape), layout)
            dist.all_gather_into_tensor(output, input)
            expect(output, wanted, (dtype, layout, dimension))


@case
def all_gather_into_tensors_coalesced(rank: int) -> None:
    inputs = [values(rank, torch.int32, (n,)).to(DEVICE) for n in (1, 4)]
    outputs = [torch.zeros(RANKS * n, dtype=torch.int32, device=DEVICE) for n in (1, 4)]
    with dist._coalescing_manager():
        for output, input in zip(outputs, inputs, strict=True):
            dist.all_gather_into_tensor(output, input)
    for output, n in zip(outputs, (1, 4), strict=True):
        expect(output, torch.cat(gathered(torch.int32, (n,))), n)


@case
def all_gather_coalesced(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    # Two tensors of each rank, with sizes that differ between ranks.
    shapes = [[(rank + 1, 3), (4 - rank,)] for rank in range(RANKS)]
    inputs = [values(rank, torch.float32, shape).to(DEVICE) for shape in shapes[rank]]
    outputs = [[torch.zeros(shape, device=DEVICE) for shape in own] for own in shapes]
    backend.allgather_coalesced(outputs, inputs).wait()
    for source, own in enumerate(shapes):
        for output, shape in zip(outputs[source], own, strict=True):
            expect(output, values(source, torch.float32, shape), (source, shape))


@case
def reduce_scatter(rank: int) -> None:
    for dtype, layout, shape in every():
        for op in operations(dtype):
            inputs = [
                place(values(10 * rank + to, dtype, shape), layout)
                for to in range(RANKS)
            ]
            output = blank(shape, dtype, layout)
            dist.reduce_scatter(output, inputs, op)
            given = [values(10 * each + rank, dtype, shape) for each in range(RANKS)]
            expect(output, reduced(op, given), (dtype, layout, op))


@case
def reduce_scatter_tensor(rank: int) -> None:
    for dtype in DTYPES:
        for op in operations(dtype):
            for layout in ("contiguous", "transposed"):
                given = [values(each, dtype, (RANKS * 2, 4)) for each in range(RANKS)]
                input = place(given[rank], layout)
                output = blank((2, 4), dtype, layout)
                dist.reduce_scatter_tensor(output, input, op)
                wanted = reduced(op, given)[2 * rank : 2 * rank + 2]
                expect(output, wanted, (dtype, layout, op))
                expect(input, given[rank], "the input")


@case
def reduce_scatter_tensors_coalesced(rank: int) -> None:
    inputs = [values(rank, torch.float32, (RANKS * n,)).to(DEVICE) for n in (1, 4)]
    outputs = [torch.zeros(n, device=DEVICE) for n in (1, 4)]
    with dist._coalescing_manager():
        for output, input in zip(outputs, inputs, strict=True):
            dist.reduce_scatter_tensor(output, input)
    for output, n in zip(outputs, (1, 4), strict=True):
        wanted = reduced(dist.ReduceOp.SUM, gathered(torch.float32, (RANKS * n,)))
        expect(output, wanted[n * rank : n * rank + n], n)


@case
def gather(rank: int) -> None:
    for dtype, layout, shape in every():
        outputs = [blank(shape, dtype, layout) for _ in range(RANKS)]
        input = place(values(rank, dtype, shape), layout)
        dist.gather(input, outputs if rank == 1 else None, dst=1)
        for source, output in enumerate(outputs if rank == 1 else []):
            expect(output, values(source, dtype, shape), (dtype, layout))


@case
def scatter(rank: int) -> None:
    for dtype, layout, shape in every():
        inputs = [place(values(each, dtype, shape), layout) for each in range(RANKS)]
        output = blank(shape, dtype, layout)
        dist.scatter(output, inputs if rank == 1 else None, src=1)
        expect(output, values(rank, dtype, shape), (dtype, layout))


@case
def all_to_all(rank: int) -> None:
    for dtype, layout, shape in every():
        inputs = [
            place(values(10 * rank + to, dtype, shape), layout) for to in range(RANKS)
        ]
        outputs = [blank(shape, dtype, layout) for _ in range(RANKS)]
        dist.all_to_all(outputs, inputs)
        for source, output in enumerate(outputs):
            expect(output, values(10 * source + rank, dtype, shape), (dtype, layout))


@case
def all_to_all_single(rank: int) -> None:
    for dtype in DTYPES:
        for layout in ("contiguous", "strided", "transposed"):
            given = [values(each, dtype, (RANKS * 2, 4)) for each in range(RANKS)]
            output = blank((RANKS * 2, 4), dtype, layout)
            dist.all_to_all_single(output, place(given[rank], layout))
            for source in range(RANKS):
                part = slice(2 * source, 2 * source + 2)
                wanted = given[source][2 * rank : 2 * rank + 2]
                expect(output[part], wanted, (dtype, layout))


@case
def all_to_all_single_of_different_sizes(rank: int) -> None:
    # Rank r sends r + to rows to rank `to`; the first sends none to itself.
    sends = [[source + to for to in range(RANKS)] for source in range(RANKS)]
    receives = [sends[source][rank] for source in range(RANKS)]
    for dtype in DTYPES:
        for layout in ("contiguous", "strided", "transposed"):
            input = place(values(rank, dtype, (sum(sends[rank]), 2)), layout)
            output = blank((sum(receives), 2), dtype, layout)
            dist.all_to_all_single(output, input, receives, sends[rank])
            for source, part in enumerate(output.split(receives)):
                rows = values(source, dtype, (sum(sends[source]), 2))
                expect(part, rows.split(sends[source])[rank], (dtype, layout))


@case
def all_to_all_single_of_overlapping_tensors(rank: int) -> None:
    for first in (0, 1, 3):  # offset of the output in the input's memory
        memory = torch.zeros(2 * RANKS + 3, 2, device=DEVICE)
        input = memory[: 2 * RANKS].copy_(values(rank, torch.float32, (2 * RANKS, 2)))
        output = memory[first : first + 2 * RANKS]
        dist.all_to_all_single(output, input)
        for source, part in enumerate(output.split(2)):
            rows = values(source, torch.float32, (2 * RANKS, 2))
            expect(part, rows.split(2)[rank], first)


@case
def send_and_recv(rank: int) -> None:
    for dtype, layout, shape in every():
        tensor = place(values(0, dtype, shape), layout)
        received = blank(shape, dtype, layout)
        if rank == 0:
            dist.send(tensor, 1, tag=7)
        elif rank == 1:
            dist.recv(received, 0, tag=7)
            expect(received, values(0, dtype, shape), (dtype, layout))


@case
def recv_from_any_rank(rank: int) -> None:
    if rank == 0:
        sources = set()
        for _ in range(RANKS - 1):
            received = torch.zeros(4, 3, device=DEVICE)
            sources.add(source := dist.recv(received, tag=8))
            expect(received, values(source, torch.float32, (4, 3)), source)
        assert sources == {1, 2}
    else:
        # A separate tag, because another rank may still send this in the next case.
        dist.send(values(rank, torch.float32, (4, 3)).to(DEVICE), 0, tag=8)


@case
def batch_in_a_ring(rank: int) -> None:
    # Each rank sends before it receives, also to itself, so all operations must begin
    # together.
    for dtype in DTYPES:
        given = values(rank, dtype, (4, 3)).to(DEVICE)
        received, own = torch.zeros_like(given), torch.zeros_like(given)
        before, after = (rank - 1) % RANKS, (rank + 1) % RANKS
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, given, after),
                dist.P2POp(dist.isend, given, rank),
                dist.P2POp(dist.irecv, own, rank),
                dist.P2POp(dist.irecv, received, before),
            ]
        )
        for work in works:
            work.wait()
        expect(received, values(before, dtype, (4, 3)), dtype)
        expect(own, values(rank, dtype, (4, 3)), dtype)


@case
def objects(rank: int) -> None:
    found = [None] * RANKS
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": each} for each in range(RANKS)]
    shared = ["first" if rank == 0 else None]
    dist.broadcast_object_list(shared, 0, device=torch.device(DEVICE))
    assert shared == ["first"]


@case
def negative_views(rank: int) -> None:
    value = torch.complex(torch.ones(3), torch.full((3,), rank + 1.0))
    negative = value.to(DEVICE).conj().imag
    assert negative.is_neg()
    outputs = [torch.zeros(3, device=DEVICE) for _ in range(RANKS)]
    dist.all_gather(outputs, negative)
    for source, output in enumerate(outputs):
        expect(output, torch.full((3,), -(source + 1.0)), source)


@case
def subgroups(rank: int) -> None:
    group = dist.new_group([0, 2])
    tensor = values(rank, torch.float32, (4, 3)).to(DEVICE)
    if rank != 1:
        dist.all_reduce(tensor, group=group)
        given = [values(each, torch.float32, (4, 3)) for each in (0, 2)]
        expect(tensor, reduced(dist.ReduceOp.SUM, given), "the sum of two")


@case
def wrong_calls_name_what_is_wrong(rank: int) -> None:
    floats = torch.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="bitwise reductions need integers"):
        dist.all_reduce(floats, dist.ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="cannot be reduced with AVG"):
        dist.all_reduce(floats.bool(), dist.ReduceOp.AVG)
    for splits, match in {
        (1, 1, 2): r"split sizes \[1, 1, 2\] do not add up to .* of shape \[3\]",
        (1, 1, 0): r"split sizes \[1, 1, 0\] do not add up to .* of shape \[3\]",
        (2**63 - 1, 2**63 - 1, 5): "do not add up to",
        (2, 2, -1): "split sizes cannot be negative, but one is -1",
        (1, 2): "expected 3 split sizes, but got 2",
    }.items():
        for given in ((splits, (1, 1, 1)), ((1, 1, 1), splits)):
            with pytest.raises(RuntimeError, match=match):
                dist.all_to_all_single(
                    torch.ones_like(floats), floats, *map(list, given)
                )
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        dist.all_reduce(floats[:1].expand(3))
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    larger = [[torch.zeros(8, device=DEVICE)] for _ in range(RANKS)]
    with pytest.raises(RuntimeError, match=r"shape \[3\] has an output of shape \[8\]"):
        backend.allgather_coalesced(larger, [floats])
    options = dist.BroadcastOptions()
    options.rootRank = RANKS
    with pytest.raises(RuntimeError, match="the root is 3, but the group has 3 ranks"):
        backend.broadcast([floats], options)
    with pytest.raises(RuntimeError, match="the peer is 3, but the group has 3 ranks"):
        backend.recv([floats], RANKS, 0)
    with pytest.raises(
        RuntimeError, match="needs the matching operation in the same batch"
    ):
        backend.recv([floats], rank, 0)
    other = 1 - torch.accelerator.current_device_index()
    elsewhere = torch.ones(1, device=f"{DEVICE}:{other}")
    with pytest.raises(RuntimeError, match=r"one device, but are on openreg:\d and"):
        dist.all_gather([elsewhere] * RANKS, floats[:1])
    dist.all_reduce(floats)  # the group has not failed
    expect(floats, torch.full((3,), float(RANKS)), "after wrong calls")


@case
def sequence_numbers(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    before = backend._get_sequence_number_for_group()
    dist.all_reduce(torch.ones(1, device=DEVICE))
    dist.barrier(device_ids=[0])
    assert backend._get_sequence_number_for_group() == before + 2
    assert backend.name() == "occl"
    assert backend.options.backend == "occl"


def run_all(rank: int, share_memory: bool) -> dict[str, str]:
    dist.init_process_group(
        "cpu:gloo,openreg:occl",
        timeout=datetime.timedelta(seconds=30),
        pg_options=Options(share_memory=share_memory),
    )
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    assert backend.shares_memory == share_memory
    failures = {}
    for name, function in CASES.items():
        mismatches.clear()
        try:
            function(rank)
        except Exception:
            mismatches.append(traceback.format_exc())
        if mismatches:
            failures[name] = "\n".join(mismatches)
    dist.destroy_process_group()
    return failures


@pytest.fixture(scope="module", params=["shared memory", "gloo"])
def failures(request: pytest.FixtureRequest) -> list[dict[str, str]]:
    share = request.param == "shared memory"
    return run_ranks(run_all, RANKS, share, seconds=150, backend=None)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", CASES)
def test_collective(failures, name):
    wrong = [
        f"rank {i}:\n{each[name]}" for i, each in enumerate(failures) if name in each
    ]
    assert not wrong, "\n".join(wrong)
