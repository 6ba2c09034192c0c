# SPDX-License-Identifier: BSD-3-Clause
"""Training on devices in separate processes, which are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.programs import IMPORT, ROOT, SECONDS, Program, run

PREPARE = (
    IMPORT
    + """
import os, random, signal, sys, threading, time
from pathlib import Path
import torch

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
)


def test_training_has_the_bits_of_the_cpu(fork_python: Program) -> None:
    program = PREPARE + "print(curve('openreg') == curve('cpu'))"
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_random_numbers_are_those_of_the_cpu(fork_python: Program) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_kernels_of_two_streams_have_the_settings_of_their_calls(
    fork_python: Program,
) -> None:
    program = (
        PREPARE
        + """
count = 1 << 22
index = torch.randint(1 << 20, (1, count), device="openreg")
values = torch.ones(count, dtype=torch.int64, device="openreg")
x = torch.sparse_coo_tensor(index, values, (1 << 20,), check_invariants=False)
torch.accelerator.synchronize()

def ticks():
    words = Path(f"/proc/{process_of(0)}/stat").read_text().rpartition(") ")[2].split()
    return int(words[11]) + int(words[12])  # in user and system mode

def call():
    with torch.openreg.stream(torch.openreg.Stream()):
        dtypes["first"] = x.sin().dtype  # sums all values, then asks for the default

dtypes = {}
before = ticks()
thread = threading.Thread(target=call)
thread.start()
while ticks() < before + 5:  # until the kernel runs
    time.sleep(0.001)
torch.set_default_dtype(torch.float64)
dtypes["second"] = (values[:2] / 3).cpu().dtype
thread.join()
print(dtypes["first"], dtypes["second"])
"""
    )
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("torch.float32 torch.float64\n", "")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_lost_device_does_not_touch_the_other() -> None:
    program = ROOT / "tools" / "lose_devices.py"
    seed = str(random.randrange(1000))
    rounds = {"--kills": 3, "--stops": 1, "--crashes": 2, "--exhaustions": 2}
    counts = [str(word) for option in rounds.items() for word in option]
    done = run(
        *(sys.executable, program, *counts, "--seed", seed),
        environment=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        seconds=250,
    )
    assert done.returncode == 0, (seed, done.stderr)
    assert "the error arrived after 0." in done.stdout, done


def test_crashing_kernel_loses_only_its_device(fork_python: Program) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.returncode == 0, done.stderr
    words = "device 0 was lost: its process was ended by signal 11 (SIGSEGV) while it"
    assert done.stdout.count(f"{words} ran aten::_to_dense") == 2, done.stdout
    assert "[0, 1, 2]" in done.stdout


def test_device_still_works_after_a_kernel_without_memory(fork_python: Program) -> None:
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
    print(type(error).__name__, "Tried to allocate" in str(error))
print((torch.ones(2, device="openreg") + 1).tolist())
"""
    )
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.stdout == "OutOfMemoryError True\n[2.0, 2.0]\n", done.stderr


def test_warning_of_a_kernel_is_the_hosts(fork_python: Program) -> None:
    program = """
import warnings, torch
x = torch.zeros(3, device="openreg")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.add(torch.ones(2, 2, device="openreg"), 1, out=x)
print([str(each.message)[:40] for each in caught], x.tolist())
"""
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert "An output with one or more elements was" in done.stdout, done.stderr
    assert "[[2.0, 2.0], [2.0, 2.0]]" in done.stdout


def test_operator_with_packed_weights_is_refused_by_name(fork_python: Program) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert "quantized::linear has arguments or results" in done.stdout
    assert "torch.Size([2, 4])" in done.stdout, done.stderr


@pytest.mark.parametrize("isolation", ["thread", "loopback", "process"])
def test_operator_is_one_launch(fork_python: Program, isolation: str) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION=isolation, TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert (done.stdout, done.stderr) == ("3 True\n" * 3, "")


def test_generator_draws_the_numbers_of_the_cpu_after_its_first_message_fails(
    fork_python: Program,
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
        done = fork_python(
            program,
            OPENREG_ISOLATION="process",
            OPENREG_INLINE_BYTES=inline_bytes,
            TORCH_DEVICE_BACKEND_AUTOLOAD="1",
        )
        assert (done.stdout, done.stderr) == ("True\n" * 4, "")


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_generator_draws_on_several_devices_in_turn(
    fork_python: Program, isolation: str
) -> None:
    program = """
import threading, torch

generator = torch.Generator("openreg:0").manual_seed(7)
cpu = torch.Generator().manual_seed(7)
for turn in range(6):
    drawn = torch.rand(5, generator=generator, device=f"openreg:{turn % 2}")
    normal = torch.randn(3, generator=generator, device=f"openreg:{turn // 2 % 2}")
    assert torch.equal(drawn.cpu(), torch.rand(5, generator=cpu)), turn
    assert torch.equal(normal.cpu(), torch.randn(3, generator=cpu)), turn
    state = generator.get_state()
    later = torch.rand(4, generator=generator, device="openreg:1")
    generator.set_state(state)
    again = torch.rand(4, generator=generator, device="openreg:0")
    assert torch.equal(later.cpu(), again.cpu())
    torch.rand(4, generator=cpu)

def draw(device, results):
    for _ in range(50):
        with lock:
            results.append(torch.rand(4, generator=generator, device=device))

results, lock = [], threading.Lock()
threads = [
    threading.Thread(target=draw, args=(f"openreg:{index}", results))
    for index in range(2)
]
for each in threads:
    each.start()
for each in threads:
    each.join()
drawn = {tuple(each.tolist()) for each in results}
print(drawn == {tuple(torch.rand(4, generator=cpu).tolist()) for _ in range(100)})
"""
    done = fork_python(
        program,
        OPENREG_ISOLATION=isolation,
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_device_forgets_generators_of_the_past(fork_python: Program) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert int(done.stdout) < 5000, done.stderr  # KiB; 2.5 for each would be 15000


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_copy_from_the_host_raises_an_earlier_failure_that_dropped_it(
    fork_python: Program, isolation: str
) -> None:
    program = """
import torch
from torch_openreg.testing import inject_failure
x = torch.zeros(3, device="openreg")
pinned = torch.ones(3).pin_memory()
with inject_failure("launch"):
    x + 1
try:
    x.copy_(pinned)
except RuntimeError as error:
    print("injected" in str(error))
x.copy_(pinned)
pinned.zero_()
print(x.tolist())
"""
    done = fork_python(
        program,
        OPENREG_ISOLATION=isolation,
        OPENREG_INLINE_BYTES="0",
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert done.stdout == "True\n[1.0, 1.0, 1.0]\n", done.stderr


@pytest.mark.parametrize("isolation", ["thread", "loopback", "process"])
def test_work_behind_a_failed_operator_is_dropped(
    fork_python: Program, isolation: str
) -> None:
    program = """
import torch
source, counter = (torch.zeros(2**18, device="openreg") for _ in range(2))
good, bad = (torch.full((2**18,), n, device="openreg") for n in (0, 2**19))
square = torch.randn(900, 900, device="openreg")
source.index_select(0, good)  # caches the shape of the result
counter.add_(0)
torch.accelerator.synchronize()
for _ in range(8):
    square @ square  # so that the operators below are sent ahead
source.index_select(0, bad)
counter.add_(1)
counter.add_(1)
try:
    torch.accelerator.synchronize()
except RuntimeError as error:
    print("out of range" in str(error))
print(counter.max().item())
"""
    done = fork_python(
        program, OPENREG_ISOLATION=isolation, TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.stdout == "True\n0.0\n", done.stderr


def test_quantized_tensor_goes_to_another_device_in_order(fork_python: Program) -> None:
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
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.returncode == 0, done.stderr


SCRIBBLED = """
import select, sys
import torch
from openreg_runtime import failures

torch.set_num_threads(1)
device = "openreg:0"
x = torch.arange(1000.0)
expected = (x * 2 + 1)[x > 500].sum().item()
errors = 0

def reset():
    while True:
        try:
            return torch.openreg.reset_device(0)
        except torch.AcceleratorError as error:
            assert "orErrorTimeout" in str(error), error

torch.ones(1, device=device)
print("begin", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        y = x.to(device)
        for _ in range(20):
            z = (y * 2 + 1)[y > 500]
        z.sum().item()
    except RuntimeError:
        errors += 1
        reset()
reset()
# The device process has just started, and has not loaded PyTorch yet.
with failures.wait_timeout(60, 0):
    y = x.to(device)
    print(errors > 0, (y * 2 + 1)[y > 500].sum().item() == expected)
"""


def state_of(task: Path) -> str:
    """Returns the letter of the state of a thread, such as ``T`` if it is stopped."""
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stops all threads of a process, so that its mappings stay as they are.

    The processes of its devices continue to read.
    """
    os.kill(pid, signal.SIGSTOP)
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended
                while state_of(task) in "RSD":
                    time.sleep(0.0001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def scribble(memory: int, pid: int, random_numbers: random.Random) -> int:
    """Writes into the rings between a program and its devices, if any exist."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    lanes = [line.split()[0].split("-") for line in lines if "openreg-lane" in line]
    if not lanes:
        return 0
    begin, end = (int(each, 16) for each in random_numbers.choice(lanes))
    written = 0
    for _ in range(random_numbers.choice((1, 10, 200))):
        size = random_numbers.choice((1, 8, 64))
        half = random_numbers.choice((begin, (begin + end) // 2))
        address = half + random_numbers.choice(
            (
                random_numbers.randrange(4096),  # positions and the first commands
                random_numbers.randrange((end - begin) // 2 - size),
            )
        )
        data = random_numbers.choice(
            (bytes(size), b"\xff" * size, random_numbers.randbytes(size))
        )
        written += os.pwrite(memory, data, address)
    return written


def test_rings_that_are_written_while_they_are_read_lose_the_device_at_most() -> None:
    seed = random.randrange(1 << 16)
    random_numbers = random.Random(seed)
    environment = os.environ | {
        "OPENREG_ISOLATION": "process",
        "OPENREG_WAIT_TIMEOUT": "200",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-c", SCRIBBLED],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begin\n"
        memory = os.open(f"/proc/{program.pid}/mem", os.O_RDWR)
        end, written = time.monotonic() + 3, 0
        while time.monotonic() < end and program.poll() is None:
            with stopped(program.pid):
                written += scribble(memory, program.pid, random_numbers)
            time.sleep(random_numbers.random() / 100)
        os.close(memory)
        printed, told = program.communicate("", timeout=SECONDS)
    assert written > 0
    assert (program.returncode, printed) == (0, "True True\n"), (seed, told)


def test_tensor_of_more_than_64_dimensions_is_the_cpus(fork_python: Program) -> None:
    program = """
import torch
x = torch.arange(2.0).reshape([1] * 70 + [2])
y = x.to("openreg")
print(torch.equal((y + y).sin().cpu(), (x + x).sin()))
for each in (x, y):
    try:
        torch.amax(each, 0)
    except RuntimeError as error:
        print(error)
"""
    for isolation in ("loopback", "process"):
        done = fork_python(
            program, OPENREG_ISOLATION=isolation, TORCH_DEVICE_BACKEND_AUTOLOAD="1"
        )
        refused = "only tensors with up to 64 dims are supported\n"
        assert (done.stdout, done.stderr) == ("True\n" + 2 * refused, "")


def test_operator_that_only_the_program_has_is_not_implemented(
    fork_python: Program,
) -> None:
    program = """
import torch
library = torch.library.Library("mine", "DEF")
library.define("plus(Tensor x) -> Tensor")
library.impl("plus", lambda x: x + 1, "CPU")
x = torch.ones(2, device="openreg")
for _ in range(2):
    try:
        torch.ops.mine.plus(x)
    except NotImplementedError as error:
        print(str(error).partition(":")[0])
print(torch.ops.mine.plus(x.cpu()).tolist(), x.tolist())
"""
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    refused = "the device process has no operator mine\n"
    assert (done.stdout, done.stderr) == (2 * refused + "[2.0, 2.0] [1.0, 1.0]\n", "")


def test_fake_sparse_tensors_have_metadata(fork_python: Program) -> None:
    program = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    sparse = torch.eye(3, device="openreg").to_sparse_csr()
    dense = torch.ones(3, 4, device="openreg")
    result = torch.sparse.sampled_addmm(sparse, dense, dense.t())
print(result.layout, tuple(result.shape), result.device)
"""
    done = fork_python(
        program, OPENREG_ISOLATION="process", TORCH_DEVICE_BACKEND_AUTOLOAD="1"
    )
    assert done.stdout == "torch.sparse_csr (3, 3) openreg:0\n", done.stderr


def test_kernel_that_hangs_is_named_and_ended_by_a_reset(fork_python: Program) -> None:
    program = """
import time
import torch
from openreg_runtime import failures
torch.set_num_threads(1)
other = torch.arange(3, device="openreg:1")
x = torch.ones(3000, 3000, device="openreg:0")
torch.accelerator.synchronize()
for _ in range(60):
    y = x @ x  # a minute of work
begin = time.monotonic()
with failures.wait_timeout(0.3):
    try:
        torch.accelerator.synchronize()
    except torch.AcceleratorError as error:
        print("orErrorTimeout" in str(error), "300 ms and runs aten::mm" in str(error))
print(other.tolist())
del x, y
torch.openreg.reset_device(0)
print(torch.ones(2, device="openreg:0").tolist(), time.monotonic() - begin < 10)
"""
    done = fork_python(
        program,
        OPENREG_ISOLATION="process",
        OPENREG_INLINE_BYTES="0",
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    assert done.stdout == "True True\n[0, 1, 2]\n[1.0, 1.0] True\n", done.stderr
