# SPDX-License-Identifier: BSD-3-Clause
"""Enqueued operators at exits, forks, spawned processes and waits.

Each program runs with all operators enqueued, and with small ones inline.
"""

from __future__ import annotations

import pytest

from support.programs import Program, both_ways

# A held stream, and a training step that is enqueued behind.
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
    fork_script: Program, ending: str, released: str, inline_bytes: str
) -> None:
    check_end(fork_script, ending, released, inline_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_new_interpreter_ends_with_operators_enqueued(
    run_script: Program, ending: str
) -> None:
    check_end(run_script, ending, released="", inline_bytes="0")


def check_end(start: Program, ending: str, released: str, inline_bytes: str) -> None:
    source, code = ENDINGS[ending]
    result = start(f"{HELD}{released}\n{source}", OPENREG_INLINE_BYTES=inline_bytes)
    assert result.returncode == code, result
    assert result.stdout == "pending\n"
    if ending == "exception":
        assert result.stderr.endswith("ValueError: half way\n")
        assert result.stderr.startswith("Traceback (most recent call last)")
    else:
        assert result.stderr == ""


@both_ways
def test_both_processes_work_after_a_fork_with_operators_enqueued(
    fork_script: Program, inline_bytes: str
) -> None:
    result = fork_script(
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


TRAIN = """
import torch
import torch.multiprocessing

def train(rank, losses, kind):
    device = "cpu" if kind == "cpu" else f"openreg:{rank % 2}"
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
    model(x).sum().backward()  # still running when the process ends

if __name__ == "__main__":
    losses = torch.zeros(3)
"""
SPAWNED = (
    TRAIN
    + """
    y = torch.ones(300, 300, device="openreg")
    z = y @ y
    losses.share_memory_()
    torch.multiprocessing.spawn(train, (losses, "openreg"), nprocs=3)
    assert torch.equal(z.cpu(), torch.full((300, 300), 300.0))
    print(losses.tolist())
"""
)
ON_THE_CPU = (
    TRAIN
    + """
    for rank in range(3):
        train(rank, losses, "cpu")
    print(losses.tolist())
"""
)


@pytest.mark.slow
@both_ways
def test_spawned_processes_train_and_end_with_operators_enqueued(
    fork_script: Program, inline_bytes: str
) -> None:
    result = fork_script(SPAWNED, OPENREG_INLINE_BYTES=inline_bytes)
    assert result.returncode == 0, result.stderr
    expected = fork_script(ON_THE_CPU)
    assert expected.returncode == 0, expected.stderr
    assert result.stdout == expected.stdout
    assert result.stderr == ""


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
    # PyTorch does these with the GIL held.
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


def test_host_waits_without_the_lock_of_the_interpreter(fork_script: Program) -> None:
    """Each statement follows a Python kernel that another thread releases."""
    result = fork_script(
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
