# SPDX-License-Identifier: BSD-3-Clause
"""Device resets: after a loss, in the middle of work, and with living tensors."""

from __future__ import annotations

import pytest

from support.programs import IMPORT, Program

LOSS = {
    "thread": "runtime.Device(0).lose()",
    "process": "os.kill(process_of(0), signal.SIGKILL)",
}

PREPARE = (
    IMPORT
    + """
import gc, os, signal, threading, time
from pathlib import Path
import torch
import openreg_runtime as runtime

def fails(work):
    start = time.monotonic()
    try:
        while time.monotonic() < start + 10:
            work()
    except RuntimeError as error:
        return str(error)

def overlap(tensors):
    ranges = sorted((x.data_ptr(), x.data_ptr() + x.nbytes) for x in tensors)
    return any(one[1] > other[0] for one, other in zip(ranges, ranges[1:]))

def losses(steps=5):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.Dropout(), torch.nn.Linear(16, 4)
    )
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        loss = model(torch.ones(4, 8, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()

device = "openreg:0"
"""
)

isolations = pytest.mark.parametrize("isolation", ["thread", "process"])


def output(fork_python: Program, program: str, isolation: str) -> str:
    """Runs a program; returns what it printed."""
    done = fork_python(
        PREPARE + program,
        OPENREG_ISOLATION=isolation,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@isolations
def test_lost_device_trains_again_after_a_reset(
    fork_python: Program, isolation: str
) -> None:
    program = f"""
expected = list(losses())
other = torch.arange(5, device="openreg:1")
for _ in range(3):
    {LOSS[isolation].strip().replace(chr(10), chr(10) + "    ")}
    assert "lost" in fails(lambda: torch.ones(2, device=device).tolist())
    torch.openreg.reset_device(device)
    assert list(losses()) == expected
print(other.tolist())
"""
    assert output(fork_python, program, isolation) == "[0, 1, 2, 3, 4]\n"


@isolations
def test_tensors_of_before_keep_their_addresses_to_themselves(
    fork_python: Program, isolation: str
) -> None:
    program = """
old = [torch.ones(size, device=device) for size in (10, 1000, 1 << 20, 9 << 20)]
del old[1]
torch.openreg.reset_device(0)
print(torch.openreg.memory_allocated(0), torch.openreg.memory_reserved(0))
new = [torch.full((size,), 3.0, device=device) for size in (10, 1000, 1 << 20, 9 << 20)]
assert not overlap(old + new)
del old
gc.collect()
newer = [torch.full((size,), 4.0, device=device) for size in (10, 1 << 20, 9 << 20)]
assert not overlap(new + newer)
print({x.min().item() for x in new}, {x.max().item() for x in newer})
del new, newer
torch.openreg.empty_cache()
free, total = torch.openreg.mem_get_info(0)
print(total - free)
"""
    assert output(fork_python, program, isolation) == "0 0\n{3.0} {4.0}\n0\n"


@isolations
def test_streams_end_and_the_default_stream_still_works(
    fork_python: Program, isolation: str
) -> None:
    program = """
stream = torch.Stream(device)
torch.openreg.set_stream(torch.openreg.Stream(0))
x = torch.ones(3, device=device)
torch.openreg.reset_device()
print(torch.openreg.current_stream() == torch.openreg.default_stream())
print("destroyed" in fails(stream.synchronize) or "stream" in fails(stream.synchronize))
with torch.openreg.stream(torch.openreg.Stream(0)):
    print((torch.ones(3, device=device) + 1).tolist())
"""
    assert output(fork_python, program, isolation) == "True\nTrue\n[2.0, 2.0, 2.0]\n"


def test_reset_ends_the_running_device_process(fork_python: Program) -> None:
    program = """
x = torch.rand(700, 700, device=device)
pinned = torch.empty(700, 700).pin_memory()
for _ in range(2000):
    x = x @ x
start = time.monotonic()
torch.openreg.reset_device()
print(time.monotonic() - start < 5)
print(torch.ones(2, device=device).tolist())
"""
    assert output(fork_python, program, "process") == "True\n[1.0, 1.0]\n"


def test_mistakes_are_named(fork_python: Program) -> None:
    program = """
print(fails(lambda: torch.openreg.reset_device(7)))
errors = []
def kernel():
    errors.append(fails(torch.openreg.reset_device))
stream = runtime.Stream(0)
stream.launch_host(kernel)
stream.synchronize()
print(*errors)
x = torch.ones(2, device=device)
print(x.tolist())
"""
    first, second, last = output(fork_python, program, "thread").splitlines()
    assert "7" in first
    assert "a kernel cannot wait for its own stream" in second
    assert last == "[1.0, 1.0]"
