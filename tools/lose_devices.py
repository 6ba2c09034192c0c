# SPDX-License-Identifier: BSD-3-Clause
"""Trains on two devices in processes of their own, and kills or stops one of them.

Each round loses device 0 at a random moment of its training. The error has to name the
signal, and come within two seconds; device 1 has to go on with the losses of the CPU,
bit for bit; device 0 has to do so after a reset. In the end no process, open file or
shared memory may be left.

    python tools/lose_devices.py --kills 100 --stops 20
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from workspace import ROOT

os.environ["OPENREG_ISOLATION"] = "process"
sys.path.insert(0, str(ROOT / "tests"))

import torch
from torch import nn

from support.processes import children_of, process_of

STEPS = 40
LIMIT = 2.0  # seconds
WORDS = {
    signal.SIGKILL: "was ended by signal 9 (SIGKILL)",
    signal.SIGSTOP: "was stopped by signal 19 (SIGSTOP)",
}


def training(device: str) -> Iterator[float]:
    """Yields the losses of a training, the same on every device."""
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
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


class Rounds:
    """Trainings of both devices, round after round.

    Args:
        expected: The losses of the CPU.
    """

    def __init__(self, expected: list[float]) -> None:
        self.expected = expected
        self.named = 0
        self.delays: list[float] = []

    def lose(self, number: signal.Signals) -> None:
        """Does one round."""
        trainings = [training("openreg:0"), training("openreg:1")]
        losses = [[next(each)] for each in trainings]
        sent = [0.0]

        def send() -> None:
            sent[0] = time.monotonic()
            os.kill(process, number)

        process = process_of(0)
        timer = threading.Timer(random.random() / 20, send)
        timer.start()
        try:
            while time.monotonic() - (sent[0] or time.monotonic()) < 10:
                losses[0].append(next(trainings[0]))
            raise AssertionError("device 0 was not lost")
        except torch.AcceleratorError as error:
            self.delays.append(time.monotonic() - sent[0])
            text = str(error)
        timer.join()
        assert self.delays[-1] < LIMIT, f"late: {self.delays[-1]} s"
        assert "device 0 was lost" in text, text
        assert WORDS[number] in text, text
        self.named += "while it ran aten::" in text
        while len(losses[1]) < STEPS:
            losses[1].append(next(trainings[1]))
        assert losses[1] == self.expected, "device 1 has other losses than the CPU"
        before = losses[0][:STEPS]
        assert before == self.expected[: len(before)], "device 0 had other losses"
        del trainings
        torch.openreg.reset_device(0)  # type: ignore[attr-defined]
        again = training("openreg:0")
        assert [next(again) for _ in range(3)] == self.expected[:3], "after the reset"


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stops", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    torch.set_num_threads(1)
    reference = training("cpu")
    rounds = Rounds([next(reference) for _ in range(STEPS)])
    signals = [signal.SIGKILL] * arguments.kills + [signal.SIGSTOP] * arguments.stops
    random.shuffle(signals)
    shared = set(Path("/dev/shm").iterdir())
    files = 0
    for done, number in enumerate(signals, start=1):
        rounds.lose(number)
        if done == 2:
            files = open_files()
        if sys.stderr.isatty():
            print(f"\r{done} of {len(signals)}", end="", file=sys.stderr, flush=True)
    assert len(signals) < 2 or open_files() <= files, "files are left open"
    assert set(Path("/dev/shm").iterdir()) <= shared, "shared memory is left"
    launchers = children_of(os.getpid())
    processes = [pid for launcher in launchers for pid in children_of(launcher)]
    assert (len(launchers), len(processes)) == (1, 2), "processes are left"
    delays = sorted(rounds.delays)
    print(
        f"{arguments.kills} kills, {arguments.stops} stops: the error came after "
        f"{statistics.median(delays):.3f} s in the median, {delays[-1]:.3f} s at most; "
        f"{rounds.named} named an operator that ran"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
