# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the ATen tests: the device, comparison with the CPU, processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import openreg_aten
import openreg_runtime as runtime

# Before the first backward pass: the device's autograd thread keeps the number that
# holds when it starts. With one thread a kernel sums in one order, so that results of
# the same kernel are the same bits.
torch.set_num_threads(1)

openreg_aten._C.init()


@pytest.fixture(scope="session")
def device() -> str:
    """The device's name: ``privateuseone`` where no package has renamed it."""
    name: str = torch._C._get_privateuse1_backend_name()
    # The first use of the device makes it torch's accelerator.
    assert torch.empty(1, device=name).device.type == name
    return name


@pytest.fixture(autouse=True)
def fixed_state(device: str) -> Iterator[None]:
    """Seeds every generator, and demands that a test leaves device 0 current."""
    torch.manual_seed(0)
    yield
    assert torch.accelerator.current_device_index() == 0


def bits(tensor: Tensor) -> bytes:
    """The values of a tensor in logical order, as they lie in memory."""
    value = tensor.detach().cpu().resolve_conj().resolve_neg()
    value = value.clone(memory_format=torch.contiguous_format)
    return value.view(-1).view(torch.uint8).numpy().tobytes()


def assert_same(result: Any, expected: Any, kind: str) -> None:
    """Demands the same structure, metadata and bits, on a device of type ``kind``."""
    results, result_spec = pytree.tree_flatten(result)
    wanted, wanted_spec = pytree.tree_flatten(expected)
    assert result_spec == wanted_spec
    for one, other in zip(results, wanted, strict=True):
        if not isinstance(other, Tensor):
            assert one == other
            continue
        assert one.device.type == kind
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.stride() == other.stride()
        assert one.storage_offset() == other.storage_offset()
        assert one.is_conj() == other.is_conj()
        assert one.is_neg() == other.is_neg()
        if bits(one) != bits(other):
            torch.testing.assert_close(one.cpu(), other, rtol=0, atol=0, equal_nan=True)
            pytest.fail("values are equal, but not their bits")


def mirror(values: Any, device: str) -> Any:
    """Moves tensors with their storages: geometry and shared memory stay.

    Args:
        values: Tensors on the CPU, in any nest of lists, tuples and dictionaries.
        device: Where the copies go.

    Returns:
        The same nest, with device tensors of the same strides and offsets. Tensors
        that share a storage share one there too.
    """
    storages: dict[int, Tensor] = {}

    def move(tensor: Tensor) -> Tensor:
        if tensor.is_conj():
            return torch.conj(move(torch.conj(tensor)))
        if tensor.is_neg():
            return torch._neg_view(move(torch._neg_view(tensor)))
        storage = tensor.untyped_storage()
        flat = storages.get(storage._cdata)
        if flat is None:
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
            flat = storages[storage._cdata] = raw.to(device)
        return torch.empty(0, dtype=tensor.dtype, device=device).set_(
            flat.untyped_storage(),
            tensor.storage_offset(),
            tensor.size(),
            tensor.stride(),
        )

    moved = pytree.tree_map_only(Tensor, move, values)
    storages.clear()  # the function refers to itself, and lives until a collection
    return moved


@pytest.fixture
def same(device: str) -> Callable[[Any, Any], None]:
    """Gives a function that compares a device's result with the CPU's, bit by bit."""

    def compare(result: Any, expected: Any) -> None:
        assert_same(result, expected, device)

    return compare


@pytest.fixture
def to_device(device: str) -> Callable[[Any], Any]:
    """Gives a function that copies CPU tensors with their geometry to the device."""

    def move(values: Any) -> Any:
        return mirror(values, device)

    return move


@pytest.fixture
def both(device: str) -> Callable[..., Any]:
    """Gives a function that calls another with CPU tensors and with device tensors.

    Results must have the CPU's bits, and so must the arguments afterwards: an operator
    may have changed them. The device's result is returned.
    """

    def run(function: Callable[..., Any], *args: Any) -> Any:
        moved = mirror(args, device)
        expected = function(*args)
        result = function(*moved)
        assert_same(result, expected, device)
        assert_same(moved, args, device)
        return result

    return run


@pytest.fixture
def run_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Gives a function that runs source in a new interpreter, without autoloading.

    Keyword arguments are environment variables.
    """

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(source)],
            env=os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"} | environment,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return run


@pytest.fixture
def settled_memory() -> Callable[[int], int]:
    """Gives a function that reads device 0's allocated bytes and expects a value.

    The device's autograd thread, and a stream, let go of their last block soon after
    the caller goes on, so the function reads again for a while.
    """

    def read(expected: int) -> int:
        deadline = time.monotonic() + 10
        while True:
            torch.accelerator.synchronize(0)
            allocated: int = torch.accelerator.memory_allocated(0)
            if allocated == expected or time.monotonic() > deadline:
                return allocated

    return read


class Latch:
    """A kernel that holds a device's default stream until it is released."""

    def __init__(self, index: int) -> None:
        self._released = threading.Event()
        started = threading.Event()

        def hold() -> None:
            started.set()
            self._released.wait()

        runtime.Device(index).default_stream.launch(hold)
        started.wait()

    def release(self) -> None:
        """Lets the stream go on."""
        self._released.set()


@pytest.fixture
def latch() -> Iterator[Callable[[int], Latch]]:
    """Makes latches, which are released after the test at the latest."""
    made: list[Latch] = []

    def make(index: int = 0) -> Latch:
        made.append(Latch(index))
        return made[-1]

    yield make
    for each in made:
        each.release()
    for index in range(torch.accelerator.device_count()):
        torch.accelerator.synchronize(index)
