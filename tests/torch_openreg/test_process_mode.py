# SPDX-License-Identifier: BSD-3-Clause
"""Training on devices in processes of their own, which may be killed."""

from __future__ import annotations

import pytest

from support.programs import Program

PREPARE = """
import os, random, signal, sys, threading, time
from pathlib import Path
import torch

def process_of(device):
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = status.read_text().split()
        except OSError:
            continue
        if words[1] == f"(openreg-{device})" and os.getsid(int(words[0])) == session:
            return int(words[0])

def training(device, seed=0):
    torch.manual_seed(seed)
    data = torch.randn(64, 32).to(device)
    target = torch.randn(64, 4).to(device)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64),
        torch.nn.Linear(64, 4),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    while True:
        loss = torch.nn.functional.mse_loss(model(data), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()

def curve(device, steps=60):
    steps_of = training(device)
    return [next(steps_of) for _ in range(steps)]

torch.set_num_threads(1)
"""

KILL = """
expected = curve("cpu")
trainings = [training("openreg:0"), training("openreg:1")]
losses = [[next(each)] for each in trainings]
launcher = int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text())
session = os.getsid(launcher)
end = (process_of(0), signal.SIGNAL)
threading.Timer(random.random() / 20, os.kill, end).start()
start = time.monotonic()
try:
    while time.monotonic() < start + 10:
        losses[0].append(next(trainings[0]))
    print("not lost")
except torch.AcceleratorError as error:
    assert time.monotonic() < start + 2, "late"
    print(str(error))
while len(losses[1]) < 60:
    losses[1].append(next(trainings[1]))
assert losses[1] == expected
assert losses[0][:60] == expected[:len(losses[0])]
"""


def test_training_has_the_bits_of_the_cpu(run_python: Program) -> None:
    program = PREPARE + "print(curve('openreg') == curve('cpu'))"
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_random_numbers_are_those_of_the_cpu(run_python: Program) -> None:
    program = """
import torch

def draw(device):
    torch.manual_seed(3)
    first = torch.rand(5, device=device)
    state = torch.get_rng_state() if device == "cpu" else torch.openreg.get_rng_state()
    second = torch.nn.functional.dropout(torch.ones(50, device=device))
    generator = torch.Generator(device).manual_seed(7)
    third = torch.randperm(20, generator=generator, device=device)
    fourth = torch.randn(4, generator=generator, device=device)
    (torch.set_rng_state if device == "cpu" else torch.openreg.set_rng_state)(state)
    again = torch.nn.functional.dropout(torch.ones(50, device=device))
    assert torch.equal(second, again)
    return [each.tolist() for each in (first, second, third, fourth)]

print(draw("openreg") == draw("cpu"))
"""
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.parametrize(
    ("signal", "words"),
    [("KILL", "ended by signal 9 (SIGKILL)"), ("STOP", "stopped by signal 19")],
)
@pytest.mark.parametrize("moment", range(3))
def test_lost_device_does_not_touch_the_other(
    run_python: Program, signal: str, words: str, moment: int
) -> None:
    program = (
        PREPARE + f"random.seed({moment})" + KILL.replace("SIGNAL", "SIG" + signal)
    )
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.returncode == 0, done.stderr
    assert "device 0 was lost: its process was " + words in done.stdout


def test_warning_of_a_kernel_is_the_hosts(run_python: Program) -> None:
    program = """
import warnings, torch
x = torch.zeros(3, device="openreg")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.add(torch.ones(2, 2, device="openreg"), 1, out=x)
print([str(each.message)[:40] for each in caught], x.tolist())
"""
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert "An output with one or more elements was" in done.stdout, done.stderr
    assert "[[2.0, 2.0], [2.0, 2.0]]" in done.stdout


def test_operator_with_packed_weights_is_refused_by_name(run_python: Program) -> None:
    program = """
import torch
weight = torch.quantize_per_tensor(torch.randn(4, 4), 0.1, 0, torch.qint8)
packed = torch.ops.quantized.linear_prepack(weight, None)
x = torch.quantize_per_tensor(torch.randn(2, 4, device="openreg"), 0.1, 0, torch.quint8)
try:
    torch.ops.quantized.linear(x, packed, 0.1, 0)
except NotImplementedError as error:
    print(error)
print(x.int_repr().shape)
"""
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert "a call of quantized::linear has arguments or results" in done.stdout
    assert "torch.Size([2, 4])" in done.stdout, done.stderr


@pytest.mark.parametrize("isolation", ["thread", "loopback", "process"])
def test_operator_is_one_launch(run_python: Program, isolation: str) -> None:
    program = """
import torch
from torch_openreg.testing import inject_failure
x = torch.arange(4, device="openreg")
for work in (x.nonzero, lambda: x + 1, lambda: torch.unique(x)):
    work()
    with inject_failure("launch", first=3) as failure:
        for _ in range(2):
            work()
        try:
            work()
            torch.accelerator.synchronize()
        except RuntimeError as error:
            print(failure.calls, "injected" in str(error))
"""
    done = run_python(
        program, OPENREG_ISOLATION=isolation, TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("3 True\n" * 3, "")


def test_generator_whose_first_message_fails_draws_what_the_cpu_draws(
    run_python: Program,
) -> None:
    program = """
import torch
from torch_openreg.testing import inject_failure
torch.ones(1, device="openreg")
generator = torch.Generator("openreg").manual_seed(7)
with inject_failure("launch"):
    try:
        torch.rand(3, device="openreg", generator=generator)
        torch.accelerator.synchronize()
    except RuntimeError as error:
        print("injected" in str(error))
state = generator.get_state()
cpu = torch.Generator().manual_seed(7)
for _ in range(2):
    drawn = torch.rand(3, device="openreg", generator=generator)
    print(torch.equal(drawn.cpu(), torch.rand(3, generator=cpu)))
generator.set_state(state)
drawn = torch.rand(3, device="openreg", generator=generator)
print(torch.equal(drawn.cpu(), torch.rand(3, generator=cpu.manual_seed(7))))
"""
    for inline_bytes in ("0", "65536"):
        done = run_python(
            program,
            OPENREG_ISOLATION="process",
            OPENREG_INLINE_BYTES=inline_bytes,
            TORCH_DEVICE_BACKEND_AUTOLOAD="1",
        )
        assert (done.stdout, done.stderr) == ("True\n" * 4, "")


def test_device_forgets_generators_of_the_past(run_python: Program) -> None:
    program = (
        PREPARE
        + """
def memory():
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])

def draw(times):
    for seed in range(times):
        torch.manual_seed(seed)
        torch.rand(1, device="openreg")

draw(1000)
launcher = int(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text())
session = os.getsid(launcher)
process = process_of(0)
before = memory()
draw(6000)
print(memory() - before)
"""
    )
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert int(done.stdout) < 5000, done.stderr  # KiB; 2.5 for each would be 15000


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_copy_from_the_host_does_not_report_what_failed_before(
    run_python: Program, isolation: str
) -> None:
    program = """
import torch
from torch_openreg.testing import inject_failure
x = torch.zeros(3, device="openreg")
pinned = torch.ones(3).pin_memory()
with inject_failure("launch"):
    x + 1
x.copy_(pinned)
pinned.zero_()
print("copied")
try:
    torch.accelerator.synchronize()
except RuntimeError as error:
    print("injected" in str(error))
print(x.tolist())
"""
    done = run_python(
        program,
        OPENREG_ISOLATION=isolation,
        OPENREG_INLINE_BYTES="0",
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert done.stdout == "copied\nTrue\n[1.0, 1.0, 1.0]\n", done.stderr


def test_quantized_tensor_goes_to_another_device_in_order(run_python: Program) -> None:
    program = """
import torch
numbers = torch.arange(120_000).remainder(200).float().reshape(300, 400)
expected = torch.quantize_per_tensor(numbers.t() + 1, 1.0, 0, torch.quint8)
for _ in range(5):
    there = numbers.to("openreg:0")
    quantized = torch.quantize_per_tensor(there + 1, 1.0, 0, torch.quint8)
    moved = quantized.t().to("openreg:1")
    assert torch.equal(moved.cpu().int_repr(), expected.int_repr())
"""
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.returncode == 0, done.stderr
