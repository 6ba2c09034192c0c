# SPDX-License-Identifier: BSD-3-Clause
"""Processes that used the device, and forks, end cleanly even with running work."""

from __future__ import annotations

import pytest
import torch

from openreg_aten import _C
from support.programs import Program

USES = """
import os, sys, threading
import torch
torch.set_num_threads(1)
x = torch.ones(700, 700, device="openreg")
pinned = torch.ones(1 << 20).pin_memory()
there = torch.empty(1 << 20, device="openreg")
stream = torch.Stream("openreg:1")
with stream:
    y = torch.ones(700, 700, device="openreg:1")
    y = (y @ y).clamp(max=1)
event = torch.Event("openreg:1")
event.record(stream)
x = (x @ x).clamp(max=1)
# More work than completes before the interpreter ends. The queue holds the last
# reference to each target.
for _ in range(100):
    torch.empty_like(there).copy_(pinned, non_blocking=True)
back = there.to("cpu", non_blocking=True)
print("pending", flush=True)
"""

ENDINGS = {
    "falls_off_the_end": ("", 0),
    "sys_exit": ("sys.exit(3)", 3),
    "os_exit": ("os._exit(4)", 4),
    "tensors_dropped": ("del x, y, there, back, pinned, stream, event", 0),
    "kept_in_a_cycle": ("cycle = [x, there]; cycle.append(cycle); sys.keep = cycle", 0),
    "thread_outlives_main": (
        """
def compute():
    for _ in range(20):
        (x @ x).sum()
threading.Thread(target=compute).start()
""",
        0,
    ),
    "at_exit_computes": (
        "import atexit\natexit.register(lambda: print('late', (x + 1)[0, 0].item()))",
        0,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_exit_with_work_pending_is_clean(run_script: Program, ending: str) -> None:
    source, code = ENDINGS[ending]
    result = run_script(USES + source)
    assert result.returncode == code, result
    assert result.stdout.startswith("pending\n")
    assert result.stderr == ""
    if ending == "at_exit_computes":
        assert result.stdout.endswith("late 2.0\n")


SLOW_EXIT_BESIDE_A_WAIT = """
import threading, time, torch
storage = torch.ones(8, device="openreg").untyped_storage()
torch.openreg.synchronize()

def wait():
    torch.openreg._sleep(500_000_000)
    storage[0]

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1.5)

threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
slow = Slow()
"""


def test_thread_that_waits_without_the_gil_does_not_abort_the_exit(
    run_script: Program,
) -> None:
    result = run_script(SLOW_EXIT_BESIDE_A_WAIT)
    assert (result.returncode, result.stderr) == (0, "")


def test_exception_with_work_pending_shows_only_its_traceback(
    run_script: Program,
) -> None:
    result = run_script(USES + 'raise ValueError("half way")\n')
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback (most recent call last)")
    assert result.stderr.endswith("ValueError: half way\n")


def test_unobserved_failed_kernel_does_not_abort_the_exit(
    fork_script: Program,
) -> None:
    result = fork_script(
        """
        import torch
        x = torch.ones(4, device="openreg")
        try:
            y = x[torch.tensor([9], device="openreg")]
        except (IndexError, RuntimeError):
            pass
        print("ends")
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "ends\n"


LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return ITEM

if __name__ == "__main__":
    x = torch.ones(4, device="openreg")
    x += 1
    loader = DataLoader(
        Numbers(), batch_size=8, num_workers=2, pin_memory=True,
        multiprocessing_context="METHOD",
    )
    total = 0
    for batch in loader:
        assert batch.is_pinned()
        total += batch.to("openreg", non_blocking=True).sum().item()
    print("total", total, "x", x.tolist())
"""


@pytest.mark.parametrize("attempt", range(4))  # tests a race that was lost in most runs
def test_exit_right_after_backward_is_clean(run_script: Program, attempt: int) -> None:
    result = run_script(
        """
        import torch
        x = torch.ones(2, device="openreg", requires_grad=True)
        (x * x).sum().backward()
        """
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loader_workers_run_while_the_device_is_used(
    fork_script: Program, method: str
) -> None:
    item = "torch.full((3,), float(index))"
    result = fork_script(LOADER.replace("ITEM", item).replace("METHOD", method))
    assert result.returncode == 0, result.stderr
    assert result.stdout == "total 6048.0 x [2.0, 2.0, 2.0, 2.0]\n"
    assert result.stderr == ""


def test_device_in_a_forked_worker_is_refused_and_the_parent_continues(
    fork_script: Program,
) -> None:
    item = 'torch.ones(3, device="openreg").cpu()'
    source = LOADER.replace("ITEM", item).replace("METHOD", "fork")
    source = source.replace("    for batch", "    try:\n      for batch")
    source = source.replace(
        '    print("total"',
        '    except RuntimeError as error:\n      print(error)\n    print("total"',
    )
    result = fork_script(source)
    assert result.returncode == 0, result.stderr
    assert "Cannot re-initialize openreg in forked subprocess" in result.stdout
    assert result.stdout.endswith("total 0 x [2.0, 2.0, 2.0, 2.0]\n")


def test_forked_child_that_does_not_use_the_device_works(fork_script: Program) -> None:
    result = fork_script(
        """
        import os
        import torch
        x = torch.arange(4.0, device="openreg")
        (x @ x).item()
        child = os.fork()
        if child == 0:
            ok = torch.arange(4.0).sum().item() == 6
            try:
                x + 1
                ok = False
            except RuntimeError as error:
                ok = ok and "forked" in str(error)
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), (x + 1).tolist())
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "0 [1.0, 2.0, 3.0, 4.0]\n"


def test_handshake_at_exit_reaches_the_autograd_thread_of_every_device() -> None:
    for index in range(torch.openreg.device_count()):  # each has its thread
        torch.ones(2, device=f"openreg:{index}", requires_grad=True).sum().backward()
    with torch.openreg.operator_paths() as paths:
        _C.drain_autograd()
    sums = sum(count for (name, _), count in paths.calls.items() if name == "aten::sum")
    assert sums == torch.openreg.device_count()


BACKWARD = """
import torch
w = torch.eye(3, device="openreg", requires_grad=True)
s = torch.tensor(8.0, device="openreg")
((w @ w).softmax(0).sum() * s).backward()
"""


@pytest.mark.parametrize("repetition", ["first", "second", "third"])
def test_program_may_end_with_a_backward_pass(
    run_script: Program, repetition: str
) -> None:
    result = run_script(BACKWARD + f"# {repetition}")
    assert result.returncode == 0, result.stderr
