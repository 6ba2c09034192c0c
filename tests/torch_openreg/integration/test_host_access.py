# SPDX-License-Identifier: BSD-3-Clause
"""Host access to device memory faults with a helpful message."""

from __future__ import annotations

import re
import signal
from textwrap import dedent

import pytest

from support.programs import Program

PREAMBLE = """
import ctypes, faulthandler, threading
import torch
torch.set_num_threads(1)
x = torch.empty(1024, device="openreg:INDEX")
print(hex(x.data_ptr()), flush=True)
"""

# The device, and the program up to the access, which is the last ``ctypes`` line.
SITUATIONS = {
    "before_any_kernel": (
        0,
        """
        ctypes.string_at(x.data_ptr(), 4)
        """,
    ),
    "after_kernels": (
        1,
        """
        assert (x.fill_(7) + x).relu().sum().item() == 14 * 1024
        ctypes.string_at(x.data_ptr(), 4)
        """,
    ),
    "with_work_queued": (
        0,
        """
        pinned = torch.ones(1 << 23).pin_memory()
        there = torch.empty_like(pinned, device=x.device)
        for _ in range(20):
            there.copy_(pinned, non_blocking=True)
        ctypes.string_at(x.data_ptr(), 4)
        """,
    ),
    "while_another_thread_runs_kernels": (
        1,
        """
        started = threading.Event()
        def compute():
            big = torch.ones(700, 700, device=x.device)
            for _ in range(2000):
                big = (big @ big).clamp(max=1)
                torch.accelerator.synchronize(x.device)
                started.set()
        threading.Thread(target=compute, daemon=True).start()
        assert started.wait(60)
        ctypes.string_at(x.data_ptr(), 4)
        """,
    ),
    "in_another_thread": (
        0,
        """
        def read():
            ctypes.string_at(x.data_ptr(), 4)
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        """,
    ),
    "by_writing": (
        1,
        """
        ctypes.memset(x.data_ptr(), 0, 4)
        """,
    ),
    "inside_the_block": (
        0,
        """
        y = x[1000:]
        print(hex(y.data_ptr()), flush=True)
        ctypes.string_at(y.data_ptr(), 4)
        """,
    ),
}


def script(situation: str) -> tuple[int, str]:
    """Returns the device's index and the source of one situation."""
    index, body = SITUATIONS[situation]
    source = PREAMBLE.lstrip() + dedent(body).lstrip() + 'print("survived")\n'
    return index, source.replace("INDEX", str(index))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_host_access_faults_with_a_message(run_script: Program, situation: str) -> None:
    index, source = script(situation)

    result = run_script(source, "-X", "faulthandler")

    assert result.returncode == -signal.SIGSEGV, result
    assert "survived" not in result.stdout
    # The device, the address and the block that holds it ...
    address = result.stdout.split()[-1]
    assert f"openreg:{index}" in result.stderr
    assert address in result.stderr
    assert re.search(r"block of \d+ bytes", result.stderr)
    # ... and the line of Python.
    lines = enumerate(source.splitlines(), 1)
    access = [number for number, line in lines if "ctypes." in line][-1]
    assert f'script.py", line {access} in' in result.stderr


def test_host_access_without_faulthandler_still_names_the_device(
    run_script: Program,
) -> None:
    _, source = script("before_any_kernel")
    result = run_script(source, PYTHONFAULTHANDLER=None)
    assert result.returncode == -signal.SIGSEGV
    assert "openreg:0" in result.stderr


def test_another_fault_is_not_blamed_on_a_device(run_script: Program) -> None:
    result = run_script(
        """
        import ctypes
        import torch
        torch.ones(2, device="openreg").sum().item()
        ctypes.string_at(16, 4)
        """,
        "-X",
        "faulthandler",
    )
    assert result.returncode == -signal.SIGSEGV
    assert "openreg:" not in result.stderr
    assert 'script.py", line 4 in' in result.stderr


def test_host_memory_stays_readable(run_script: Program) -> None:
    """The host can access pinned memory, also while the device copies from it."""
    result = run_script(
        """
        import ctypes
        import struct
        import torch
        pinned = torch.full((1024,), 7.0).pin_memory()
        there = pinned.to("openreg", non_blocking=True)
        print(struct.unpack("f", ctypes.string_at(pinned.data_ptr(), 4)))
        back = there.cpu()
        print(struct.unpack("f", ctypes.string_at(back.data_ptr(), 4)))
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["(7.0,)"] * 2
