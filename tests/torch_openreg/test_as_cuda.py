# SPDX-License-Identifier: BSD-3-Clause
"""With ``OPENREG_DEVICE=cuda``, torch-openreg leaves the names of CUDA to PyTorch."""

from __future__ import annotations

from support.programs import Program
from support.versions import needs_a_cpu_build

pytestmark = needs_a_cpu_build

# In the program, so that openreg-cuda, which may be installed, does not see it.
AS_CUDA = "import os; os.environ['OPENREG_DEVICE'] = 'cuda'"


def test_registers_neither_a_name_nor_methods(run_python: Program) -> None:
    ended = run_python(f"""
        {AS_CUDA}
        import openreg_aten, torch, torch_openreg
        from torch_openreg import openreg
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
        assert not hasattr(torch, "openreg")
        assert not hasattr(torch.Tensor, "openreg")
        off = {{each.name for each in openreg.mechanisms() if not each.enabled}}
        assert {{"rename", "device_module", "methods", "storage_impl"}} <= off, off
        assert not {{"guard", "hooks", "multiprocessing", "fake_tensor"}} & off, off
        openreg.init()
        x = torch.ones(2, device="cuda:1")
        assert openreg.device_count() == 2
        assert openreg.memory_allocated(1) > 0
        stream = openreg.Stream()
        assert stream.device == torch.device("cuda:0")
        with openreg.stream(stream):
            assert openreg.current_stream() == torch.accelerator.current_stream()
        print(openreg.current_stream(1).device)
    """)
    assert ended.stdout == "cuda:1\n", ended.stderr


def test_autocast_uses_the_lists_of_pytorch(run_python: Program) -> None:
    ended = run_python(f"""
        {AS_CUDA}
        import openreg_aten, torch, torch_openreg, openreg_amp
        assert openreg_amp.rules() == []
        x = torch.ones(2, 2, device="cuda")
        with torch.autocast("cuda"):
            print((x @ x).dtype, (x @ x).softmax(0).dtype)
    """)
    assert ended.stdout == "torch.float16 torch.float32\n", ended.stderr


def test_the_error_names_the_package_that_is_missing(run_python: Program) -> None:
    ended = run_python(f"""
        {AS_CUDA}
        import torch
        import torch_openreg
    """)
    assert ended.returncode == 1
    assert ended.stderr.count("Error: ") == 1
    assert "RuntimeError: OPENREG_DEVICE=cuda needs openreg-cuda" in ended.stderr


def test_tensors_reach_other_processes(run_script: Program) -> None:
    ended = run_script(
        f"""
        {AS_CUDA}
        import openreg_aten, torch, torch_openreg
        import torch.multiprocessing as mp

        def double(queue, results, received):
            results.put(queue.get() * 2)
            received.wait(60)  # the sender must live until then

        if __name__ == "__main__":
            context = mp.get_context("spawn")
            queue, results = context.Queue(), context.Queue()
            received = context.Event()
            process = context.Process(target=double, args=(queue, results, received))
            process.start()
            x = torch.arange(3.0, device="cuda")
            queue.put(x)
            print(results.get().tolist())
            received.set()
            process.join()
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert ended.stdout == "[0.0, 2.0, 4.0]\n", ended.stderr
