# SPDX-License-Identifier: BSD-3-Clause
"""Trains on two device processes and loses one of them.

In each round, device 0 is killed or stopped, or runs a kernel that crashes, at a random
time of its training. The error must name the signal and arrive within two seconds.
Device 1 must continue with the same losses as the CPU, bit for bit. Device 0 must do so
after a reset. If a kernel runs out of memory, both trainings must continue. At the end,
no process, open file or shared memory may be left over.

    python tools/lose_devices.py --kills 100 --stops 20 --crashes 20 --exhaustions 20
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from workspace import ROOT

os.environ["OPENREG_ISOLATION"] = "process"
sys.path.insert(0, str(ROOT / "tests"))

import torch
from torch import nn

from support.programs import children_of, process_of, shared_memory

STEPS = 40
LIMIT = 2.0  # seconds
KILLED = "was ended by signal 9 (SIGKILL)"
STOPPED = "was stopped by signal 19 (SIGSTOP)"
CRASHED = "was ended by signal 11 (SIGSEGV) while it ran aten::_to_dense"


def training(device: str) -> Iterator[float]:
    """Yields the losses of a training, which are the same on every device."""
    torch.manual_seed(0)
    data, target = torch.randn(64, 32).to(device), torch.randn(64, 4).to(device)
    model = nn.Sequential(
        nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    while True:
        loss = nn.functional.mse_loss(model(data), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        yield loss.item()


def open_files() -> int:
    """Returns the number of open files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def crash() -> None:
    """Enqueues a kernel on device 0 that writes to an invalid address."""
    wrong = torch.sparse_coo_tensor(
        [[1 << 45], [0]],  # type: ignore[arg-type]
        [1.0],
        size=(1, 1),
        device="openreg:0",
        check_invariants=False,
    )
    wrong.to_dense()


class Rounds:
    """Rounds of training on both devices.

    Args:
        expected: The losses on the CPU.
    """

    def __init__(self, expected: list[float]) -> None:
        self.expected = expected
        self.named = 0
        self.delays: list[float] = []

    def kill(self) -> None:
        """Loses device 0 to SIGKILL."""
        self._lose(lambda: os.kill(process_of(0), signal.SIGKILL), KILLED)

    def stop(self) -> None:
        """Loses device 0 to SIGSTOP."""
        self._lose(lambda: os.kill(process_of(0), signal.SIGSTOP), STOPPED)

    def crash(self) -> None:
        """Loses device 0 to a crashing kernel, which another thread enqueues."""
        self._lose(crash, CRASHED)

    def exhaust(self) -> None:
        """Makes a kernel on device 0 run out of memory during the training."""
        trainings = [training("openreg:0"), training("openreg:1")]
        steps = random.randrange(1, STEPS)
        losses = [[next(each) for _ in range(steps)] for each in trainings]
        large = torch.rand(8 << 20, device="openreg:0")
        torch.accelerator.synchronize(0)
        process = process_of(0)
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + (20 << 20)
        resource.prlimit(process, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            large.nonzero()  # the result needs 64 MiB
            text = "the kernel found memory"
        except torch.OutOfMemoryError as error:
            text = str(error)
        assert "Tried to allocate" in text, text
        infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process, resource.RLIMIT_AS, infinite)
        for mine, each in zip(losses, trainings, strict=True):
            mine.extend(next(each) for _ in range(STEPS - steps))
        assert losses == [self.expected] * 2, "losses differ from the CPU losses"

    def _lose(self, lose: Callable[[], None], words: str) -> None:
        """Runs one round: calls ``lose`` while device 0 trains."""
        trainings = [training("openreg:0"), training("openreg:1")]
        losses = [[next(each)] for each in trainings]
        begun = [0.0]

        def begin() -> None:
            begun[0] = time.monotonic()
            # Either thread may be the first to see the loss of the device.
            with contextlib.suppress(torch.AcceleratorError):
                lose()

        timer = threading.Timer(random.random() / 20, begin)
        timer.start()
        try:
            while time.monotonic() - (begun[0] or time.monotonic()) < 10:
                losses[0].append(next(trainings[0]))
            raise AssertionError("no error reported the loss of device 0")
        except torch.AcceleratorError as error:
            self.delays.append(time.monotonic() - begun[0])
            text = str(error)
        timer.join()
        assert self.delays[-1] < LIMIT, f"late: {self.delays[-1]} s"
        assert "device 0 was lost" in text, text
        assert words in text, text
        self.named += "while it ran aten::" in text
        while len(losses[1]) < STEPS:
            losses[1].append(next(trainings[1]))
        assert losses[1] == self.expected, (
            "losses on device 1 differ from the CPU losses"
        )
        before = losses[0][:STEPS]
        assert before == self.expected[: len(before)], (
            "losses on device 0 differ from the CPU losses"
        )
        del trainings
        torch.openreg.reset_device(0)  # type: ignore[attr-defined]
        again = training("openreg:0")
        assert [next(again) for _ in range(3)] == self.expected[:3], "after the reset"


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--crashes", type=int, default=20)
    parser.add_argument("--exhaustions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.set_num_threads(1)
    reference = training("cpu")
    rounds = Rounds([next(reference) for _ in range(STEPS)])
    plan = [
        *[rounds.kill] * arguments.kills,
        *[rounds.stop] * arguments.stops,
        *[rounds.crash] * arguments.crashes,
        *[rounds.exhaust] * arguments.exhaustions,
    ]
    random.shuffle(plan)
    shared = shared_memory()
    files = 0
    for done, do in enumerate(plan, start=1):
        do()
        if done == 2:
            files = open_files()
        if sys.stderr.isatty():
            print(f"\r{done} of {len(plan)}", end="", file=sys.stderr, flush=True)
    assert len(plan) < 2 or open_files() <= files, "files are still open"
    assert shared_memory() <= shared, "shared memory is left over"
    launchers = children_of(os.getpid())
    processes = [pid for launcher in launchers for pid in children_of(launcher)]
    assert (len(launchers), len(processes)) == (1, 2), "processes are left over"
    delays = sorted(rounds.delays)
    print(
        f"{arguments.kills} kills, {arguments.stops} stops, {arguments.crashes} "
        f"crashes, {arguments.exhaustions} kernels without memory: the error arrived "
        f"after {statistics.median(delays):.3f} s in the median, {delays[-1]:.3f} s at "
        f"most; {rounds.named} of {len(delays)} errors named a running operator"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
