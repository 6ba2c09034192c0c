# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of enqueued operators: exceptions, failures, forks, exits, waits.

Each program is run with everything enqueued, and with small operators on the calling
thread.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import openreg_runtime as runtime
from support.latches import Latches
from support.programs import Program

both_ways = pytest.mark.parametrize("inline_bytes", ["0", "65536"])

# A stream that is held, and a training step that is enqueued behind.
HELD = """
import os, sys, threading
import torch
from torch import nn
import openreg_runtime
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)).to("openreg")
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(16, 32).to("openreg")

def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()

for _ in range(2):
    step()
torch.openreg.synchronize()
gate = threading.Event()
openreg_runtime.Device(0).default_stream.launch(gate.wait)
loss = step()
pending = not torch.openreg.current_stream().query()
print("pending" if pending else "done", flush=True)
"""


ENDINGS = {
    "falls_off_the_end": ("", 0),
    "sys_exit": ("sys.exit(3)", 3),
    "os_exit": ("os._exit(4)", 4),
    "tensors_dropped": ("del loss, x, model, optimizer", 0),
    "thread_waits": (
        "threading.Thread(target=torch.openreg.synchronize, daemon=True).start()",
        0,
    ),
    "thread_goes_backward": (
        """
def train():
    for _ in range(5):
        step()
threading.Thread(target=train).start()
""",
        0,
    ),
    "exception": ('raise ValueError("half way")', 1),
}


@both_ways
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("released", ["gate.set()", ""], ids=["runs", "is_held"])
def test_process_ends_with_operators_enqueued(
    run_script: Program, ending: str, released: str, inline_bytes: str
) -> None:
    source, code = ENDINGS[ending]
    result = run_script(
        f"{HELD}{released}\n{source}", OPENREG_INLINE_BYTES=inline_bytes
    )
    assert result.returncode == code, result
    assert result.stdout == "pending\n"
    if ending == "exception":
        assert result.stderr.endswith("ValueError: half way\n")
        assert result.stderr.startswith("Traceback (most recent call last)")
    else:
        assert result.stderr == ""


@both_ways
def test_fork_with_operators_enqueued_leaves_both_processes_alone(
    run_script: Program, inline_bytes: str
) -> None:
    result = run_script(
        HELD
        + """
uses = {
    "a wait": lambda: torch.openreg.synchronize(),
    "an operator": lambda: x + 1,
    "a copy": lambda: x.cpu(),
    "a read": lambda: loss.item(),
    "a new tensor": lambda: torch.ones(2, device="openreg"),
    "an event": lambda: torch.openreg.Event().record(),
    "a backward pass": lambda: model(x).sum().backward(),
}
for attempt in range(5):
    child = os.fork()
    if child == 0:
        for name, use in uses.items():
            try:
                use()
                print(name, "worked")
            except RuntimeError as error:
                if "Cannot re-initialize openreg in forked" not in str(error):
                    print(name, error)
        assert torch.ones(2).sum() == 2
        del x, loss, model, optimizer
        sys.exit(7)  # through all exit handlers
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
print("pending" if not torch.openreg.current_stream().query() else "done")
gate.set()
print(loss.isfinite().item(), step().item() < loss.item())
""",
        OPENREG_INLINE_BYTES=inline_bytes,
    )
    assert result.returncode == 0, result
    assert result.stdout.split("\n") == [
        "pending",
        *["7"] * 5,
        "pending",
        "True True",
        "",
    ]


SPAWNED = """
import torch
import torch.multiprocessing

def train(rank, losses):
    device = DEVICE
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    model = torch.nn.Linear(200, 200).to(device)
    x = torch.randn(300, 200).to(device)
    for _ in range(3):
        loss = model(x).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    losses[rank] = loss.item()
    model(x).sum().backward()  # still under way when the process ends

if __name__ == "__main__":
    y = torch.ones(300, 300, device="openreg")
    z = y @ y
    ours, cpu = torch.zeros(3), torch.zeros(3)
    ours.share_memory_()
    torch.multiprocessing.spawn(train, (ours,), nprocs=3)
    print(ours.tolist(), z.sum().item())
"""


@both_ways
def test_spawned_processes_train_and_end_with_operators_enqueued(
    run_script: Program, inline_bytes: str
) -> None:
    result = run_script(
        SPAWNED.replace("DEVICE", 'f"openreg:{rank % 2}"'),
        OPENREG_INLINE_BYTES=inline_bytes,
    )
    assert result.returncode == 0, result.stderr
    expected = run_script(SPAWNED.replace("DEVICE", '"cpu"'))
    assert expected.returncode == 0, expected.stderr
    assert result.stdout == expected.stdout
    assert result.stderr == ""


def test_exception_with_operators_enqueued_gives_their_memory_back(
    device: str, latch: Latches
) -> None:
    x = torch.ones(1000, device=device)
    (x * 2 + 1).sum()
    torch.accelerator.synchronize()
    gc.collect()
    before = torch.accelerator.memory_allocated()
    held = latch()

    def compute() -> None:
        y = x * 2
        z = y + 1
        raise ValueError(z.shape)

    with pytest.raises(ValueError, match="1000"):
        compute()
    gc.collect()
    assert held.holds
    assert torch.accelerator.memory_allocated() == before
    later = x * 2 + 1  # in the memory of what the exception has dropped
    held.release()
    assert later.eq(3).all()


WAITS: dict[str, Callable[[Tensor], object]] = {
    "device": lambda x: torch.accelerator.synchronize(),
    "module": lambda x: torch.openreg.synchronize(0),
    "stream": lambda x: torch.accelerator.current_stream().synchronize(),
    "query": lambda x: torch.accelerator.current_stream().query(),
    "item": lambda x: x.sum().item(),
    "copy to the host": lambda x: x.cpu(),
    "list": lambda x: x.tolist(),
    "condition": lambda x: bool(x[0] == 1),
    "text": repr,
}


@pytest.fixture
def failing() -> Callable[[str], None]:
    """Gives a function that enqueues an operator whose kernel fails."""

    def fail(device: str) -> None:
        weight = torch.ones(4, 2, device=device)
        good = torch.tensor([0, 3]).to(device)
        F.embedding(good, weight)
        bad = torch.tensor([0, 9]).to(device)
        torch.accelerator.synchronize(device)
        index = torch.device(device).index or 0
        gate = threading.Event()
        handle = torch.accelerator.current_stream(index).native_handle
        runtime.Stream.from_handle(handle).launch(gate.wait, 30)
        F.embedding(bad, weight)  # no error yet
        gate.set()

    return fail


@pytest.mark.parametrize("name", WAITS)
def test_failed_operator_is_named_by_the_next_wait_and_forgotten(
    device: str, failing: Callable[[str], None], name: str
) -> None:
    x = torch.ones(3, device=device)
    WAITS[name](x)
    failing(device)
    if name == "query":
        torch.accelerator.current_stream().record_event().synchronize()
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        WAITS[name](x)
    if name == "query":  # which asks, and takes nothing
        with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
            torch.accelerator.synchronize()
    WAITS[name](x)
    assert (x + 1).tolist() == [2, 2, 2]


def test_failed_operator_of_another_device_or_stream_is_reported_there(
    device: str, failing: Callable[[str], None]
) -> None:
    side = torch.Stream(device)
    with side:
        failing(device)
    failing(f"{device}:1")
    torch.accelerator.current_stream(0).synchronize()
    for wait in (side.synchronize, lambda: torch.accelerator.synchronize(1)):
        with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
            wait()
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)


def test_failed_operator_of_a_backward_pass_is_named(
    device: str, latch: Latches
) -> None:
    class Lookup(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, indices: Tensor) -> Tensor:
            ctx.save_for_backward(indices)
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
            (indices,) = ctx.saved_tensors
            return F.embedding(indices, gradient), None

    good, bad = (torch.tensor(i).to(device) for i in ([0, 1], [0, 5]))
    x = torch.ones(2, 3, device=device, requires_grad=True)
    torch.autograd.grad(Lookup.apply(x, good).sum(), x)
    torch.accelerator.synchronize()
    held = latch()
    torch.autograd.grad(Lookup.apply(x, bad).sum(), x)
    assert held.holds
    held.release()
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        torch.accelerator.synchronize()


def test_failed_operator_is_an_error_of_the_call_with_launch_blocking(
    run_script: Program,
) -> None:
    result = run_script(
        """
        import torch
        weight = torch.ones(500, 500, device="openreg")
        good, bad = (torch.tensor([i]).to("openreg") for i in (0, 500))
        torch.nn.functional.embedding(good, weight)
        torch.nn.functional.embedding(bad, weight)  # this line
        torch.openreg.synchronize()
        """,
        OPENREG_LAUNCH_BLOCKING="1",
        OPENREG_INLINE_BYTES="0",
    )
    assert result.returncode == 1
    assert "# this line" in result.stderr
    assert "synchronize()" not in result.stderr
    assert result.stderr.rstrip().endswith("IndexError: index out of range in self")


# Each waits for the stream.
WAITING = [
    "torch.openreg.synchronize()",
    "torch.accelerator.synchronize()",
    "torch.openreg.current_stream().synchronize()",
    "event.record(); event.synchronize()",
    "x.sum().item()",
    "x.cpu()",
    "x.tolist()",
    "bool(x[0])",
    "repr(x)",
    "x.nonzero()",
    "x[x > 0]",
    "x.unique()",
    "x.to('openreg:1').cpu()",
    "torch.tensor([1.0], device='openreg')",
    "leaf.sum().backward(); leaf.grad.cpu()",
    # PyTorch itself does these with the interpreter's lock held.
    "torch.full((2,), x[0])",
    "storage[0]",
    "storage.tolist()",
    "storage.cpu()",
    "storage.copy_(host)",
    "host.copy_(storage)",
    "torch.save(x, io.BytesIO())",
    "pickle.dumps(x)",
]

# Each is enqueued, or waits if its results are not known yet.
WAITING_AT_FIRST = [
    "x[0] = 1.0",
    "storage.fill_(0)",
    "storage[0] = 1",
    "storage.clone()",
    "x.clone().untyped_storage().resize_(4000)",
    "copy.deepcopy(x)",
    "torch.rand(3, device='openreg')",
]


def test_host_waits_without_the_lock_of_the_interpreter(run_script: Program) -> None:
    """Before each statement comes a kernel in Python that another thread releases."""
    result = run_script(
        f"""
        import copy, faulthandler, io, pickle, threading
        import torch
        import openreg_runtime
        faulthandler.dump_traceback_later(40, exit=True)
        x = torch.ones(100, device="openreg")
        storage = torch.ones(100, device="openreg").untyped_storage()
        host = torch.ones(100).untyped_storage()
        leaf = torch.ones(3, device="openreg", requires_grad=True)
        event = torch.openreg.Event()
        stream = openreg_runtime.Device(0).default_stream
        for statement in {WAITING_AT_FIRST + WAITING!r}:
            torch.openreg.synchronize()
            gate = threading.Event()

            def hold():
                while not gate.wait(0.001):
                    pass

            stream.launch(hold)
            threading.Timer(0.02, gate.set).start()
            exec(statement)
            assert gate.is_set() or statement in {WAITING_AT_FIRST!r}, statement
            gate.set()
        torch.openreg.synchronize()
        print("done")
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"


EIGHT = """
import torch
from concurrent.futures import ThreadPoolExecutor
from torch import nn

def place(index):
    return DEVICE

class Pipeline(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(48, 48).to(place(i)) for i in range(8))

    def forward(self, x):
        skipped = x
        for i, layer in enumerate(self.layers):
            x = layer(x.to(place(i))).tanh()
        return x + skipped.to(place(7))

torch.set_num_threads(1)

def train(model, x, y):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]

torch.manual_seed(1)
x, y = torch.randn(64, 48), torch.randn(64, 48)
print(train(Pipeline(), x.to(place(0)), y.to(place(7))))

def alone(index):
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(index)
    model = nn.Linear(48, 48)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 7)
    return train(model.to(place(index)), x.to(place(index)), y.to(place(index)))

with ThreadPoolExecutor(8) as pool:
    print(list(pool.map(alone, range(8))))
"""


@both_ways
def test_eight_devices_train_in_one_process(
    run_script: Program, inline_bytes: str
) -> None:
    result = run_script(
        EIGHT.replace("DEVICE", 'f"openreg:{index}"'),
        OPENREG_DEVICE_COUNT="8",
        OPENREG_INLINE_BYTES=inline_bytes,
    )
    assert result.returncode == 0, result.stderr
    expected = run_script(EIGHT.replace("DEVICE", '"cpu"'))
    assert expected.returncode == 0, expected.stderr
    assert result.stdout == expected.stdout
    assert result.stderr == ""


def test_backward_pass_over_two_devices_does_not_wait(
    device: str, latch: Latches
) -> None:
    def build(first: str, second: str) -> Callable[[], tuple[Tensor, Tensor]]:
        torch.manual_seed(0)
        weights = [
            torch.randn(30, 30).to(where).requires_grad_() for where in (first, second)
        ]
        x = torch.randn(20, 30).to(first)

        def step() -> tuple[Tensor, Tensor]:
            hidden = (x @ weights[0]).tanh().to(second)
            loss = (hidden @ weights[1]).square().sum()
            gradients = torch.autograd.grad(loss, weights)
            return gradients[0], gradients[1]

        return step

    step = build(f"{device}:0", f"{device}:1")
    step()
    for index in range(2):
        torch.accelerator.synchronize(index)
    held = [latch(0), latch(1)]
    gradients = step()
    assert held[0].holds
    assert held[1].holds
    for each in held:
        each.release()
    for ours, theirs in zip(gradients, build("cpu", "cpu")(), strict=True):
        assert torch.equal(ours.cpu(), theirs)


def test_copy_between_devices_comes_after_the_work_of_both(
    device: str, latch: Latches
) -> None:
    source = torch.zeros(50, device=f"{device}:0")
    target = torch.zeros(50, device=f"{device}:1")

    def work() -> Tensor:
        source.add_(4)
        target.sub_(3)
        target.copy_(source)
        source.add_(100)  # which the copy does not see
        return target * 10

    work()
    for index in range(2):
        torch.accelerator.synchronize(index)
    held = [latch(0), latch(1)]
    read = work()
    assert all(each.holds for each in held)
    held[1].release()
    assert not torch.accelerator.current_stream(1).query()
    held[0].release()
    assert read.eq(1080).all()
    assert target.eq(108).all()
    assert source.eq(208).all()


def test_backward_pass_runs_on_the_stream_of_the_forward_pass(
    device: str, latch: Latches
) -> None:
    x = torch.arange(12.0, device=device).view(3, 4).requires_grad_()

    def forward() -> Tensor:
        return (x * x).sin().sum()

    forward().backward()
    x.grad = None
    side = torch.Stream(device)
    torch.accelerator.synchronize()
    with side:
        loss = forward()
    held = latch()  # the default stream, which has nothing to do with it
    with side:
        (gradient,) = torch.autograd.grad(loss, x)
    side.synchronize()
    assert held.holds
    held.release()
    cpu = torch.arange(12.0).view(3, 4).requires_grad_()
    (expected,) = torch.autograd.grad((cpu * cpu).sin().sum(), cpu)
    assert torch.equal(gradient.cpu(), expected)


def test_default_stream_may_use_gradients_of_a_side_stream(device: str) -> None:
    torch.manual_seed(0)
    weight, x = torch.randn(60, 60), torch.randn(300, 60)
    ours = weight.to(device).requires_grad_()
    theirs = weight.clone().requires_grad_()
    there = x.to(device)
    side = torch.Stream(device)
    for _ in range(20):
        side.wait_stream(torch.accelerator.current_stream())
        with side:
            loss = (there @ ours).tanh().sum()
        ours.grad = None
        loss.backward()  # which makes this stream wait for the other
        with torch.no_grad():
            ours -= 0.01 * ours.grad
    for _ in range(20):
        theirs.grad = None
        (x @ theirs).tanh().sum().backward()
        with torch.no_grad():
            theirs -= 0.01 * theirs.grad
    assert torch.equal(ours.detach().cpu(), theirs.detach())


def test_threads_enqueue_on_one_held_stream_each_in_its_order(
    device: str, latch: Latches
) -> None:
    start = torch.zeros(8, device=device)
    (start + 1).mul_(0.5)
    torch.accelerator.synchronize()
    held = latch()

    def chain(seed: int) -> Tensor:
        x = start
        for i in range(50):
            x = (x + i * seed).mul_(0.5)
        return x

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(chain, range(8)))
    assert held.holds
    held.release()
    start = start.cpu()
    for seed, result in enumerate(results):
        assert torch.equal(result.cpu(), chain(seed))


def test_layers_of_streams_in_threads_train_as_on_the_cpu(device: str) -> None:
    """Each thread has a stream of its own on one device, and all are busy at once."""

    def train(where: str, seed: int) -> list[Tensor]:
        torch.set_num_threads(1)
        generator = torch.Generator().manual_seed(seed)
        model = nn.Sequential(nn.Linear(100, 200), nn.ReLU(), nn.Linear(200, 10))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 9)
        model.to(where)
        x = torch.randn(200, 100, generator=generator).to(where)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for _ in range(5):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    def on_a_stream(seed: int) -> list[Tensor]:
        with torch.Stream(device):
            return train(device, seed)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(on_a_stream, range(4)))
    for seed, result in enumerate(results):
        for ours, theirs in zip(result, train("cpu", seed), strict=True):
            assert torch.equal(ours, theirs)
