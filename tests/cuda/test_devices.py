# SPDX-License-Identifier: BSD-3-Clause
"""Devices, their properties, flags and what would leave the simulation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from support.programs import Program


def test_devices() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.ones(1, device="cuda:1")):
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device(1)
    assert torch.ones(1, device="cuda").device.index == 1
    torch.cuda.set_device("cuda:0")
    torch.cuda.synchronize(1)
    assert torch.cuda.can_device_access_peer(0, 1)
    assert not torch.cuda.can_device_access_peer(0, 0)


def test_a_device_that_does_not_exist_is_refused() -> None:
    calls: list[Callable[[], object]] = [
        lambda: torch.cuda.set_device(7),
        lambda: torch.ones(1, device="cuda:7"),
        lambda: torch.ones(1).to("cuda:7"),
        lambda: torch.cuda.synchronize(7),
    ]
    for call in calls:
        with pytest.raises(torch.AcceleratorError, match=r"^CUDA error: invalid dev"):
            call()
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(7)


def test_properties() -> None:
    properties = torch.cuda.get_device_properties(1)
    assert properties.name == "OpenReg simulated device (cuda)"
    assert (properties.major, properties.minor) == (8, 0)
    assert properties.total_memory == torch.cuda.mem_get_info()[1]
    assert torch.cuda.get_device_name() == properties.name
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.get_arch_list() == ["sm_80"]
    assert torch.cuda.is_bf16_supported()
    assert torch.device("cuda") == torch.accelerator.current_accelerator()
    megabytes = properties.total_memory >> 20
    assert repr(properties) == (
        "_CudaDeviceProperties(name='OpenReg simulated device (cuda)', major=8, "
        f"minor=0, total_memory={megabytes}MB, "
        f"multi_processor_count={properties.multi_processor_count}, "
        "uuid=00000000-0000-0000-0000-000000000001, pci_bus_id=1, pci_device_id=0, "
        "pci_domain_id=0, L2_cache_size=40MB)"
    )


def test_flags_can_be_set() -> None:
    for flags, name in (
        (torch.backends.cuda.matmul, "allow_tf32"),
        (torch.backends.cudnn, "benchmark"),
        (torch.backends.cudnn, "deterministic"),
    ):
        before = getattr(flags, name)
        setattr(flags, name, not before)
        assert getattr(flags, name) is not before
        setattr(flags, name, before)
    assert not torch.backends.cudnn.is_available()
    with torch.backends.cudnn.flags(enabled=False):
        assert not torch.backends.cudnn.enabled


def test_products_have_full_precision_whatever_the_flags() -> None:
    x, y = torch.rand(64, 64), torch.rand(64, 64)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        product = x.cuda() @ y.cuda()
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.equal(product.cpu(), x @ y)


def test_no_address_is_handed_out() -> None:
    x = torch.ones(2, device="cuda")
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="the host cannot address its memory"):
        _ = x.__cuda_array_interface__
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")


def test_a_tensor_is_no_array() -> None:
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor"):
        torch.ones(2, device="cuda").numpy()


def test_devices_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        torch.ones(2, device="cuda") + torch.ones(2)


def test_ranges_are_ranges_of_the_profiler() -> None:
    with (
        torch.profiler.profile() as profile,
        torch.cuda.nvtx.range("outer"),
    ):
        assert torch.cuda.nvtx.range_push("inner") == 1
        assert torch.cuda.nvtx.range_pop() == 1
        torch.cuda.nvtx.mark("point")
    names = {event.key for event in profile.key_averages()}
    assert {"outer", "inner", "point"} <= names


def test_ranges_of_other_threads() -> None:
    handle = torch.cuda.nvtx.range_start("loading")
    torch.cuda.nvtx.range_end(handle)
    assert torch.cuda.nvtx.range_pop() == -2


def test_the_runtime_module() -> None:
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(runtime.cudaProfilerStart())
    torch.cuda.check_error(runtime.cudaProfilerStop())
    with pytest.raises(torch.cuda.CudaError, match="not supported"):
        torch.cuda.check_error(801)
    with torch.cuda.profiler.profile():
        pass


def test_the_default_device() -> None:
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).is_cuda
    finally:
        torch.set_default_device(None)


def test_libraries_can_be_preferred() -> None:
    before = torch.backends.cuda.preferred_linalg_library()
    torch.backends.cuda.preferred_linalg_library("magma")
    assert "Magma" in str(torch.backends.cuda.preferred_linalg_library())
    torch.backends.cuda.preferred_linalg_library(before)
    plans = torch.backends.cuda.cufft_plan_cache
    assert plans.size == 0
    plans.max_size = 3
    assert plans.max_size == 3
    plans.clear()


def test_cuda_source_code_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="CUDA source code needs a GPU"):
        torch.cuda._compile_kernel("__global__ void f() {}", "f")


def test_a_forked_process_gets_the_error_of_cuda(interpreter: Program) -> None:
    source = """
        import os
        import torch
        torch.ones(1, device="cuda")
        if os.fork() == 0:
            try:
                torch.ones(1, device="cuda")
            except RuntimeError as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
    """
    ended = interpreter(source)
    assert ended.stdout.startswith("Cannot re-initialize CUDA in forked subprocess")


def test_profile_describes_the_cuda_devices(interpreter: Program) -> None:
    source = """
import torch
device = torch.cuda.get_device_properties(0)
print(device.name, device.L2_cache_size, torch.cuda.get_device_capability())
print(torch.cuda.is_bf16_supported(), torch.cuda.is_bf16_supported(False))
x = torch.ones(2, 2, dtype=torch.bfloat16, device="cuda")
try:
    x @ x
except RuntimeError as error:
    print(str(error).partition("(")[0])
"""
    assert interpreter(source, OPENREG_PROFILE="p100").stdout.splitlines() == [
        "Tesla P100-PCIE-16GB 4194304 (6, 0)",
        "True False",
        "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx",
    ]
