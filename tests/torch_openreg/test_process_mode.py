# SPDX-License-Identifier: BSD-3-Clause
"""Training on devices in processes of their own, which may be killed."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from support.programs import Program, run

PREPARE = """
import os, random, signal, sys, threading, time
from pathlib import Path
import torch

def children_of(pid):
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]

def process_of(device):
    for launcher in children_of(os.getpid()):
        for pid in children_of(launcher):
            if Path(f"/proc/{pid}/comm").read_text().strip() == f"openreg-{device}":
                return pid

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


def test_lost_device_does_not_touch_the_other() -> None:
    program = Path(__file__).parents[2] / "tools" / "lose_devices.py"
    seed = str(random.randrange(1000))
    command = [sys.executable, program, "--kills", "4", "--stops", "2", "--seed", seed]
    done = run(
        *command, environment=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    )
    assert done.returncode == 0, (seed, done.stderr)
    assert done.stdout.startswith("4 kills, 2 stops: the error came after 0."), done


def test_kernel_that_crashes_loses_its_device_alone(run_python: Program) -> None:
    program = """
import torch
other = torch.arange(3, device="openreg:1")
for _ in range(2):
    wrong = torch.sparse_coo_tensor(
        [[1 << 45], [0]], [1.0], size=(1, 1), device="openreg:0",
        check_invariants=False,
    )
    try:
        wrong.to_dense().tolist()
    except torch.AcceleratorError as error:
        print(str(error).split("CUDA")[0])
    torch.openreg.reset_device(0)
    assert torch.ones(2, device="openreg:0").tolist() == [1, 1]
print(other.tolist())
"""
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.returncode == 0, done.stderr
    words = "device 0 was lost: its process was ended by signal 11 (SIGSEGV) while it"
    assert done.stdout.count(f"{words} ran aten::_to_dense") == 2, done.stdout
    assert "[0, 1, 2]" in done.stdout


def test_device_without_memory_for_a_kernel_goes_on(run_python: Program) -> None:
    program = (
        PREPARE
        + """
import resource
x = torch.rand(16 << 20, device="openreg")
torch.accelerator.synchronize()
process = process_of(0)
pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + (30 << 20)
resource.prlimit(process, resource.RLIMIT_AS, (limit, limit))
try:
    x.unique()  # as long as x, whose 64 MiB are there
    torch.accelerator.synchronize()
    print("done")
except RuntimeError as error:
    print("can't allocate memory" in str(error))
print((torch.ones(2, device="openreg") + 1).tolist())
"""
    )
    done = run_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.stdout == "True\n[2.0, 2.0]\n", done.stderr


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
