# SPDX-License-Identifier: BSD-3-Clause
"""Tools of PyTorch and of torch-openreg find errors under the name cuda."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from support.programs import ROOT, Program, run, variables

RACE = """
a = torch.rand(10000, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    torch.mul(a, 5, out=a)
"""


def test_the_sanitizer_of_pytorch_finds_a_race(interpreter: Program) -> None:
    source = (
        "import torch, torch.cuda._sanitizer\n"
        "torch.cuda._sanitizer.enable_cuda_sanitizer()\n" + RACE
    )
    ended = interpreter(source)
    assert "CUDASanitizerErrors: detected 1 errors" in ended.stderr
    assert "possible data race" in ended.stderr


def test_the_sanitizer_of_openreg_finds_a_race(interpreter: Program) -> None:
    ended = interpreter("import torch\n" + RACE, OPENREG_SANITIZER="1")
    assert ended.returncode != 0
    assert "Make one stream wait for the other" in ended.stderr


def test_a_program_with_tensors_in_queues(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import torch
import torch.multiprocessing as mp

def child(queue, back):
    x = queue.get()
    x.add_(5)
    back.put(x.tolist())

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, back))
    process.start()
    x = torch.arange(3.0, device="cuda")
    queue.put(x)
    print(back.get(timeout=40), x.tolist())
    process.join()
"""
    )
    environment = variables(OPENREG_DEVICE="cuda")
    ended = run(sys.executable, "-W", "ignore", script, environment=environment)
    assert ended.stdout == "[5.0, 6.0, 7.0] [5.0, 6.0, 7.0]\n", ended.stderr


def test_compiled_without_inductor() -> None:
    model = nn.Linear(4, 4)
    x = torch.arange(8.0).view(2, 4)
    expected = model(x)
    compiled = torch.compile(model.cuda(), backend="aot_eager")
    assert torch.equal(compiled(x.cuda()).cpu(), expected)


def test_benchmark_of_the_names_prints_a_ratio_for_each_row() -> None:
    program = ROOT / "benchmarks" / "names.py"
    cases = ["add 8", "item"]
    options = ("--quick", "--case", *cases)
    done = run(sys.executable, program, *options, environment=variables())
    assert done.returncode == 0, done.stderr
    heads, *rows = done.stdout.splitlines()
    assert "cuda/openreg" in heads
    for case, row in zip(cases, rows, strict=True):
        on_cpu, on_openreg, on_cuda, to_openreg, *_ = row.removeprefix(case).split()
        assert min(float(each) for each in (on_cpu, on_openreg, on_cuda)) > 0
        assert float(to_openreg) > 0


def test_callbacks_of_the_trace_get_the_handles_of_cuda(interpreter: Program) -> None:
    source = """
        import torch
        from torch.cuda import _gpu_trace

        seen = []
        for event in ("event_record", "event_wait", "stream_synchronization"):
            register = getattr(_gpu_trace, f"register_callback_for_{event}")
            register(lambda *each, event=event: seen.append((event, each[-1])))
        torch._C._activate_gpu_trace()
        default, other = torch.cuda.current_stream(), torch.cuda.Stream()
        event = default.record_event()
        other.wait_event(event)
        other.synchronize()
        default.synchronize()
        assert event.query()
        for event, stream in seen:
            print(event, {0: "default", other.cuda_stream: "other"}[stream])
    """
    ended = interpreter(source)
    assert ended.stdout.splitlines() == [
        "event_record default",
        "event_wait other",
        "stream_synchronization other",
        "stream_synchronization default",
    ], ended.stderr


@pytest.mark.parametrize("first", ["torch", "triton.backends.nvidia.driver"])
def test_triton_kernels_are_refused(tmp_path: Path, first: str) -> None:
    # The module and class of Triton that search for the driver of a GPU.
    folder = tmp_path / "triton" / "backends" / "nvidia"
    folder.mkdir(parents=True)
    (folder / "driver.py").write_text(
        "class CudaDriver:\n"
        "    def __init__(self):\n"
        "        raise AssertionError('libcuda.so cannot found!')\n"
    )
    source = f"""
import {first}
import torch
from triton.backends.nvidia.driver import CudaDriver
CudaDriver()
"""
    environment = variables(OPENREG_DEVICE="cuda", PYTHONPATH=str(tmp_path))
    ended = run(sys.executable, "-c", source, environment=environment)
    assert ended.stderr.splitlines()[-1] == (
        "NotImplementedError: Triton kernels: not available on a simulated CUDA "
        "device: they need a GPU. torch.compile generates C++ kernels for PyTorch's "
        "operators"
    )


def test_the_waits_of_operators_are_traced(interpreter: Program) -> None:
    source = """
        import torch
        from torch.cuda import _gpu_trace

        seen = []
        _gpu_trace.register_callback_for_stream_synchronization(seen.append)
        torch._C._activate_gpu_trace()
        x = torch.ones(3, device="cuda")
        y = x * 2 + x[[0, 2, 1]]
        print(seen)
        for call in (x.sum().item, y.cpu, y.nonzero, lambda: y[y > 0]):
            seen.clear()
            call()
            print(seen)
    """
    ended = interpreter(source)
    assert ended.stdout.splitlines() == ["[]", *4 * ["[0]"]], ended.stderr
