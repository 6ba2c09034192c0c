# SPDX-License-Identifier: BSD-3-Clause
"""The device: its name, its module, ``torch.accelerator``, and its tensors."""

import copy
import pickle
import subprocess
import sys

import torch

from openreg_conformance.case import Suite

_suite = Suite(__name__)
case, cases = _suite.case, _suite.cases

# The start of a separate program, with the modules of --import.
LOAD = (
    "import os, sys, torch\n"
    "for name in os.environ.get('CONFORMANCE_IMPORTS', '').split():\n"
    "    __import__(name)\n"
)


def module_of(device):
    return torch.get_device_module(device)


def refused(call, kind=Exception):
    try:
        result = call()
    except kind as error:
        return str(error)
    raise AssertionError(f"nothing was raised, the result is {result!r}")


@case("factory")
def tensor_can_be_made(device):
    """torch.empty creates a tensor on the device."""
    x = torch.empty(2, 3, device=device)
    assert x.device.type == device, f"the tensor is on {x.device}"
    assert x.shape == (2, 3) and x.stride() == (3, 1)


@case("copy")
def copy_to_the_device_and_back(device):
    """A copy to the device and back keeps all values."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.uint8):
        x = torch.arange(-5, 7).to(dtype).view(3, 4)
        y = x.to(device, copy=True)
        assert y.device.type == device, f"the copy is on {y.device}"
        assert y.cpu().equal(x), f"{y.cpu()}, expected {x}"


@case("copy", subject="copies with strides")
def copy_keeps_values_of_strided_tensors(device):
    """Copies of transposed, sliced and expanded tensors have the right values."""
    x = torch.arange(24.0).view(2, 3, 4)
    for view in (
        x.mT,
        x[:, ::2],
        x[..., 1:],
        x[0:1].expand(5, 3, 4),
        x.permute(2, 0, 1),
    ):
        assert view.to(device).cpu().equal(view)
        there = torch.empty(view.shape, device=device)
        there.copy_(view)
        assert there.cpu().equal(view)
        back = torch.empty_strided(view.shape, view.contiguous().stride())
        back.copy_(there)
        assert back.equal(view)
    y = x.to(device)
    assert y.mT.cpu().equal(x.mT)
    assert y[:, ::2].cpu().equal(x[:, ::2])
    y[:, 1].copy_(torch.full((2, 4), 9.0))
    x[:, 1] = 9
    assert y.cpu().equal(x), "a copy into a slice"


@case("copy", subject="copies that convert")
def copy_converts_dtypes(device):
    """copy_ converts dtypes as on the CPU, in both directions."""
    x = torch.tensor([-1.5, 0.0, 2.5, 300.0])
    for dtype in (
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int32,
        torch.bool,
    ):
        there = torch.empty(4, dtype=dtype, device=device)
        there.copy_(x)
        assert there.cpu().equal(x.to(dtype)), f"to {dtype}"
        back = torch.empty(4)
        back.copy_(there)
        assert back.equal(x.to(dtype).float()), f"from {dtype}"


@case("copy", subject="copies on the device")
def copy_on_the_device_is_independent(device):
    """clone() creates a tensor that does not share memory with the original."""
    x = torch.zeros(4, device=device)
    y = x.clone()
    z = x.to(device)
    assert z is x, "to() of the same device must not copy"
    x.fill_(1)
    assert y.cpu().tolist() == [0] * 4, "the clone has changed with the tensor"
    assert x.cpu().tolist() == [1] * 4


@case("copy", subject="copies from the host")
def copy_to_the_device_is_independent(device):
    """A tensor does not change with the host tensor that it was copied from."""
    host = torch.zeros(1000)
    x = host.to(device, copy=True)
    host.fill_(7)
    assert x.cpu().sum().item() == 0, "the device's tensor has the host's memory"
    back = x.to("cpu", copy=True)
    x.fill_(3)
    assert back.sum().item() == 0, "the host's tensor has the device's memory"


@case("copy", subject="numbers and empty tensors")
def items_and_empty_tensors(device):
    """item(), tolist() and copies of empty tensors work."""
    for number in (2.5, 7, -(2**40), True, 1 + 2j):
        found = torch.tensor(number, device=device).item()
        assert type(found) is type(number) and found == number, f"{number}: {found}"
    assert torch.tensor([1, 2], device=device).tolist() == [1, 2]
    assert bool(torch.tensor(True, device=device))
    assert torch.tensor([1 + 2j], device=device).tolist() == [1 + 2j]
    empty = torch.empty(0, 3, device=device)
    assert empty.cpu().shape == (0, 3) and empty.tolist() == []


@case("factory", subject="factory functions")
def factory_functions(device):
    """Factory functions give the same values and dtypes as on the CPU."""
    calls = (
        lambda d: torch.zeros(2, 2, device=d),
        lambda d: torch.ones(3, dtype=torch.int32, device=d),
        lambda d: torch.full((2,), 7, device=d),
        lambda d: torch.full((2,), 1.5, device=d),
        lambda d: torch.arange(5, device=d),
        lambda d: torch.arange(0.0, 1.0, 0.25, device=d),
        lambda d: torch.linspace(0, 1, 5, device=d),
        lambda d: torch.eye(3, device=d),
        lambda d: torch.tensor([[1, 2], [3, 4]], device=d),
        lambda d: torch.zeros(2, device=d).new_full((2, 2), 3),
        lambda d: torch.ones_like(torch.zeros(2, 3, device=d)),
        lambda d: torch.tril(torch.ones(3, 3, device=d)),
    )
    for i, call in enumerate(calls):
        mine, expected = call(device), call("cpu")
        assert mine.dtype == expected.dtype, f"{i}: {mine.dtype}"
        assert mine.device.type == device, f"{i}: {mine.device}"
        torch.testing.assert_close(mine.cpu(), expected)


@case("factory", subject="empty_strided")
def empty_strided_has_the_strides(device):
    """empty_strided uses the given strides."""
    x = torch.empty_strided((2, 3), (1, 2), device=device)
    assert x.stride() == (1, 2)
    y = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last, device=device)
    assert y.stride() == (60, 1, 15, 3)
    assert torch.empty_like(y).stride() == y.stride()


@case("name", users=0.3)
def device_has_a_number(device):
    """The device of a tensor has an index and is equal to its name."""
    x = torch.empty(1, device=device)
    if device != "cpu":
        assert x.device == torch.device(device, x.device.index or 0)
        assert x.device.index is not None, "the device of a tensor has no number"
        assert x.get_device() == x.device.index
    assert torch.empty(1, device=x.device).device == x.device


@case("name", users=0.3)
def tensors_are_printed(device):
    """repr() of a tensor contains its values and its device."""
    text = repr(torch.tensor([1.0, 2.0], device=device))
    assert text.startswith("tensor([1., 2.]"), text
    assert device == "cpu" or f"device='{device}:0'" in text, text


@case("device_module")
def module_exists(device):
    """torch.get_device_module finds the module of the device."""
    module = module_of(device)
    assert getattr(torch, device) is module


@case("device_module", subject="is_available, device_count, current_device")
def module_says_what_is_there(device):
    """The module's is_available, device_count and current_device work."""
    module = module_of(device)
    assert module.is_available() is True
    count = module.device_count()
    assert type(count) is int and count >= 1, f"device_count() is {count!r}"
    if device != "cpu":
        current = module.current_device()
        assert type(current) is int and 0 <= current < count


@case("device_module", "accelerator", subject="synchronize")
def module_synchronizes(device):
    """The module's synchronize() returns None, with and without a device."""
    module = module_of(device)
    x = torch.ones(8, device=device) + 1
    assert module.synchronize() is None
    assert module.synchronize(0) is None
    assert x.tolist() == [2] * 8


@case("device_module", "accelerator", subject="random numbers", users=0.5)
def module_seeds_and_keeps_states(device):
    """The module has manual_seed_all, get_rng_state and set_rng_state."""
    module = module_of(device)
    for name in ("manual_seed", "manual_seed_all", "get_rng_state", "set_rng_state"):
        assert callable(getattr(module, name, None)), f"torch.{device} has no {name}"


# Without it torch.manual_seed passes the device by, so it comes before generators.
@case("device_module", "accelerator", subject="_is_in_bad_fork")
def module_knows_bad_forks(device):
    """The module has _is_in_bad_fork, which torch.manual_seed and workers call."""
    assert module_of(device)._is_in_bad_fork() is False


@case("device_module", "two devices", subject="set_device")
def set_device_decides_where_tensors_go(device):
    """set_device and the context module.device select the device of new tensors."""
    module = module_of(device)
    before = module.current_device()
    try:
        module.set_device(1)
        assert module.current_device() == 1
        assert torch.empty(1, device=device).device.index == 1
    finally:
        module.set_device(before)
    with module.device(1):
        assert torch.empty(1, device=device).device.index == 1
    assert module.current_device() == before


@case("device_module", "accelerator", subject="numbers that are not there")
def number_of_no_device_is_refused(device):
    """An index without a device is refused and has no effect."""
    module = module_of(device)
    before = module.current_device()
    refused(lambda: torch.empty(1, device=f"{device}:{module.device_count()}"))
    refused(lambda: module.set_device(module.device_count()))
    assert module.current_device() == before
    assert torch.ones(1, device=device).item() == 1


@case("device_module", "accelerator", subject="properties", users=0.2)
def module_names_the_device(device):
    """get_device_name and get_device_properties work."""
    module = module_of(device)
    assert isinstance(module.get_device_name(0), str)
    properties = module.get_device_properties(0)
    assert properties.name and properties.total_memory > 0


@case("hooks", "accelerator")
def accelerator_is_the_device(device):
    """torch.accelerator finds the device."""
    assert torch.accelerator.is_available()
    found = torch.accelerator.current_accelerator()
    assert found is not None and found.type == device, f"it finds {found}"
    assert torch.accelerator.device_count() == module_of(device).device_count()


@case("guard", "accelerator", subject="synchronize")
def accelerator_synchronizes(device):
    """torch.accelerator.synchronize() returns None."""
    assert torch.accelerator.synchronize() is None
    assert torch.accelerator.synchronize(0) is None


@case("guard", "two devices", subject="the current device")
def accelerator_changes_the_device(device):
    """torch.accelerator's set_device_index and device_index change the device."""
    before = torch.accelerator.current_device_index()
    try:
        torch.accelerator.set_device_index(1)
        assert torch.accelerator.current_device_index() == 1
        assert torch.empty(1, device=device).device.index == 1
    finally:
        torch.accelerator.set_device_index(before)
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
    assert torch.accelerator.current_device_index() == before


@case("guard", "two devices", subject="operators on another device")
def operator_leaves_the_current_device(device):
    """An operator runs on its tensors' device and keeps the current device."""
    before = torch.accelerator.current_device_index()
    other = 1 - before
    x = torch.ones(4, device=f"{device}:{other}")
    y = (x + x) * 2
    assert y.device.index == other, f"the result is on {y.device}"
    assert y.tolist() == [4] * 4
    assert torch.accelerator.current_device_index() == before


@case("copy", "two devices", subject="copies between devices", users=0.5)
def copies_between_devices(device):
    """A copy to another device has the same values and separate memory."""
    x = torch.arange(12.0, device=f"{device}:0").view(3, 4)
    y = x.to(f"{device}:1")
    assert y.device.index == 1 and y.cpu().equal(torch.arange(12.0).view(3, 4))
    z = x.mT.to(f"{device}:1")
    assert z.cpu().equal(torch.arange(12.0).view(3, 4).mT)
    y.zero_()
    assert x.sum().item() == 66


@case("operators", "two devices", subject="tensors of two devices", users=0.4)
def tensors_of_two_devices_are_refused(device):
    """An operator on tensors of two devices raises RuntimeError."""
    x, y = torch.ones(2, device=f"{device}:0"), torch.ones(2, device=f"{device}:1")
    refused(lambda: (x + y).cpu(), RuntimeError)
    assert (x + 1).tolist() == [2, 2]


@case("operators", "accelerator", subject="host tensors", users=0.6)
def tensors_of_the_host_are_refused(device):
    """An operator on device and host tensors raises, except for host scalars."""
    x = torch.ones(2, 2, device=device)
    refused(lambda: (x + torch.ones(2, 2)).cpu(), RuntimeError)
    refused(lambda: (x @ torch.ones(2, 2)).cpu(), RuntimeError)
    assert (x + torch.tensor(2.0)).tolist() == [[3, 3], [3, 3]]


@case("methods", "accelerator")
def methods_of_the_device_exist(device):
    """Tensors and modules have methods of the device's name, and is_DEVICE."""
    x = torch.ones(2)
    there = getattr(x, device)()
    assert there.device.type == device
    assert getattr(there, f"is_{device}") is True
    assert getattr(x, f"is_{device}") is False
    linear = getattr(torch.nn.Linear(2, 2), device)()
    assert linear.weight.device.type == device


@case("name", users=0.5)
def default_device_is_used(device):
    """torch.device as a context and set_default_device apply to factory functions."""
    with torch.device(device):
        assert torch.zeros(1).device.type == device
        assert torch.nn.Linear(1, 1).weight.device.type == device
    assert torch.zeros(1).device.type == "cpu"
    try:
        torch.set_default_device(device)
        assert torch.zeros(1).device.type == device
    finally:
        torch.set_default_device(None)


@case("name", users=0.2)
def device_is_pickled(device):
    """A torch.device of the device can be pickled and copied."""
    it = torch.device(device, 0)
    assert pickle.loads(pickle.dumps(it)) == it
    assert copy.deepcopy(it) == it


@case("view", subject="views")
def views_share_memory(device):
    """Views have the right values, strides and offsets, and share memory."""
    x = torch.arange(24.0, device=device)
    base = torch.arange(24.0)
    ways = (
        lambda t: t.view(2, 3, 4),
        lambda t: t.view(4, 6).t(),
        lambda t: t[3:9:2],
        lambda t: t.view(2, 12).select(0, 1),
        lambda t: t.as_strided((3, 2), (2, 5), 1),
        lambda t: t.view(4, 6).diagonal(),
        lambda t: t.unfold(0, 4, 4),
        lambda t: t.view(2, 3, 4).permute(2, 0, 1),
        lambda t: t[None].expand(3, 24),
        lambda t: t.view(4, 6).split(2)[1],
        lambda t: t.view(torch.int32),
        lambda t: t.detach(),
        lambda t: t.squeeze().unsqueeze(0),
    )
    for i, way in enumerate(ways):
        mine, expected = way(x), way(base)
        assert mine.stride() == expected.stride(), f"view {i}: {mine.stride()}"
        assert mine.storage_offset() == expected.storage_offset(), f"view {i}"
        assert mine.data_ptr() == x.data_ptr() + 4 * mine.storage_offset(), f"view {i}"
        assert mine.cpu().equal(expected), f"view {i}"
    x.view(4, 6)[1].fill_(-1)
    assert x[6:12].tolist() == [-1] * 6, "a write to a view does not reach its base"
    x[0] = 5
    assert x.view(24)[0].item() == 5


@case("view", subject="reshape")
def reshape_copies_only_if_it_must(device):
    """Reshape and contiguous copy only if the strides do not fit."""
    x = torch.arange(6.0, device=device).view(2, 3)
    assert x.reshape(3, 2).data_ptr() == x.data_ptr()
    assert x.contiguous() is x
    y = x.t().reshape(6)
    assert y.data_ptr() != x.data_ptr()
    assert y.tolist() == [0, 3, 1, 4, 2, 5]
    y.zero_()
    assert x.sum().item() == 15


@case("errors", subject="index out of range")
def index_out_of_range_is_an_error(device):
    """An index or index tensor that is out of range raises an exception."""
    x = torch.arange(5.0, device=device)
    refused(lambda: x[7], IndexError)
    program = (
        LOAD + "x = torch.arange(5.0, device=sys.argv[1])\n"
        "y = x[torch.tensor([1, 9], device=sys.argv[1])]\n"
        "print(y.cpu())\n"
    )
    # In a separate process, because some devices do not compute afterwards.
    done = subprocess.run(
        [sys.executable, "-c", program, device], capture_output=True, text=True
    )
    assert done.returncode != 0, f"the index 9 of 5 gave {done.stdout.strip()}"


@case("exit")
def process_ends_with_status_0(device):
    """A program that used the device, and leaves work and tensors, ends well."""
    program = (
        LOAD + "x = torch.ones(100, 100, device=sys.argv[1], requires_grad=True)\n"
        "(x @ x).sum().backward()\n"
        "y = x @ x\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, device], capture_output=True, text=True
    )
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-300:]}"


@case("operators", "accelerator", subject="threads", users=0.4)
def threads_may_use_the_device(device):
    """Threads compute at the same time, each on its own current device."""
    import concurrent.futures

    def work(number):
        x = torch.full((16, 16), float(number), device=device)
        for _ in range(20):
            x = x * 1 + 0
        return x.sum().item()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    assert found == [256.0 * each for each in range(8)]
