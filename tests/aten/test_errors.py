# SPDX-License-Identifier: BSD-3-Clause
"""Errors are the same as in PyTorch, and the device works after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F

import openreg_aten
from openreg_aten import _C


@pytest.fixture(autouse=True)
def device_goes_on(device: str) -> Iterator[None]:
    """Computes on the device after the error."""
    yield
    x = torch.arange(6.0, device=device).view(2, 3)
    assert (x @ x.T + 1).tolist() == [[6, 15], [15, 51]]


INDICES: dict[str, Callable[[str], object]] = {
    "index": lambda d: torch.ones(6, device=d)[torch.tensor([1, 9], device=d)],
    "cpu_index": lambda d: torch.ones(6, device=d)[torch.tensor([-7])],
    "number": lambda d: torch.ones(6, device=d)[6],
    "dimension": lambda d: torch.ones(6, device=d).sum(3),
    "index_select": lambda d: torch.ones(6, device=d).index_select(
        0, torch.tensor([9], device=d)
    ),
    "embedding": lambda d: F.embedding(
        torch.tensor([9], device=d), torch.ones(3, 3, device=d)
    ),
    "take": lambda d: torch.take(torch.ones(6, device=d), torch.tensor(9, device=d)),
    "target": lambda d: F.nll_loss(
        torch.ones(2, 3, device=d), torch.tensor([0, 5], device=d)
    ),
    "put": lambda d: torch.ones(6, device=d).index_put_(
        (torch.tensor([6], device=d),), torch.ones(1, device=d)
    ),
}


@pytest.mark.parametrize("name", INDICES)
def test_index_out_of_bounds_raises_index_error(device: str, name: str) -> None:
    with pytest.raises(IndexError) as caught:
        INDICES[name](device)
    with pytest.raises(IndexError) as expected:
        INDICES[name]("cpu")
    assert str(caught.value) == str(expected.value)


SAME: dict[str, Callable[[str], object]] = {
    "cholesky": lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
    "matmul": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "add": lambda d: torch.ones(2, device=d) + torch.ones(3, device=d),
    "cat": lambda d: torch.cat([torch.ones(2, device=d), torch.ones(2, 2, device=d)]),
    "dtype": lambda d: torch.ones(2, device=d).int().uniform_(),
    "promotion": lambda d: torch.ones(2, device=d).int().add_(1.5),
    "gather": lambda d: torch.ones(3, device=d).gather(0, torch.tensor([9], device=d)),
    "item": lambda d: torch.ones(2, device=d).item(),
    "bool": lambda d: bool(torch.ones(2, device=d)),
    "backward": lambda d: torch.ones(2, device=d, requires_grad=True).backward(),
    "inplace_leaf": lambda d: torch.ones(2, device=d, requires_grad=True).add_(1),
}


@pytest.mark.parametrize("name", SAME)
def test_wrong_arguments_are_refused_in_the_words_of_the_cpu(
    device: str, name: str
) -> None:
    with pytest.raises(RuntimeError) as caught:
        SAME[name](device)
    with pytest.raises(RuntimeError) as expected:
        SAME[name]("cpu")
    assert type(caught.value) is type(expected.value)
    assert str(caught.value) == str(expected.value)


UNSUPPORTED: dict[str, Callable[[str], object]] = {
    "to_mkldnn": lambda d: torch.eye(3, device=d).to_mkldnn(),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_layout_raises_not_implemented_error(
    device: str, settled_memory, name: str
) -> None:
    before = settled_memory(0)
    with pytest.raises(NotImplementedError):
        UNSUPPORTED[name](device)
    assert torch.accelerator.memory_allocated(0) == before


def test_operator_without_a_cpu_kernel_is_named(device: str) -> None:
    x = torch.ones(4, 4, device=device)
    with pytest.raises(NotImplementedError, match="aten::_cudnn_init_dropout_state"):
        torch._cudnn_init_dropout_state(0.5, True, 1, device=device)
    with pytest.raises(NotImplementedError, match="aten::_fused_dropout"):
        torch._fused_dropout(x, 0.5)


@pytest.mark.parametrize("index", [2, 64, 127])
def test_unknown_device_is_refused_with_the_valid_range(
    device: str, index: int
) -> None:
    message = f"invalid device ordinal: {index} is not a number from 0 to 1"
    for use in (
        lambda: torch.empty(1, device=f"{device}:{index}"),
        lambda: torch.empty_strided((1,), (1,), device=f"{device}:{index}"),
        lambda: torch.arange(3, device=f"{device}:{index}"),
        lambda: torch.ones(1).to(f"{device}:{index}"),
        lambda: torch.Stream(f"{device}:{index}"),
        lambda: torch.Generator(f"{device}:{index}"),
        lambda: torch.accelerator.set_device_index(index),
        lambda: torch.accelerator.synchronize(index),
        lambda: torch.accelerator.memory_stats(index),
    ):
        with pytest.raises(RuntimeError, match=message):
            use()
    assert torch.accelerator.current_device_index() == 0


@pytest.mark.parametrize("index", [-2, 2, 300, 2**31 - 1])
def test_module_functions_refuse_an_unknown_device(index: int) -> None:
    for function in (
        _C.set_device,
        _C.exchange_device,
        _C.synchronize,
        _C.memory_info,
        _C.default_generator,
    ):
        with pytest.raises(RuntimeError, match=f"invalid device ordinal: {index} is"):
            function(index)
    assert _C.current_device() == 0


def test_module_functions_exchange_devices() -> None:
    assert _C.device_count() == 2
    assert _C.is_initialized()
    assert not _C.is_in_bad_fork()
    assert _C.exchange_device(1) == 0
    assert _C.maybe_exchange_device(-1) == -1
    assert _C.current_device() == 1
    assert _C.maybe_exchange_device(0) == 1
    free, total = _C.memory_info(1)
    assert 0 < free <= total
    assert openreg_aten.__all__ == ["device_type", "mechanisms", "take_ranges"]


def test_wrong_environment_fails_at_first_use_not_at_import(run_python) -> None:
    source = """
    import torch
    import openreg_aten
    assert openreg_aten._C.device_count() == 0
    for _ in range(2):
        try:
            torch.ones(1, device="privateuseone")
        except RuntimeError as error:
            print(str(error).splitlines()[0])
    assert torch.ones(2).sum().item() == 2
    """
    done = run_python(source, OPENREG_DEVICE_COUNT="many")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "OPENREG_DEVICE_COUNT" in first
    assert "many" in first
    assert first == second


def test_forked_child_is_refused_and_the_parent_still_works(run_python) -> None:
    source = """
    import os
    import torch
    import openreg_aten
    x = torch.ones(3, device="privateuseone")
    child = os.fork()
    if child == 0:
        assert openreg_aten._C.is_in_bad_fork()
        assert torch.ones(2).sum().item() == 2
        try:
            torch.ones(1, device="privateuseone")
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(x.sum().item())
    """
    done = run_python(source)
    assert done.returncode == 0, done.stderr
    error, total = done.stdout.strip().rsplit("\n", 1)
    assert "Cannot re-initialize openreg in forked subprocess" in error
    assert total == "3.0"
