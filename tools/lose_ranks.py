# SPDX-License-Identifier: BSD-3-Clause
"""Kills a rank in each collective and checks the reaction of the other ranks.

In each round, the ranks call one collective repeatedly, and one rank is killed at a
random time. Each of the other ranks must get an error within the time limit of the
group. The error must name the collective, its number, the group and the rank. Each rank
must also have a flight record that reports the missing rank, and must end. At the end,
no process, open file or shared memory may be left over.

    python tools/lose_ranks.py --kills 20
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from select import select

from workspace import ROOT

sys.path.insert(0, str(ROOT / "tests"))

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore
from torch.distributed.distributed_c10d import _coalescing_manager

# Import all modules that ranks need here, because ranks are forks of this process.
from openreg_distributed import Options, _engine, flight  # noqa: F401
from support.programs import children_of, shared_memory

EXIT = 15.0  # seconds for a rank to end
DEVICE = "openreg"
Tensors = list[torch.Tensor]


def ones(ranks: int = 1) -> torch.Tensor:
    """Returns a tensor of up to 2 MiB, with the same size on all ranks of a call."""
    return torch.ones(SIZE * ranks, device=DEVICE)


def parts() -> Tensors:
    """Returns a tensor for each rank."""
    return [ones() for _ in range(dist.get_world_size())]


def scatter() -> None:
    """Scatters from root 0."""
    dist.scatter(ones(), parts() if dist.get_rank() == 0 else None)


def gather() -> None:
    """Gathers to root 0."""
    dist.gather(ones(), parts() if dist.get_rank() == 0 else None)


def coalesced(call: Callable[[], object]) -> Callable[[], None]:
    """Returns a function that coalesces two calls into one."""

    def run() -> None:
        with _coalescing_manager(device=torch.device(DEVICE, 0)):
            call()
            call()

    return run


def neighbours() -> tuple[int, int]:
    """Returns the next and the previous rank."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % ranks, (rank - 1) % ranks


def ring() -> None:
    """Sends to the next rank and receives from the previous rank."""
    to, source = neighbours()
    for work in [dist.isend(ones(), to), dist.irecv(ones(), source)]:
        assert work is not None
        work.wait()


def batch() -> None:
    """Sends and receives as in ring(), but in one call."""
    to, source = neighbours()
    ops = [dist.P2POp(dist.isend, ones(), to), dist.P2POp(dist.irecv, ones(), source)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()


def any_source() -> None:
    """Receives from all other ranks on rank 0, and replies to them."""
    others = range(1, dist.get_world_size())
    if dist.get_rank() == 0:
        for _ in others:
            dist.recv(ones())
        for other in others:
            dist.send(ones(), other)
    else:
        dist.send(ones(), 0)
        dist.recv(ones(), 0)


def all_gather_coalesced() -> None:
    """Calls a collective that has no function in torch.distributed."""
    group = dist.distributed_c10d._get_default_group()
    outputs = [[ones(), ones()] for _ in range(dist.get_world_size())]
    group.allgather_coalesced(outputs, [ones(), ones()]).wait()


# The call of each collective, and its name in errors.
COLLECTIVES: dict[str, tuple[Callable[[], object], str]] = {
    "broadcast": (lambda: dist.broadcast(ones(), 0), "broadcast"),
    "all_reduce": (lambda: dist.all_reduce(ones()), "all_reduce"),
    "reduce": (lambda: dist.reduce(ones(), 0), "reduce"),
    "all_gather": (lambda: dist.all_gather(parts(), ones()), "all_gather"),
    "all_gather_single": (
        lambda: dist.all_gather_single(ones(dist.get_world_size()), ones()),
        "_all_gather_base",
    ),
    "all_gather_coalesced": (all_gather_coalesced, "all_gather_coalesced"),
    "gather": (gather, "gather"),
    "scatter": (scatter, "scatter"),
    "reduce_scatter": (
        lambda: dist.reduce_scatter(ones(), parts()),
        "reduce_scatter",
    ),
    "reduce_scatter_single": (
        lambda: dist.reduce_scatter_single(ones(), ones(dist.get_world_size())),
        "_reduce_scatter_base",
    ),
    "all_to_all": (lambda: dist.all_to_all(parts(), parts()), "all_to_all"),
    "all_to_all_single": (
        lambda: dist.all_to_all_single(
            ones(dist.get_world_size()), ones(dist.get_world_size())
        ),
        "all_to_all_base",
    ),
    "barrier": (lambda: dist.barrier(device_ids=[0]), "barrier"),
    "all_reduce, coalesced": (
        coalesced(lambda: dist.all_reduce(ones())),
        "allreduce_coalesced",
    ),
    "all_gather_single, coalesced": (
        coalesced(lambda: dist.all_gather_single(ones(dist.get_world_size()), ones())),
        "all_gather_into_tensor_coalesced",
    ),
    "reduce_scatter_single, coalesced": (
        coalesced(
            lambda: dist.reduce_scatter_single(ones(), ones(dist.get_world_size()))
        ),
        "reduce_scatter_tensor_coalesced",
    ),
    "send and recv": (ring, "(send|recv)"),
    "batch_isend_irecv": (batch, "coalesced"),
    "recv from any": (any_source, "(send|recv|recvAnysource)"),
}
SIZE = 1  # elements; each round sets it before its ranks begin
LIMIT = 20.0  # seconds, the time limit of the group
MESSAGES = {"send and recv", "recv from any"}  # several numbers for each call


@dataclass
class Outcome:
    """The report of a rank about its error."""

    rank: int
    calls: int = 0
    time: float = 0.0
    text: str = ""


def run_rank(
    rank: int, ranks: int, collective: str, share: bool, folder: Path, pipe: int
) -> None:
    """Runs in a rank: calls the collective until it fails, and reports the error."""
    os.environ["TORCH_FR_DUMP_TEMP_FILE"] = f"{folder}/rank_"
    store = FileStore(str(folder / "store"), ranks)
    dist.init_process_group(
        "occl",
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=LIMIT),
        pg_options=Options(share_memory=share),
    )
    call, _ = COLLECTIVES[collective]
    outcome = Outcome(rank)
    try:
        while True:
            outcome.calls += 1
            call()
            torch.accelerator.synchronize()
            if outcome.calls == 2:
                os.write(pipe, b"it runs\n")
    except RuntimeError as error:
        outcome.time, outcome.text = time.monotonic(), str(error)
    os.write(pipe, json.dumps(vars(outcome)).encode() + b"\n")
    dist.destroy_process_group()


class Round:
    """One kill.

    Args:
        collective: The collective that the ranks call.
        share: Whether the ranks share memory.
        ranks: The number of ranks.
    """

    def __init__(self, collective: str, share: bool, ranks: int) -> None:
        self.collective, self.share, self.ranks = collective, share, ranks
        self.processes: list[int] = []
        self.pipes: list[int] = []

    def run(self) -> list[float]:
        """Returns the time from the kill to the error of each other rank."""
        global SIZE
        SIZE = random.choice([1, 3000, 1 << 19])
        lost = random.randrange(self.ranks)
        with tempfile.TemporaryDirectory(prefix="lose-ranks-") as name:
            try:
                for rank in range(self.ranks):
                    self.start(rank, Path(name))
                for rank in range(self.ranks):
                    line = self.read(rank)
                    assert line == "it runs\n", f"rank {rank} sent {line!r}"
                time.sleep(random.random() / 20)
                killed = time.monotonic()
                os.kill(self.processes[lost], signal.SIGKILL)
                delays = []
                for rank in range(self.ranks):
                    if rank != lost:
                        outcome = Outcome(**json.loads(self.read(rank)))
                        self.check(outcome)
                        delays.append(outcome.time - killed)
                for rank in range(self.ranks):
                    self.reap(rank, -signal.SIGKILL if rank == lost else 0)
                self.check_files(Path(name), lost)
            finally:
                self.end()
        assert max(delays) < LIMIT + 1, f"late: {max(delays)} s"
        return delays

    def start(self, rank: int, folder: Path) -> None:
        """Forks a rank."""
        mine, other = os.pipe()
        process = os.fork()
        if process == 0:
            status = 1
            try:
                os.close(mine)
                run_rank(
                    *(rank, self.ranks, self.collective, self.share, folder, other)
                )
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)  # must not continue with the parent's code
        os.close(other)
        self.processes.append(process)
        self.pipes.append(mine)

    def read(self, rank: int) -> str:
        """Reads a line that a rank sends."""
        end = time.monotonic() + LIMIT + 20  # includes the start on a loaded machine
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select([self.pipes[rank]], [], [], end - time.monotonic())
            assert ready, f"rank {rank} hangs, after {line!r}"
            part = os.read(self.pipes[rank], 1)
            assert part, f"rank {rank} has ended, after {line!r}"
            line += part
        return line.decode()

    def check(self, outcome: Outcome) -> None:
        """Checks the text of an error."""
        _, name = COLLECTIVES[self.collective]
        wanted = (
            rf"occl: {name} number (\d+) of group '0' on rank {outcome.rank} of "
            rf"{self.ranks} (failed|cannot run)"
        )
        found = re.search(wanted, outcome.text)
        assert found, f"{self.collective}: {outcome.text}"
        if self.collective not in MESSAGES:
            number = int(re.search(r"number (\d+)", found[0])[1])  # type: ignore[index]
            # A stream that did not wait reports the previous call.
            assert number in (outcome.calls - 1, outcome.calls), outcome

    def reap(self, rank: int, status: int) -> None:
        """Waits for the end of a rank."""
        end = time.monotonic() + EXIT
        while True:
            found, code = os.waitpid(self.processes[rank], os.WNOHANG)
            if found:
                break
            assert time.monotonic() < end, (
                f"the process of rank {rank} is still running"
            )
            time.sleep(0.002)
        self.processes[rank] = 0
        code = os.waitstatus_to_exitcode(code)
        assert code == status, f"rank {rank} ended with {code}"

    def check_files(self, folder: Path, lost: int) -> None:
        """Checks that each other rank has a record, and that no other file is left."""
        names = {f"rank_{rank}.json" for rank in range(self.ranks) if rank != lost}
        assert {each.name for each in folder.iterdir()} <= names | {"store"}
        records = flight.load([folder])
        assert len(records) == len(names), "records are missing"
        text = flight.explain(records)
        assert f"rank {lost} left no record" in text, text

    def end(self) -> None:
        """Closes the pipes and kills remaining processes."""
        for pipe in self.pipes:
            os.close(pipe)
        for process in filter(None, self.processes):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def open_files() -> int:
    """Returns the number of open files of this process."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def lose(collectives: Sequence[str], share: bool, kills: int, ranks: int) -> None:
    """Runs all rounds with one transport and prints the results."""
    transport = "shared memory" if share else "gloo"
    every: list[float] = []
    for collective in collectives:
        delays: list[float] = []
        for _ in range(kills):
            try:
                delays += Round(collective, share, ranks).run()
            except AssertionError as error:
                error.add_note(f"in {collective} through {transport}")
                raise
        print(
            f"{transport}, {collective}: {kills} kills, errors after "
            f"{statistics.median(delays):.3f} s in the median, {max(delays):.3f} s at "
            "most",
            flush=True,
        )
        every += delays
    print(
        f"{transport}: {kills * len(collectives)} kills, {len(every)} errors, after "
        f"{statistics.median(every):.3f} s in the median, {max(every):.3f} s at most",
        flush=True,
    )


def main() -> int:
    """Runs the command line; returns the exit status."""
    global LIMIT
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kills", type=int, default=20, help="kills of each collective"
    )
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--transport", choices=["shared", "gloo"])
    parser.add_argument("--collective", choices=COLLECTIVES, action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds")
    arguments = parser.parse_args()
    LIMIT = arguments.limit
    random.seed(arguments.seed)
    torch.set_num_threads(1)
    shared, files = shared_memory(), open_files()
    for transport in ("shared", "gloo"):
        if arguments.transport in (None, transport):
            lose(
                arguments.collective or [*COLLECTIVES],
                transport == "shared",
                arguments.kills,
                arguments.ranks,
            )
    assert open_files() <= files, "files are still open"
    assert shared_memory() <= shared, "shared memory is left over"
    assert not children_of(os.getpid()), "processes are left over"
    return 0


if __name__ == "__main__":
    sys.exit(main())
