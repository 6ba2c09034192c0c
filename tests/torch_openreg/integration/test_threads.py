# SPDX-License-Identifier: BSD-3-Clause
"""Several Python threads compute on two devices, with the results of the CPU."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from support.programs import Program

THREADS = 6


def chain(device: str, seed: int) -> list[Tensor]:
    """Runs operators of many kinds, with copies between, and returns the results."""
    generator = torch.Generator().manual_seed(seed)
    results = []
    for _ in range(20):
        rows, columns = torch.randint(1, 40, (2,), generator=generator).tolist()
        x = torch.randn(rows, columns, generator=generator)
        y = x.to(device)
        z = (y @ y.T).relu().sum(1, keepdim=True) + y.exp().cumsum(1)
        z[::2] *= 2
        results += [z.cpu(), torch.sort(y.flatten()).values.cpu()]
    return results


def fit(device: str, seed: int) -> list[Tensor]:
    """Trains a small network; backward runs in the threads of autograd."""
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(10):
        optimizer.zero_grad()
        model(
            torch.randn(16, 6, generator=generator).to(device)
        ).square().sum().backward()
        optimizer.step()
    return [value.cpu() for value in model.state_dict().values()]


@pytest.mark.parametrize("work", [chain, fit])
def test_threads_on_two_devices_compute_cpu_results(
    device: str, work: type[chain]
) -> None:
    together = threading.Barrier(THREADS)

    def compute(seed: int) -> list[Tensor]:
        # New threads: each takes the number of threads from the process.
        torch.set_num_threads(1)
        together.wait(30)
        return work(f"{device}:{seed % 2}", seed)

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(compute, range(THREADS)))
    for seed, ours in enumerate(results):
        for value, expected in zip(ours, work("cpu", seed), strict=True):
            assert torch.equal(value, expected)


def test_threads_share_one_tensor_on_one_device(device: str) -> None:
    shared = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
    there = shared.to(device)
    torch.accelerator.synchronize(device)
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda n: (there * n).sum(0).cpu(), range(60)))
    for factor, result in enumerate(results):
        assert torch.equal(result, (shared * factor).sum(0))


def test_current_device_belongs_to_the_thread(device: str) -> None:
    def pick(index: int) -> tuple[int, str]:
        torch.openreg.set_device(index)
        return torch.openreg.current_device(), str(torch.ones(1, device=device).device)

    before = torch.openreg.current_device()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(pick, 1).result() == (1, f"{device}:1")
    assert torch.openreg.current_device() == before


def test_tensor_freed_in_another_thread_releases_its_memory(device: str) -> None:
    torch.accelerator.synchronize(device)
    before = torch.accelerator.memory_allocated(device)
    tensors = [torch.ones(1 << 16, device=device) for _ in range(8)]
    assert torch.accelerator.memory_allocated(device) >= before + (8 << 18)
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert torch.accelerator.memory_allocated(device) == before


def test_synchronize_lets_other_threads_run(device: str) -> None:
    """A thread that waits for the device does not hold the GIL."""
    x = torch.ones(1200, 1200, device=device)
    counted = 0
    done = threading.Event()

    def wait() -> None:
        y = x
        for _ in range(4):
            y = (y @ x).clamp(max=1)
        torch.accelerator.synchronize(device)
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not done.wait(0.001):
        counted += 1
    thread.join()
    assert counted > 1


# PyTorch does some of these with the GIL held.
WAITING = [
    "x[0] = 1.0",
    "torch.full((2,), x[0])",
    "x.untyped_storage().tolist()",
    "x.untyped_storage().cpu()",
    "copy.deepcopy(x)",
    "torch.save(x, io.BytesIO())",
    "x.tolist()",
    "torch.openreg.synchronize()",
]


def test_waiting_for_copies_that_hold_the_last_reference_does_not_deadlock(
    fork_script: Program,
) -> None:
    """The device releases tensors without the GIL, which the waiting host may hold."""
    result = fork_script(
        f"""
        import copy, faulthandler, io
        import torch
        faulthandler.dump_traceback_later(30, exit=True)
        pinned = torch.ones(1 << 20).pin_memory()
        x = torch.ones(8, device="openreg")
        for statement in {WAITING!r}:
            for _ in range(10):
                torch.empty_like(pinned, device="openreg").copy_(
                    pinned, non_blocking=True
                )
            exec(statement)
        torch.openreg.synchronize()
        print("done")
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"
