# SPDX-License-Identifier: BSD-3-Clause
"""Processes: the device in processes that are spawned and forked, and queues."""

import os
import subprocess
import sys

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

# A separate program, with the modules of --import. Spawned children run it, too.
LOAD = """\
import os, sys, torch
import torch.multiprocessing as mp
for name in os.environ.get('CONFORMANCE_IMPORTS', '').split():
    __import__(name)
device = sys.argv[1]
"""


def run(program, device, tmp="case.py"):
    """Runs a program from a file, as children that are spawned need it."""
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / tmp
        path.write_text(LOAD + program)
        done = subprocess.run(
            [sys.executable, str(path), device],
            capture_output=True,
            text=True,
            env=dict(os.environ),
        )
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-800:]}"
    return done.stdout


@case("multiprocessing", users=0.3)
def spawned_process_uses_the_device(device):
    """A spawned process computes on the device."""
    program = """
def child(queue):
    queue.put((torch.ones(3, device=device) * 2).tolist())

if __name__ == "__main__":
    torch.ones(1, device=device).item()
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    assert process.exitcode == 0, process.exitcode
"""
    assert run(program, device).strip() == "[2.0, 2.0, 2.0]"


@case("multiprocessing", "accelerator", subject="forks", users=0.3)
def forked_process_is_told(device):
    """After fork, a child that uses the device works or gets an exception."""
    program = """
import signal

torch.ones(1, device=device).item()
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        value = torch.ones(2, device=device).sum().item()
    except RuntimeError:
        os._exit(0)
    os._exit(0 if value == 2 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, f"the child ended with {status}: it crashed or hung"
assert torch.ones(1, device=device).item() == 1
"""
    run(program, device)


@case("multiprocessing", subject="tensors in queues", level="sample", users=0.1)
def tensors_go_through_queues(device):
    """A tensor sent through a queue shares its memory with the sender."""
    program = """
def child(queue, done):
    x = queue.get()
    x.fill_(7)
    if device != "cpu":
        torch.accelerator.synchronize()
    del x
    done.put(True)

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.SimpleQueue(), context.SimpleQueue()
    x = torch.zeros(4, device=device)
    process = context.Process(target=child, args=(queue, done))
    process.start()
    queue.put(x)
    done.get()
    process.join()
    print(x.tolist())
"""
    assert run(program, device).strip() == "[7.0, 7.0, 7.0, 7.0]"
