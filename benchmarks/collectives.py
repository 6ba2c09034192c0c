# SPDX-License-Identifier: BSD-3-Clause
"""Compares collectives of two ranks: occl on a device and gloo on the CPU.

One group has both backends. The same two processes run batches of each backend, and of
a memcpy of the same size, in turn. The ranks of this group share memory. A second group
uses occl over gloo, as ranks on several hosts do.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from models import GPT, training_step
from side_by_side import Make, Work, batch, calls_for, machine, synchronize
from torch.nn.parallel import DistributedDataParallel

from openreg_distributed import Options
from torch_openreg.testing import run_ranks

RANKS = 2
SIZES = {"1 KiB": 2**10, "1 MiB": 2**20, "64 MiB": 2**26}
SIDES = ("memcpy", "gloo", "over gloo", "occl")
DEVICES = {"gloo": "cpu", "over gloo": "openreg", "occl": "openreg"}


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: The case.
        memcpy_us: Median time of one memcpy in microseconds, None for a training step.
        gloo_us: Median time of one call on the CPU.
        over_gloo_us: Median time on the device with occl over gloo, or None.
        occl_us: Median time of one call on the device with shared memory.
        over_by_gloo: Quartiles of the ratio of occl over gloo to gloo, by round, or
            None.
        by_gloo: Quartiles of the ratio of occl to gloo, by round.
        by_memcpy: Quartiles of the ratio of occl to memcpy, by round, or None.
        rounds: The number of rounds.
        calls: Calls in each batch of a round, by side. Batches take equally long on
            all sides, because ranks do not start them at exactly the same time.
    """

    name: str
    memcpy_us: float | None
    gloo_us: float
    over_gloo_us: float | None
    occl_us: float
    over_by_gloo: list[float] | None
    by_gloo: list[float]
    by_memcpy: list[float] | None
    rounds: int
    calls: dict[str, int]


Group = dist.ProcessGroup | None


def all_reduce(device: str, size: int, group: Group) -> Work:
    """Sums a tensor of ``size`` bytes."""
    return partial(dist.all_reduce, torch.zeros(size // 4, device=device), group=group)


def all_gather(device: str, size: int, group: Group) -> Work:
    """Gathers a tensor of ``size`` bytes from the parts of all ranks."""
    whole = torch.zeros(size // 4, device=device)
    part = torch.zeros(size // 4 // RANKS, device=device)
    return partial(dist.all_gather_single, whole, part, group=group)


def broadcast(device: str, size: int, group: Group) -> Work:
    """Sends a tensor of ``size`` bytes from rank 0."""
    tensor = torch.zeros(size // 4, device=device)
    return partial(dist.broadcast, tensor, 0, group=group)


def all_to_all(device: str, size: int, group: Group) -> Work:
    """Exchanges the parts of a tensor of ``size`` bytes."""
    output, given = (torch.zeros(size // 4, device=device) for _ in range(2))
    return partial(dist.all_to_all_single, output, given, group=group)


def round_trip(device: str, size: int, group: Group) -> Work:
    """Sends a tensor of ``size`` bytes to the other rank, which sends it back."""
    tensor = torch.zeros(size // 4, device=device)
    rank = dist.get_rank()
    order = (dist.recv, dist.send) if rank else (dist.send, dist.recv)

    def call() -> None:
        for operation in order:
            operation(tensor, 1 - rank, group=group)

    return call


def reduce_scatter(device: str, size: int, group: Group) -> Work:
    """Sums a tensor of ``size`` bytes; each rank receives a part of the sum."""
    whole = torch.zeros(size // 4, device=device)
    part = torch.zeros(size // 4 // RANKS, device=device)
    return partial(dist.reduce_scatter_single, part, whole, group=group)


Collective = Callable[[str, int, Group], Work]


def waited(make: Collective) -> Collective:
    """Adds a wait of the host after each call."""

    def prepare(device: str, size: int, group: Group) -> Work:
        work = make(device, size, group)

        def call() -> None:
            work()
            synchronize(device)

        return call

    return prepare


def copied(size: int) -> Work:
    """Copies ``size`` bytes within host memory."""
    to, source = torch.zeros(size // 4), torch.ones(size // 4)

    def call() -> None:
        ctypes.memmove(to.data_ptr(), source.data_ptr(), size)

    return call


COLLECTIVES = {
    "all_reduce": all_reduce,
    "all_reduce, wait": waited(all_reduce),
    "all_gather": all_gather,
    "broadcast": broadcast,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "round trip": round_trip,
}
STEP = "DDP step GPT"
STEP_OF: Make = training_step(
    GPT,
    torch.optim.AdamW,
    lambda: torch.randint(64, (8, 32)),
    lambda: torch.randint(64, (8, 32)),
    wrap=DistributedDataParallel,
)
CASES = [*(f"{name} {size}" for name in COLLECTIVES for size in SIZES), STEP]


def sides_of(case: str, over_gloo: Group) -> dict[str, Work]:
    """Creates the work of a case for each side that supports it."""
    if case == STEP:
        return {side: STEP_OF(DEVICES[side]) for side in ("gloo", "occl")}
    name = next(name for name in COLLECTIVES if case.startswith(f"{name} "))
    size = SIZES[case.removeprefix(f"{name} ")]
    works: dict[str, Work] = {"memcpy": copied(size)}
    for side, device in DEVICES.items():
        group = over_gloo if side == "over gloo" else None
        works[side] = COLLECTIVES[name](device, size, group)
    return works


def slowest(seconds: float) -> float:
    """Returns the longest time of all ranks."""
    taken = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return taken.item()


def timed(work: Work, side: str, calls: int) -> float:
    """Times a batch that all ranks start together."""
    slowest(0)
    return slowest(batch(work, DEVICES.get(side, "cpu"), calls))


def measure(case: str, over_gloo: Group, rounds: int, seconds: float) -> Row:
    """Measures a case on all sides in turn."""
    works = sides_of(case, over_gloo)
    order = list(works)
    calls = {}
    for side, work in works.items():
        timed(work, side, 1)  # the first call is slower
        calls[side] = calls_for(work, side, seconds, timed)
    times: dict[str, list[float]] = {side: [] for side in order}
    for _ in range(rounds):
        for side in order:
            taken = timed(works[side], side, calls[side])
            times[side].append(taken / calls[side] * 1e6)
        order.reverse()

    def ratio(side: str, by: str) -> list[float]:
        ratios = [a / b for a, b in zip(times[side], times[by], strict=True)]
        return statistics.quantiles(ratios, n=4, method="inclusive")

    medians = {side: statistics.median(each) for side, each in times.items()}
    return Row(
        case,
        medians.get("memcpy"),
        medians["gloo"],
        medians.get("over gloo"),
        medians["occl"],
        ratio("over gloo", "gloo") if "over gloo" in times else None,
        ratio("occl", "gloo"),
        ratio("occl", "memcpy") if "memcpy" in times else None,
        rounds,
        calls,
    )


def shown(quartiles: list[float] | None) -> str:
    """Returns a ratio as a cell: the median, with the quartiles in parentheses."""
    if quartiles is None:
        return ""
    low, middle, high = quartiles
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def line(row: Row) -> str:
    """Returns a line of the table."""
    copy = "" if row.memcpy_us is None else f"{row.memcpy_us:.2f}"
    over = "" if row.over_gloo_us is None else f"{row.over_gloo_us:.1f}"
    return (
        f"{row.name:<26}{copy:>12}{row.gloo_us:>12.1f}{over:>13}{row.occl_us:>12.1f}"
        f"{shown(row.over_by_gloo):>20}{shown(row.by_gloo):>20}{shown(row.by_memcpy):>26}"
    )


def serve(rank: int, cases: list[str], rounds: int, seconds: float) -> list[Row]:
    """Measures the cases on a rank; rank 0 prints them."""
    torch.set_num_threads(1)
    over_gloo = dist.new_group(
        backend="cpu:gloo,openreg:occl", pg_options=Options(share_memory=False)
    )
    rows = []
    for case in cases:
        rows.append(measure(case, over_gloo, rounds, seconds))
        if rank == 0:
            print(line(rows[-1]), flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=CASES, default=CASES)
    parser.add_argument(
        "--quick", action="store_true", help="a test run, no measurement"
    )
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options = parser.parse_args(arguments)
    rounds, seconds = (3, 0.001) if options.quick else (31, 0.02)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    heads = "".join(f"{side + ' us':>{max(12, len(side) + 4)}}" for side in SIDES)
    ranks = f"{RANKS} ranks"
    print(
        f"{ranks:<26}{heads}{'over gloo/gloo':>20}{'occl/gloo':>20}{'occl/memcpy':>26}",
        flush=True,
    )
    rows, _ = run_ranks(
        serve,
        RANKS,
        options.case,
        rounds,
        seconds,
        seconds=3600,
        backend="cpu:gloo,openreg:occl",
    )
    if options.json is not None:
        report = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
