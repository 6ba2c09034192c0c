# SPDX-License-Identifier: BSD-3-Clause
"""torch_openreg.testing: limits and failures for devices given by PyTorch's names."""

from __future__ import annotations

import pytest
import torch

from torch_openreg.testing import inject_failure, memory_limit

MIB = 2**20


@pytest.mark.parametrize("device", [1, "openreg:1", torch.device("openreg", 1)])
def test_memory_limit_holds_for_its_device_and_its_block(
    device: int | str | torch.device,
) -> None:
    with memory_limit(32 * MIB, device):
        torch.empty(8 * MIB, dtype=torch.uint8, device="openreg:1")
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(64 * MIB, dtype=torch.uint8, device="openreg:1")
        torch.empty(64 * MIB, dtype=torch.uint8, device="openreg:0")
    torch.empty(64 * MIB, dtype=torch.uint8, device="openreg:1")


def test_memory_limit_is_of_the_current_device_by_default() -> None:
    with torch.openreg.device(1), memory_limit(8 * MIB):
        assert torch.ones(1, device="openreg").get_device() == 1
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(64 * MIB, dtype=torch.uint8, device="openreg:1")


def test_memory_limit_counts_nothing_that_is_only_cached() -> None:
    torch.empty(64 * MIB, dtype=torch.uint8, device="openreg")
    with memory_limit(32 * MIB), pytest.raises(torch.OutOfMemoryError):
        torch.empty(64 * MIB, dtype=torch.uint8, device="openreg")


def test_limits_nest_and_end_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), memory_limit(256 * MIB):  # noqa: PT012
        with memory_limit(8 * MIB), pytest.raises(torch.OutOfMemoryError):
            torch.empty(64 * MIB, dtype=torch.uint8, device="openreg")
        torch.empty(64 * MIB, dtype=torch.uint8, device="openreg")
        raise ZeroDivisionError
    torch.empty(512 * MIB, dtype=torch.uint8, device="openreg")


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(TypeError, match="limit is '1GiB', expected bytes as an int"):
        memory_limit("1GiB").__enter__()
    with pytest.raises(ValueError, match="-1"), memory_limit(-1):
        pass
    with pytest.raises(RuntimeError, match=str(2**50)), memory_limit(2**50):
        pass
    with pytest.raises(RuntimeError, match="Invalid device id 7"), memory_limit(1, 7):
        pass


def test_failure_hits_the_operator_that_is_counted() -> None:
    x = torch.ones(3, device="openreg")
    with inject_failure("launch", first=2) as failure:
        y = x + 1
        with pytest.raises(RuntimeError, match="injected failure: launch number 2"):
            (y + 1).tolist()  # the call does not raise if it was enqueued
        assert (y + 2).tolist() == [4, 4, 4]
    assert failure.hits == 1
    assert failure.calls >= 3


def test_failure_counts_only_its_device() -> None:
    x, y = torch.ones(3, device="openreg:0"), torch.ones(3, device="openreg:1")
    with inject_failure("launch", device="openreg:1") as failure:
        assert (x + 1).tolist() == [2, 2, 2]
        assert failure.calls == 0
        with pytest.raises(RuntimeError, match="on device 1"):
            (y + 1).tolist()


def test_failed_allocation_is_out_of_memory_though_memory_is_cached() -> None:
    size = 64 * MIB  # more than the free part of a segment of other tensors
    torch.empty(size, dtype=torch.uint8, device="openreg")
    with (
        inject_failure("malloc", period=1) as failure,
        pytest.raises(torch.OutOfMemoryError),
    ):
        torch.empty(size, dtype=torch.uint8, device="openreg")
    assert failure.hits > 0
    assert torch.ones(size // 4, device="openreg").sum().item() == size // 4


def test_wrong_failures_are_refused() -> None:
    with pytest.raises(ValueError, match="probability is 2"):
        inject_failure("launch", probability=2).__enter__()
    with pytest.raises(TypeError, match="site is 3, expected a str"):
        inject_failure(3).__enter__()
    with pytest.raises(ValueError, match="site is 'lunch', expected one of malloc"):
        inject_failure("lunch").__enter__()
    with pytest.raises(RuntimeError, match="Invalid device id 9"):
        inject_failure("launch", device=9).__enter__()
