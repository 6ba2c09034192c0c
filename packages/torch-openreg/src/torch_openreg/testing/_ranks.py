# SPDX-License-Identifier: BSD-3-Clause
"""Runs a function on the ranks of a process group, each in a separate process.

The processes get torchrun's environment and connect through a store of this process.
They end with their result, at the time limit, or with this process.
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
_STACK_SECONDS = 2  # for a rank to write its stack
_LONGEST = 2_000_000  # seconds; the limit of poll(2)
_EXIT_SECONDS = 5  # for a process to end after its function


@dataclass
class Rank:
    """The result of a rank.

    Attributes:
        rank: Its rank.
        value: The result of its function.
        failure: Its traceback, or another reason; empty if the function returned.
        running: Whether it had to be killed. ``failure`` then contains its stacks.
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
    """Reports the rank that failed first, and the results of the others.

    Attributes:
        ranks: The results by rank.
        flight: An explanation of their flight records, if a collective has failed.
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
    """Runs ``function(rank, *arguments)`` on ranks, each in a separate process.

    A process has torchrun's environment variables and, if there are enough devices, its
    own current device. It creates the default group, calls the function, and destroys
    the group. Its child processes end with it, and all ranks end with this process.

    Args:
        function: A function of a module; arguments and result are pickled.
        size: The number of ranks.
        arguments: The further arguments of the function.
        seconds: The limit for all ranks together, and the group's limit.
        grace: The limit for the other ranks after one has failed.
        backend: The backend of the group, for ``init_process_group``. With occl alone a
            collective on CPU tensors is an error, as with NCCL alone.
            "cpu:gloo,openreg:occl" accepts both kinds of tensors. If None, the function
            creates the group.
        start_method: "spawn" starts an interpreter per rank, like torchrun.
            "forkserver" forks a process that has imported PyTorch, which takes a tenth
            of the time.

    Returns:
        The results of the function by rank.

    Raises:
        RanksFailedError: If a rank raised an exception, ended in another way or took
            too long.
        ImportError: If ``openreg-distributed`` is not installed.
        TypeError: If an argument is of another type.
        ValueError: If the function is not one of a module, the size is less than 1, a
            limit is negative or longer than poll(2) can wait, or the start method is
            another one.
    """
    __tracebackhide__ = True  # so that pytest shows the line of the test
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
    """Runs ranks like ``run_ranks``, for tests in which some must fail.

    Returns:
        The result of each rank.

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
    """Returns the results of the ranks, and the explanation of their flight records."""
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
    """The task of the ranks, in pickled form."""

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
                "ranks are separate processes, which need a function of a module "
                f"and arguments that can be pickled: {error}"
            ) from error

    def load(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Returns the function and its arguments in the process of a rank."""
        # pytest can import tests from folders that other processes would not search.
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
        except ModuleNotFoundError:  # of a parent package
            return False
        return spec is not None and spec.origin == file


def _run(pipe: Connection, call: _Call, rank: int, port: int, stacks: str) -> None:
    """Runs in the process of a rank."""
    _end_with_the_parent()
    os.setpgid(0, 0)  # so that child processes can be ended with the rank
    file = os.open(stacks, os.O_WRONLY | os.O_CREAT)  # open until the process ends
    faulthandler.register(signal.SIGUSR1, file)
    faulthandler.enable(file)
    pipe.send_bytes(b"")  # from here on it can write its stack on request
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
    # The folder of flight records, unless the environment sets it.
    prefix = str(Path(stacks).with_name("flight_rank_"))
    os.environ.setdefault("TORCH_FR_DUMP_TEMP_FILE", prefix)
    try:
        with _group(call, rank):
            function, arguments = call.load()
            value = function(rank, *arguments)
        # The whole value, because this process ends before it is read.
        result = pickle.dumps((value, ""))
    except BaseException:
        # The parent shows it; a rank that calls exit() has failed, too.
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
    # Not after an error: the end of this rank fails the others' collectives.
    if distributed.is_initialized():
        distributed.destroy_process_group()


class _Ranks:
    """The processes of the ranks, from the view of their parent."""

    def __init__(self, call: _Call, port: int, folder: Path) -> None:
        self._call = call
        self._port = port
        self._stacks = [folder / str(rank) for rank in range(call.size)]
        self._processes: list[SpawnProcess | ForkedProcess] = []
        self._pipes: dict[int, Connection] = {}  # of ranks without a result
        # Not Process.sentinel, because processes forked by a rank keep that pipe open.
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
        """Waits for all ranks; requests the stacks of late ones."""
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
            # The process has ended, although another process may keep the pipe open.
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
        """Returns the stacks that a rank has written, on request or in a crash."""
        file = self._stacks[rank]
        return file.read_text(errors="replace") if file.exists() else ""

    def end(self) -> None:
        """Ends the remaining ranks and their child processes."""
        for rank, process in enumerate(self._processes):
            # Even if multiprocessing has reaped the leader: a group number is not
            # reused while a member lives.
            with suppress(ProcessLookupError):  # no group yet, or all have ended
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
        """Returns the results of the ranks after their end."""
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
    """Limits each rank to one CPU thread, as torchrun does."""
    if size == 1 or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


def _report(ranks: list[Rank]) -> str:
    """Reports the rank that failed first, then the results of the others."""
    failed = [each for each in ranks if each.failure]
    # A rank that raised is more informative than a rank that waited for it.
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
