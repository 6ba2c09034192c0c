# SPDX-License-Identifier: BSD-3-Clause
"""Runs a function on the ranks of a process group, each in a process of its own.

The processes get the environment of torchrun, and meet in a store of this process.
Three things end them: their result, the time limit, and the death of this process.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import importlib.util
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._C._distributed_c10d import TCPStore

from ._fork_server import ForkedProcess, fork_server

_HOST = "127.0.0.1"
_PR_SET_PDEATHSIG = 1  # of prctl(2)
_STACK_SECONDS = 2  # for a rank to write where it is
_LONGEST = 2_000_000  # seconds, which poll(2) can wait for
_EXIT_SECONDS = 5  # for a process to end once its function has


@dataclass
class Rank:
    """How a rank ended.

    Attributes:
        rank: Its number.
        value: What its function returned.
        failure: Its traceback, or what happened to it; empty if it returned.
        running: Whether it had to be ended. ``failure`` then has its stacks.
        seconds: The time from the start of all ranks to its end.
        exitcode: The status of its process; negative for a signal.
    """

    rank: int
    value: Any = None
    failure: str = ""
    running: bool = False
    seconds: float = 0.0
    exitcode: int | None = None


class RanksFailedError(AssertionError):
    """Tells which rank failed first, and what became of the others.

    Attributes:
        ranks: How each has ended, by its number.
        flight: What their flight records say, if a collective has failed.
    """

    def __init__(self, ranks: list[Rank], flight: str = "") -> None:
        self.ranks = ranks
        self.flight = flight
        super().__init__("\n".join(filter(None, [_report(ranks), flight])))


def run_ranks(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    seconds: float = 60,
    grace: float = 10,
    backend: str | None = "occl",
    start_method: str = "spawn",
) -> list[Any]:
    """Runs ``function(rank, *arguments)`` on ranks, each in a process of its own.

    A process has the environment variables that torchrun sets, and one device of its
    own as its current one, if there are enough. It makes the default group, calls the
    function, and destroys the group. What it starts is ended with it, and all of it
    ends with this process.

    Args:
        function: A function of a module; arguments and result are pickled.
        size: The number of ranks.
        arguments: What each rank is given.
        seconds: The limit for all ranks together; that of the group is the same.
        grace: The limit for the other ranks, once one has failed.
        backend: The backend of the group, for ``init_process_group``. With occl alone a
            collective on CPU tensors is an error, as with NCCL alone.
            "cpu:gloo,openreg:occl" accepts both kinds of tensors. If None, the function
            makes the group.
        start_method: "spawn" starts an interpreter for each rank, as torchrun does, and
            "forkserver" forks a process that has imported PyTorch, in a tenth of the
            time.

    Returns:
        What the function returned on each rank.

    Raises:
        RanksFailedError: If a rank raised, ended otherwise or took too long.
        ImportError: If ``openreg-distributed`` is not installed.
        TypeError: If an argument is of another type.
        ValueError: If the function is not one of a module, the size is less than 1, a
            limit is negative or longer than poll(2) can wait, or the start method is
            another one.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    _check_installed()
    call = _Call(function, arguments, size, seconds, backend)
    ranks, flight = _run_all(call, grace, start_method)
    if any(each.failure for each in ranks):
        raise RanksFailedError(ranks, flight)
    return [each.value for each in ranks]


def run_each_rank(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    seconds: float = 60,
    grace: float = 10,
    backend: str | None = "occl",
    start_method: str = "spawn",
) -> list[Rank]:
    """Runs ranks as ``run_ranks`` does, for tests in which some are to fail.

    Returns:
        How each has ended.

    Raises:
        ImportError: If ``openreg-distributed`` is not installed.
        TypeError: If an argument is of another type.
        ValueError: If the function is not one of a module, the size is less than 1, a
            limit is negative or longer than poll(2) can wait, or the start method is
            another one.
    """
    __tracebackhide__ = True
    _check_installed()
    call = _Call(function, arguments, size, seconds, backend)
    ranks, _ = _run_all(call, grace, start_method)
    return ranks


def _run_all(call: _Call, grace: float, start_method: str) -> tuple[list[Rank], str]:
    """Returns how ranks ended, and what their flight records say of that."""
    __tracebackhide__ = True
    _check_limit("seconds", call.seconds)
    _check_limit("grace", grace)
    if start_method not in _STARTS:
        methods = " or ".join(f'"{each}"' for each in _STARTS)
        raise ValueError(f"start_method is {start_method!r}, expected {methods}")
    store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        ranks = _Ranks(call, store.port, Path(folder))
        try:
            ranks.start(start_method)
            ranks.wait(grace)
        finally:
            ranks.end()
        return ranks.results(), _explain_flight(Path(folder))


def _explain_flight(folder: Path) -> str:
    from openreg_distributed import flight

    records = flight.load([folder])
    return flight.explain(records) if records else ""


def _check_limit(name: str, seconds: float) -> None:
    if not isinstance(seconds, (int, float)):
        raise TypeError(f"{name} is {seconds!r}, expected a number of seconds")
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(f"{name} is {seconds}, expected 0 to {_LONGEST} seconds")


def _check_installed() -> None:
    if importlib.util.find_spec("openreg_distributed") is None:
        raise ImportError(
            "ranks need openreg-distributed, which is not installed: "
            f"pip install openreg-distributed=={version('torch-openreg')}",
            name="openreg_distributed",
        )


def _spawn(target: Callable[..., None], *arguments: Any) -> SpawnProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=target, args=arguments, name="rank"
    )
    process.start()
    return process


_Start = Callable[..., SpawnProcess | ForkedProcess]
_STARTS: dict[str, Callable[[], _Start]] = {
    "spawn": lambda: _spawn,
    "forkserver": lambda: fork_server().fork,
}


class _Call:
    """What all ranks are to do, as they are sent it."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        size: int,
        seconds: float,
        backend: str | None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"function is {function!r}, expected one of a module")
        if not isinstance(size, int):
            raise TypeError(f"size is {size!r}, expected the number of ranks")
        if size < 1:
            raise ValueError(f"the number of ranks is {size}, expected 1 or more")
        self.size = size
        self.seconds = seconds
        self.backend = backend
        self.module = getattr(function, "__module__", "")
        self.file = getattr(sys.modules.get(self.module), "__file__", None)
        try:
            self.pickled = pickle.dumps((function, arguments))
        except (AttributeError, pickle.PicklingError, TypeError) as error:
            raise ValueError(
                "ranks are processes of their own, which get a function of a module "
                f"and arguments that can be pickled: {error}"
            ) from error

    def load(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Returns the function and its arguments, in the process of a rank."""
        # pytest can import tests from where no other process would find them.
        if self.file is not None and not self._is_found(self.file):
            parts = self.module.split(".")
            folders = Path(self.file).with_suffix("").parts
            if parts == [*folders[-len(parts) :]]:
                sys.path.append(str(Path(self.file).parents[len(parts) - 1]))
                importlib.invalidate_caches()
        if self.file is not None and not self._is_found(self.file):
            spec = importlib.util.spec_from_file_location(self.module, self.file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[self.module] = module
            spec.loader.exec_module(module)
        function, arguments = pickle.loads(self.pickled)
        return function, arguments

    def _is_found(self, file: str) -> bool:
        if self.module in sys.modules:
            return True
        try:
            spec = importlib.util.find_spec(self.module)
        except ModuleNotFoundError:  # of a package above it
            return False
        return spec is not None and spec.origin == file


def _run(pipe: Connection, call: _Call, rank: int, port: int, stacks: str) -> None:
    """Runs in the process of a rank."""
    _end_with_the_parent()
    os.setpgid(0, 0)  # what this rank starts can be ended with it
    file = os.open(stacks, os.O_WRONLY | os.O_CREAT)  # open as long as the process is
    faulthandler.register(signal.SIGUSR1, file)
    faulthandler.enable(file)
    pipe.send_bytes(b"")  # from here on it can be asked where it is
    os.environ |= {
        "GROUP_RANK": "0",
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(call.size),
        "MASTER_ADDR": _HOST,
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": str(call.size),
    }
    # Flight records, unless the environment says where.
    prefix = str(Path(stacks).with_name("flight_rank_"))
    os.environ.setdefault("TORCH_FR_DUMP_TEMP_FILE", prefix)
    try:
        with _group(call, rank):
            function, arguments = call.load()
            value = function(rank, *arguments)
        # The whole value, since this process does not outlive it.
        result = pickle.dumps((value, ""))
    except BaseException:
        # The parent shows it; a rank that is told to exit has failed too.
        result = pickle.dumps((None, traceback.format_exc()))
    pipe.send_bytes(result)
    pipe.close()


def _end_with_the_parent() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    parent = multiprocessing.parent_process()
    if parent is None or not parent.is_alive():  # it died before
        os._exit(1)


@contextmanager
def _group(call: _Call, rank: int) -> Iterator[None]:
    import openreg_distributed

    openreg_distributed.register()
    torch.accelerator.set_device_index(rank % torch.accelerator.device_count())
    if call.backend is None:
        yield
        return
    distributed.init_process_group(
        call.backend, timeout=timedelta(seconds=call.seconds)
    )
    yield
    # Not after an error: this rank ends, which fails the collectives of the others.
    if distributed.is_initialized():
        distributed.destroy_process_group()


class _Ranks:
    """The processes of the ranks, as their parent sees them."""

    def __init__(self, call: _Call, port: int, folder: Path) -> None:
        self._call = call
        self._port = port
        self._stacks = [folder / str(rank) for rank in range(call.size)]
        self._processes: list[SpawnProcess | ForkedProcess] = []
        self._pipes: dict[int, Connection] = {}  # of ranks without a result
        # Not Process.sentinel: what a rank has forked keeps that pipe open, too.
        self._ends: list[int] = []
        self._ready: set[int] = set()
        self._ranks = [Rank(rank) for rank in range(call.size)]
        self._begin = 0.0

    def start(self, start_method: str) -> None:
        with _few_threads(self._call.size):
            start = _STARTS[start_method]()
            self._begin = time.monotonic()
            for rank, stacks in enumerate(self._stacks):
                mine, other = multiprocessing.Pipe(duplex=False)
                with other:
                    process = start(
                        _run, other, self._call, rank, self._port, str(stacks)
                    )
                self._processes.append(process)
                self._pipes[rank] = mine
                self._ends.append(os.pidfd_open(self._pid(rank)))

    def wait(self, grace: float) -> None:
        """Waits for all ranks; asks those that are late where they are."""
        end = self._begin + self._call.seconds
        while self._pipes and time.monotonic() < end:
            ranks: dict[Any, int] = {}
            for rank, pipe in self._pipes.items():
                ranks |= {pipe: rank, self._ends[rank]: rank}
            ready = wait_for([*ranks], max(0, end - time.monotonic()))
            for rank in {ranks[each] for each in ready}:
                self._receive(rank)
                if self._ranks_failed():
                    end = min(end, time.monotonic() + grace)
        late = [*self._pipes]
        for rank, ended in enumerate(self._ends):
            seconds = max(_EXIT_SECONDS, end - time.monotonic())
            if rank not in late and not wait_for([ended], seconds):
                self._ranks[rank].failure += "The process did not end.\n"
                late.append(rank)
        self._show_stacks(late)

    def _ranks_failed(self) -> bool:
        done = set(range(self._call.size)) - set(self._pipes)
        return any(self._ranks[rank].failure for rank in done)

    def _receive(self, rank: int) -> None:
        pipe = self._pipes[rank]
        each = self._ranks[rank]
        try:
            # The process has ended, though another one may hold the pipe open.
            if not pipe.poll():
                raise EOFError
            data = pipe.recv_bytes()
            if not data:
                self._ready.add(rank)
                return
            each.value, each.failure = pickle.loads(data)
        except EOFError:
            each.failure = "The process ended without a result."
        except Exception:
            each.failure = f"The result has no meaning here:\n{traceback.format_exc()}"
        each.seconds = time.monotonic() - self._begin
        del self._pipes[rank]
        pipe.close()

    def _show_stacks(self, ranks: list[int]) -> None:
        for rank in ranks:
            self._ranks[rank].running = True
            self._ranks[rank].seconds = time.monotonic() - self._begin
            if rank in self._ready:
                os.kill(self._pid(rank), signal.SIGUSR1)
        end = time.monotonic() + _STACK_SECONDS
        for rank in ranks:
            before, written = "", ""
            while rank in self._ready and time.monotonic() < end:
                before, written = written, self._written(rank)
                if written and written == before:
                    break
                time.sleep(0.05)
            self._ranks[rank].failure += written or "It had not come to its function.\n"

    def _written(self, rank: int) -> str:
        """What a rank has written of its stacks, by itself if it crashed."""
        file = self._stacks[rank]
        return file.read_text(errors="replace") if file.exists() else ""

    def end(self) -> None:
        """Ends what is left: ranks, and what they have started."""
        for rank, process in enumerate(self._processes):
            # Also if multiprocessing has waited for it meanwhile: the number of a
            # group is no other's while one of it lives.
            with suppress(ProcessLookupError):  # not yet a group, or all have ended
                os.killpg(self._pid(rank), signal.SIGKILL)
            process.kill()
        for rank, process in enumerate(self._processes):
            process.join()
            self._ranks[rank].exitcode = process.exitcode
        for pipe in self._pipes.values():
            pipe.close()
        for ended in self._ends:
            os.close(ended)

    def results(self) -> list[Rank]:
        """Returns how the ranks ended, after their end."""
        for each in self._ranks:
            code = each.exitcode
            if code and not each.running and "Traceback" not in each.failure:
                how = f"signal {signal.Signals(-code).name}" if code < 0 else f"{code}"
                written = self._written(each.rank)
                each.failure = f"The process ended with {how}.\n{written}"
        return self._ranks

    def _pid(self, rank: int) -> int:
        pid = self._processes[rank].pid
        assert pid is not None
        return pid


@contextmanager
def _few_threads(size: int) -> Iterator[None]:
    """Gives ranks one thread of the CPU each, as torchrun does."""
    if size == 1 or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


def _report(ranks: list[Rank]) -> str:
    """Says which rank failed first, then what became of the others."""
    failed = [each for each in ranks if each.failure]
    # One that raised says more than one that waited for it.
    failed.sort(key=lambda each: (each.running, each.seconds))
    lines = []
    for place, each in enumerate(failed):
        what = "was still running" if each.running else "failed"
        if place == 0 and not each.running:
            what += " first"
        who = f"rank {each.rank} of {len(ranks)}"
        lines.append(f"{who} {what}, after {each.seconds:.1f} s:")
        lines += [f"    {line}" for line in each.failure.splitlines()]
    lines += [
        f"rank {each.rank} of {len(ranks)} returned, after {each.seconds:.1f} s"
        for each in ranks
        if not each.failure
    ]
    return "\n".join(lines)
