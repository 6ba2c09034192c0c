# SPDX-License-Identifier: BSD-3-Clause
"""assert_no_leak detects memory kept after a block, and reports its origin."""

from __future__ import annotations

import re
import threading

import pytest
import torch

from torch_openreg.testing import assert_no_host_sync, assert_no_leak


def test_tensor_that_is_kept_is_named_with_size_shape_type_and_line() -> None:
    kept = []
    with pytest.raises(AssertionError) as error, assert_no_leak():
        kept.append(torch.zeros(3, 5, dtype=torch.float64, device="openreg:1"))
    report = str(error.value)
    assert re.search(r"^\d+ bytes are left on openreg:1:$", report, re.MULTILINE)
    assert "120 bytes: float64[3, 5] by aten::zeros" in report
    assert f"{__file__}:" in report
    assert "kept.append(" in report


def test_exactly_the_kept_tensors_are_listed() -> None:
    kept = []
    with pytest.raises(AssertionError) as error, assert_no_leak():
        kept += [torch.ones(size, device="openreg") * 2 for size in (100, 200, 300)]
    report = str(error.value)
    assert re.findall(r"(\d+) bytes: float32\[\d+\] by (\S+),", report) == [
        (str(4 * size), "aten::mul") for size in (100, 200, 300)
    ]


def test_view_keeps_the_memory_of_its_base() -> None:
    kept = []
    with (
        pytest.raises(AssertionError, match=r"4000 bytes: .*aten::ones"),
        assert_no_leak(),
    ):
        kept.append(torch.ones(1000, device="openreg")[:1])


def test_graph_that_is_kept_is_a_leak() -> None:
    weight = torch.ones(64, device="openreg", requires_grad=True)
    total = torch.zeros((), device="openreg")
    with pytest.raises(AssertionError, match="by aten::"), assert_no_leak():
        total = total + (weight.exp() * weight).sum()


def test_block_that_frees_everything_passes() -> None:
    before = torch.ones(1000, device="openreg")
    with assert_no_leak():
        x = torch.ones(1000, device="openreg", requires_grad=True)
        (x * before).sum().backward()
        before.add_(1)
        del x


def test_gradients_that_take_the_place_of_others_are_no_leak() -> None:
    model = torch.nn.Linear(64, 64).openreg()
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(4, 64, device="openreg")).sum().backward()
        optimizer.step()

    with pytest.raises(AssertionError), assert_no_leak():
        step()  # the first step creates gradients and the optimizer's state
    with assert_no_leak():
        step()
        step()


def test_reference_cycle_is_not_a_leak() -> None:
    with assert_no_leak():
        cycle = [torch.ones(1000, device="openreg")]
        cycle.append(cycle)
        del cycle


def test_memory_that_a_copy_still_uses_is_waited_for() -> None:
    target = torch.empty(10**6).pin_memory()
    with assert_no_leak():
        target.copy_(torch.ones(10**6, device="openreg"), non_blocking=True)


@pytest.mark.parametrize("device", [0, "openreg:0", torch.device("openreg"), None])
def test_only_the_devices_that_are_asked_for_count(
    device: int | str | torch.device | None,
) -> None:
    kept = []
    if device is None:
        with pytest.raises(AssertionError, match="openreg:1"), assert_no_leak():
            kept.append(torch.ones(9, device="openreg:1"))
    else:
        with assert_no_leak(device):
            kept.append(torch.ones(9, device="openreg:1"))
        with pytest.raises(AssertionError, match="openreg:0"), assert_no_leak(device):
            kept.append(torch.ones(9, device="openreg:0"))


def test_memory_of_unknown_origin_is_counted() -> None:
    kept = []
    with (
        pytest.raises(AssertionError, match=r"4096 bytes: memory, .*kept\.append"),
        assert_no_leak(),
    ):
        kept.append(torch.UntypedStorage(4096, device="openreg"))


def test_error_of_the_block_propagates() -> None:
    with pytest.raises(ZeroDivisionError), assert_no_leak():
        raise ZeroDivisionError


def test_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Invalid device id 5"), assert_no_leak(5):
        pass


def test_leak_that_hides_behind_a_release_is_found_by_the_strict_form() -> None:
    cache = [torch.ones(1000, device="openreg")]
    kept = []
    with assert_no_leak():
        kept.append(torch.ones(10, device="openreg"))
        cache.clear()
    cache.append(torch.ones(1000, device="openreg"))
    with pytest.raises(AssertionError) as error, assert_no_leak(strict=True):  # noqa: PT012
        kept.append(torch.ones(10, device="openreg"))
        cache.clear()
    report = str(error.value)
    assert "40 bytes are left on openreg:0:" in report
    assert "40 bytes: float32[10] by aten::ones" in report
    assert "kept.append(" in report


def test_strict_form_counts_memory_that_replaces_freed_memory() -> None:
    kept = [torch.ones(10, device="openreg")]
    with (
        pytest.raises(AssertionError, match="by aten::mul"),
        assert_no_leak(strict=True),
    ):
        kept[0] = kept[0] * 2


def test_strict_form_passes_a_block_that_frees_everything() -> None:
    before = torch.ones(1000, device="openreg", requires_grad=True)
    with assert_no_leak(strict=True):
        x = before.exp().sum()
        x.backward()
        before.grad = None
        del x


def test_leak_of_another_thread_is_named_by_its_line() -> None:
    kept = []

    def work() -> None:
        kept.append(torch.ones(10, device="openreg"))

    thread = threading.Thread(target=work)
    with (  # noqa: PT012
        pytest.raises(AssertionError, match=r"40 bytes: memory, .*kept\.append"),
        assert_no_leak(strict=True),
    ):
        thread.start()
        thread.join()


def test_wait_of_the_helper_does_not_count_as_a_wait_of_the_program() -> None:
    with assert_no_host_sync() as found, assert_no_leak():
        torch.ones(10, device="openreg")
    assert found == []
