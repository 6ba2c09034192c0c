# SPDX-License-Identifier: BSD-3-Clause
"""torch.openreg's devices: counting, choosing, describing, and errors."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import openreg_runtime
from support.programs import Program

Output = Callable[..., str]


def test_device_count_is_two_by_default() -> None:
    assert torch.openreg.is_available()
    assert torch.openreg.device_count() == torch.accelerator.device_count() == 2


def test_device_count_follows_the_environment(output: Output) -> None:
    source = """
    import torch
    print(torch.openreg.device_count(), torch.ones(1, device="openreg:4").device)
    """
    assert output(source, OPENREG_DEVICE_COUNT="5") == "5 openreg:4"


@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg", 1)])
def test_set_device_makes_it_current(device: int | str | torch.device) -> None:
    torch.openreg.set_device(device)
    assert torch.openreg.current_device() == 1
    assert torch.accelerator.current_device_index() == 1
    assert torch.ones(1, device="openreg").get_device() == 1
    torch.openreg.set_device(0)
    assert torch.ones(1, device="openreg").get_device() == 0


def test_set_device_ignores_a_negative_index() -> None:
    torch.openreg.set_device(-1)
    assert torch.openreg.current_device() == 0


def test_device_context_restores_the_former_device() -> None:
    with torch.openreg.device("openreg:1"):
        assert torch.openreg.current_device() == 1
        with torch.openreg.device(torch.device("openreg", 0)):
            assert torch.openreg.current_device() == 0
        assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


def test_device_context_restores_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), torch.openreg.device(1):
        raise ZeroDivisionError
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("device", [None, -1, "openreg"])
def test_device_context_without_an_index_changes_nothing(
    device: int | str | None,
) -> None:
    with torch.openreg.device(1):
        with torch.openreg.device(device):
            assert torch.openreg.current_device() == 1
        assert torch.openreg.current_device() == 1


def test_device_of_selects_the_device_of_tensor_and_storage() -> None:
    x = torch.ones(2, device="openreg:1")
    for holder in (x, x.untyped_storage()):
        with torch.openreg.device_of(holder):
            assert torch.openreg.current_device() == 1
    with torch.openreg.device_of(torch.ones(2)):
        assert torch.openreg.current_device() == 0


def test_current_device_belongs_to_the_thread() -> None:
    seen: list[int] = []
    with torch.openreg.device(1):
        thread = threading.Thread(
            target=lambda: seen.append(torch.openreg.current_device())
        )
        thread.start()
        thread.join()
    assert seen == [0]


def test_properties_describe_the_device() -> None:
    properties = torch.openreg.get_device_properties("openreg:1")
    assert properties.name == torch.openreg.get_device_name(1)
    assert "OpenReg" in properties.name
    assert properties.total_memory == torch.openreg.mem_get_info(1)[1]
    assert 1 <= properties.multi_processor_count <= (os.cpu_count() or 1)


def test_capability_is_that_of_the_properties() -> None:
    properties = torch.openreg.get_device_properties(1)
    capability = torch.openreg.get_device_capability("openreg:1")
    assert capability == (properties.major, properties.minor)
    assert capability == openreg_runtime.version()[:2]


def test_architecture_is_that_of_the_kernels() -> None:
    assert torch.openreg.get_arch_list() == [torch.backends.cpu.get_cpu_capability()]


def test_products_of_float32_are_the_full_ones() -> None:
    assert torch.openreg.is_tf32_supported() is False
    x = torch.rand(64, 64)
    assert torch.equal((x.openreg() @ x.openreg()).cpu(), x @ x)


@pytest.mark.parametrize("peer", [1, "openreg:1", torch.device("openreg", 1)])
@pytest.mark.parametrize("device", [None, 0, "openreg", torch.device("openreg", 0)])
def test_devices_can_access_their_peers(device: Any, peer: Any) -> None:
    assert torch.openreg.can_device_access_peer(device, peer)


def test_device_cannot_be_its_own_peer() -> None:
    assert not torch.openreg.can_device_access_peer(1, 1)


def test_peer_access_follows_the_environment(output: Output) -> None:
    source = "import torch; print(torch.openreg.can_device_access_peer(0, 1))"
    assert output(source) == "True"
    assert output(source, OPENREG_PEER_ACCESS="0") == "False"


def test_peer_needs_an_index() -> None:
    with pytest.raises(ValueError, match="with a specified index"):
        torch.openreg.can_device_access_peer(0, "openreg")


def test_memory_in_use_is_the_memory_that_is_not_free() -> None:
    x = torch.ones(2**20, device="openreg:1")
    free, total = torch.openreg.mem_get_info(1)
    used = torch.openreg.device_memory_used(1)
    assert used == total - free
    assert used >= x.untyped_storage().nbytes()


def test_no_stream_is_capturing_and_asking_starts_no_device(output: Output) -> None:
    source = """
    import torch
    print(torch.openreg.is_current_stream_capturing(), torch.openreg.is_initialized())
    """
    assert output(source) == "False False"


@pytest.mark.parametrize("device", [None, 1, "openreg:1", torch.device("openreg")])
def test_synchronize_finishes_the_work(device: int | str | torch.device | None) -> None:
    x = torch.ones(256, 256, device="openreg" if device is None else device)
    for _ in range(3):
        x = x @ x / 256
    torch.openreg.synchronize(device)
    assert torch.accelerator.current_stream(x.device).query()
    assert torch.openreg.current_device() == 0


def equal(left: Any, right: Any) -> bool:
    """Compares results, which may be tensors."""
    return torch.equal(left, right) if isinstance(left, Tensor) else left == right


FUNCTIONS_OF_A_DEVICE: dict[str, Callable[[Any], object]] = {
    "set_device": torch.openreg.set_device,
    "device": lambda device: torch.openreg.device(device).__enter__(),
    "can_device_access_peer": lambda device: torch.openreg.can_device_access_peer(
        device, 1
    ),
    "can_device_access_peer, as peer": lambda device: (
        torch.openreg.can_device_access_peer(0, device)
    ),
    "reset_device": torch.openreg.reset_device,
    "device_memory_used": torch.openreg.device_memory_used,
    "get_device_capability": torch.openreg.get_device_capability,
    "get_device_name": torch.openreg.get_device_name,
    "get_device_properties": torch.openreg.get_device_properties,
    "synchronize": torch.openreg.synchronize,
    "current_stream": torch.openreg.current_stream,
    "default_stream": torch.openreg.default_stream,
    "Stream": torch.openreg.Stream,
    "ExternalStream": lambda device: torch.openreg.ExternalStream(0, device),
    "get_stream_from_external": lambda device: torch.openreg.get_stream_from_external(
        0, device
    ),
    "get_rng_state": torch.openreg.get_rng_state,
    "set_rng_state": lambda device: torch.openreg.set_rng_state(
        torch.get_rng_state(), device
    ),
    "get_per_process_memory_fraction": torch.openreg.get_per_process_memory_fraction,
    "set_per_process_memory_fraction": lambda device: (
        torch.openreg.set_per_process_memory_fraction(1.0, device)
    ),
    "max_memory_allocated": torch.openreg.max_memory_allocated,
    "max_memory_reserved": torch.openreg.max_memory_reserved,
    "memory_allocated": torch.openreg.memory_allocated,
    "memory_reserved": torch.openreg.memory_reserved,
    "memory_stats": torch.openreg.memory_stats,
    "memory_stats_as_nested_dict": torch.openreg.memory_stats_as_nested_dict,
    "memory_summary": torch.openreg.memory_summary,
    "mem_get_info": torch.openreg.mem_get_info,
    "reset_peak_memory_stats": torch.openreg.reset_peak_memory_stats,
    "reset_accumulated_memory_stats": torch.openreg.reset_accumulated_memory_stats,
}


def test_functions_of_a_device_are_all_called_here() -> None:
    found = {
        name
        for name in torch.openreg.__all__
        if callable(value := getattr(torch.openreg, name))
        and value is not torch.openreg.OutOfMemoryError  # has no signature
        and "device" in inspect.signature(value).parameters
    }
    assert len(found) > 20
    assert found <= {name.partition(",")[0] for name in FUNCTIONS_OF_A_DEVICE}


@pytest.mark.parametrize("name", FUNCTIONS_OF_A_DEVICE)
def test_device_may_be_a_number_a_name_or_a_device(name: str) -> None:
    call = FUNCTIONS_OF_A_DEVICE[name]
    with torch.openreg.device(0):
        results = [call(form) for form in (1, "openreg:1", torch.device("openreg", 1))]
        if name != "Stream":  # a new one each time
            assert all(map(equal, results, results[:1] * 3))
        if name not in ("set_device", "device"):
            assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("index", [2, 7, 300, "openreg:2"])
@pytest.mark.parametrize("name", FUNCTIONS_OF_A_DEVICE)
def test_index_past_the_count_is_refused_with_the_valid_range(
    name: str, index: int | str
) -> None:
    number = str(index).removeprefix("openreg:")
    message = rf"Invalid device id {number}: .* expected 0 to 1 \(2 openreg devices\)"
    with pytest.raises(RuntimeError, match=message):
        FUNCTIONS_OF_A_DEVICE[name](index)


@pytest.mark.parametrize("name", FUNCTIONS_OF_A_DEVICE)
def test_other_device_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Expected an openreg device, but got: cpu"):
        FUNCTIONS_OF_A_DEVICE[name]("cpu")


@pytest.mark.parametrize("name", FUNCTIONS_OF_A_DEVICE)
def test_other_type_of_argument_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"device must be an int.* but got 1\.5"):
        FUNCTIONS_OF_A_DEVICE[name](1.5)


def test_set_device_asks_for_an_index() -> None:
    with pytest.raises(ValueError, match="with a specified index"):
        torch.openreg.set_device("openreg")


def test_get_device_index_serves_the_callers_in_torch() -> None:
    get = torch.openreg._utils._get_device_index
    assert get("openreg:1") == get(1) == get(torch.device("openreg", 1)) == 1
    assert get(None, optional=True) == get("openreg", True) == 0
    assert get("cpu", allow_cpu=True) == -1


def test_devices_start_at_first_use(output: Output) -> None:
    source = """
    import torch
    torch.manual_seed(0)
    torch.openreg.is_available()
    print(torch.openreg.is_initialized(), torch.openreg._initialized)
    torch.ones(1, device="openreg")
    print(torch.openreg.is_initialized(), torch.openreg._initialized)
    """
    assert output(source).split() == ["False", "False", "True", "True"]


def test_calls_that_wait_run_in_order_when_the_devices_start(output: Output) -> None:
    source = """
    import torch
    order = []
    for number in range(3):
        torch.openreg._lazy_call(lambda number=number: order.append(number))
    torch.manual_seed(1)  # replaces only waiting seeds
    print(order)
    torch.openreg.init()
    print(order, torch.openreg.initial_seed())
    torch.openreg._lazy_call(lambda: order.append(3))
    print(order)
    """
    assert output(source).splitlines() == ["[]", "[0, 1, 2] 1", "[0, 1, 2, 3]"]


def test_failed_delayed_call_names_its_line(
    interpreter: Program,
) -> None:
    source = """
    import torch
    def restore():
        torch.openreg.set_rng_state(torch.get_rng_state(), 7)
    restore()
    print("kept")
    torch.openreg.init()
    """
    result = interpreter(source)
    assert result.stdout == "kept\n"
    assert "Invalid device id 7" in result.stderr
    assert "waited for the devices to start. Made at:" in result.stderr
    assert "in restore" in result.stderr.partition("Made at:")[2]


def test_init_starts_the_devices_and_may_be_repeated(output: Output) -> None:
    source = """
    import torch
    torch.openreg.init()
    torch.openreg.init()
    print(torch.openreg.is_initialized())
    """
    assert output(source) == "True"


def test_default_device_and_device_context_apply_to_factories() -> None:
    torch.set_default_device("openreg:1")
    try:
        assert torch.ones(2).device == torch.device("openreg", 1)
    finally:
        torch.set_default_device(None)
    with torch.device("openreg"):
        assert torch.nn.Linear(2, 2).weight.is_openreg
    assert torch.ones(2).device.type == "cpu"
