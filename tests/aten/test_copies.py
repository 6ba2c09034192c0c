# SPDX-License-Identifier: BSD-3-Clause
"""Copies between host and device, on a device, and between devices."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from support.latches import Latches

DTYPES = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int8,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.float8_e5m2,
]
PATHS = ["h2d", "d2h", "d2d", "peer"]


def ends(path: str, device: str) -> tuple[str, str]:
    """The source and the destination of a path."""
    other = f"{device}:1"
    return {
        "h2d": ("cpu", device),
        "d2h": (device, "cpu"),
        "d2d": (device, device),
        "peer": (device, other),
    }[path]


@pytest.mark.parametrize("path", PATHS)
def test_copy_changes_dtype_as_on_the_cpu(device: str, path: str) -> None:
    start, end = ends(path, device)
    for dtype, target in itertools.product(DTYPES, DTYPES):
        if dtype.is_complex and not target.is_complex:
            continue  # warns that it drops the imaginary part
        x = (torch.rand(3, 5) * 9).to(dtype)
        result = x.to(start).to(device=end, dtype=target)
        assert result.device.type == torch.device(end).type
        assert result.dtype == target
        expected = x.to(target)
        assert result.cpu().view(torch.uint8).equal(expected.view(torch.uint8))


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.t(),
    "strided": lambda x: x[::2, 1::3],
    "offset": lambda x: x[2:],
    "row": lambda x: x[3],
    "column": lambda x: x[:, 3],
    "empty": lambda x: x[:0],
    "scalar": lambda x: x[2, 2],
    "flat": lambda x: x.view(-1)[5:50],
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_copy_reads_and_writes_every_layout(
    device: str, path: str, source: str
) -> None:
    start, end = ends(path, device)
    x = torch.randn(8, 9)
    value = LAYOUTS[source](x)
    moved = LAYOUTS[source](x.to(start))
    # Into a contiguous tensor, a transposed one, and a part of a larger one.
    assert torch.empty(value.shape, device=end).copy_(moved).cpu().equal(value)
    transposed = torch.empty(value.shape[::-1], device=end).permute(
        tuple(range(value.dim()))[::-1]
    )
    assert transposed.copy_(moved).cpu().equal(value)
    base = torch.zeros(2, *value.shape, device=end)
    base[1].copy_(moved)
    assert base[1].cpu().equal(value)
    assert not base[0].any()


@pytest.mark.parametrize("path", PATHS)
def test_copy_broadcasts(device: str, path: str) -> None:
    start, end = ends(path, device)
    row = torch.randn(4)
    target = torch.empty(3, 4, device=end)
    assert target.copy_(row.to(start)).cpu().equal(row.expand(3, 4))
    assert target.copy_(torch.tensor(2.0, device=start)).cpu().eq(2).all()
    assert target.t().copy_(row[:3].to(start)).cpu().equal(row[:3].expand(4, 3))
    with pytest.raises(RuntimeError, match="must match the size"):
        target.copy_(torch.ones(5, device=start))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        target[0].copy_(torch.ones(2, 4, device=start))


@pytest.mark.parametrize("path", PATHS)
def test_copy_resolves_conjugate_and_negative_views(device: str, path: str) -> None:
    start, end = ends(path, device)
    z = torch.randn(3, 4, dtype=torch.complex64)
    moved = z.to(start)
    target = torch.empty(3, 4, dtype=torch.complex64, device=end)
    assert target.copy_(moved.conj()).cpu().equal(z.conj().resolve_conj())
    assert target.conj().copy_(moved).cpu().equal(z)
    assert target.cpu().equal(z.conj().resolve_conj())
    negative = moved.conj().imag
    assert torch.empty(3, 4, device=end).copy_(negative).cpu().equal(-z.imag)
    assert moved.conj().to(end).cpu().equal(z.conj().resolve_conj())


def test_copy_within_one_storage_is_that_of_the_cpu(both) -> None:
    both(lambda x: x[1:].copy_(x[1:].clone()), torch.randn(9))
    both(lambda x: x.view(3, 3).copy_(x.view(3, 3)), torch.randn(9))
    both(lambda x: x[:4].copy_(x[5:]), torch.randn(9))
    both(lambda x: x.view(3, 3).t().copy_(x.view(3, 3).clone()), torch.randn(9))


def test_copy_to_itself_changes_nothing(device: str) -> None:
    x = torch.arange(5.0, device=device)
    assert x.copy_(x) is x
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert x.to(device) is x
    assert x.to(device, copy=True) is not x


def test_to_keeps_the_strides_and_the_memory_format(device: str) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.to(device).stride() == x.stride()
    assert x.to(device).is_contiguous(memory_format=torch.channels_last)
    assert x[0].permute(2, 0, 1).to(device).stride() == x[0].permute(2, 0, 1).stride()
    other = x.to(device).to(f"{device}:1")
    assert other.stride() == x.stride()
    assert other.cpu().equal(x)


def test_copy_between_devices_sees_pending_work_of_the_source(
    device: str, latch: Latches
) -> None:
    source = torch.zeros(1000, device=device)
    pinned = torch.ones(1000).pin_memory()
    held = latch(0)
    source.copy_(pinned, non_blocking=True)
    timer = threading.Timer(0.1, held.release)
    timer.start()
    assert source.to(f"{device}:1").cpu().eq(1).all()
    timer.join()


def test_non_blocking_copies_from_and_to_pinned_memory_leave_the_host_free(
    device: str, latch: Latches
) -> None:
    source, target = torch.randn(500).pin_memory(), torch.zeros(500).pin_memory()
    moved = torch.zeros(500, device=device)
    held = latch()
    moved.copy_(source, non_blocking=True)
    target.copy_(moved, non_blocking=True)
    assert not torch.accelerator.current_stream(0).query()
    assert not target.any(), "the copy did not wait for the stream"
    held.release()
    torch.accelerator.synchronize(0)
    assert target.equal(source)


@pytest.mark.parametrize("path", PATHS)
def test_non_blocking_copy_to_overlapping_elements_is_an_error_of_the_call(
    device: str, latch: Latches, path: str
) -> None:
    start, end = ends(path, device)
    source, target = torch.ones(3, 4, device=start), torch.zeros(4, device=end)
    if path == "h2d":
        source = source.pin_memory()
    if path == "d2h":
        target = target.pin_memory()
    held = latch() if path in ("h2d", "d2h") else None
    with pytest.raises(RuntimeError, match="more than one element of the written-to"):
        target.expand(3, 4).copy_(source, non_blocking=True)
    if held is not None:
        held.release()
    torch.accelerator.synchronize(0)
    assert not target.any()


@pytest.mark.parametrize("path", PATHS)
def test_non_blocking_copy_of_complex_to_real_warns_at_the_call(
    device: str, path: str
) -> None:
    start, end = ends(path, device)
    z = torch.randn(3, 4, dtype=torch.complex64)
    source, target = z.to(start), torch.zeros(3, 4, device=end)
    if path == "h2d":
        source = source.pin_memory()
    if path == "d2h":
        target = target.pin_memory()
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="discards the imaginary part") as warned:
            target.copy_(source, non_blocking=True)
        assert len(warned) == 1
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            target.t().copy_(source.t().conj(), non_blocking=True)
        torch.accelerator.synchronize()
    finally:
        torch.set_warn_always(before)
    assert target.cpu().equal(z.real)


def test_copy_of_complex_to_real_is_enqueued(device: str, latch: Latches) -> None:
    z = torch.randn(500, dtype=torch.complex64).pin_memory()
    moved, target = (torch.zeros(500, device=device) for _ in range(2))
    on_device = z.to(device)
    held = latch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved.copy_(z, non_blocking=True)
        target.copy_(on_device)
    assert not torch.accelerator.current_stream(0).query()
    held.release()
    assert moved.cpu().equal(z.real)
    assert target.cpu().equal(z.real)


def test_non_blocking_copy_of_complex_to_bool_sees_imaginary_parts(
    device: str,
) -> None:
    z = torch.tensor([0, 1, 1j]).pin_memory()
    moved = torch.zeros(3, dtype=torch.bool, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved.copy_(z, non_blocking=True)
    assert moved.tolist() == [False, True, True]


@pytest.mark.parametrize("path", ["h2d", "d2h"])
def test_non_blocking_copy_with_a_wrong_shape_is_an_error_of_the_call(
    device: str, path: str
) -> None:
    start, end = ends(path, device)
    source, target = torch.ones(3, device=start), torch.zeros(4, device=end)
    if path == "h2d":
        source = source.to(torch.complex64).pin_memory()
    else:
        target = target.pin_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="must match the size"):
            target.copy_(source, non_blocking=True)


def test_non_blocking_copies_of_every_pair_of_dtypes_fail_as_others_do(
    device: str,
) -> None:
    dtypes = [*DTYPES, torch.uint16, torch.complex32, torch.bits8]

    def outcome(source: Tensor, target: Tensor, non_blocking: bool) -> str:
        try:
            target.copy_(source, non_blocking=non_blocking)
        except RuntimeError as error:
            return str(error)
        finally:
            torch.accelerator.synchronize(0)
        return "copied"

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for source, target in itertools.product(dtypes, dtypes):
            for down in (False, True):
                one = torch.empty(2, dtype=source, device=device if down else "cpu")
                other = torch.empty(2, dtype=target, device="cpu" if down else device)
                if down:
                    other = other.pin_memory()
                else:
                    one = one.pin_memory()
                both = {outcome(one, other, early) for early in (False, True)}
                assert len(both) == 1, (source, target, both)


def test_non_blocking_copy_keeps_its_memory(device: str, latch: Latches) -> None:
    target = torch.zeros(4, 1000).pin_memory()
    held = latch()
    for row in target:
        source = torch.full((1000,), 3.0).pin_memory()
        row.copy_(source.to(device, non_blocking=True), non_blocking=True)
        del source
    held.release()
    torch.accelerator.synchronize(0)
    assert target.eq(3).all()


def test_non_blocking_copy_of_pageable_memory_has_been_made_on_return(
    device: str,
) -> None:
    x = torch.ones(1000)
    moved = x.to(device, non_blocking=True)
    x.zero_()
    assert moved.cpu().eq(1).all()
    back = torch.zeros(1000).copy_(moved, non_blocking=True)
    assert back.eq(1).all()
    # Without a destination torch creates a pinned one, so it does not wait.
    pinned = moved.to("cpu", non_blocking=True)
    assert pinned.is_pinned()
    torch.accelerator.synchronize(0)
    assert pinned.eq(1).all()


def test_interior_pointer_of_pinned_memory_is_recognized(device: str) -> None:
    pinned = torch.arange(1000.0).pin_memory()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert pinned[1:].is_pinned()
    assert pinned[-1:].is_pinned()
    assert pinned.pin_memory() is pinned
    assert torch.empty(5, pin_memory=True).is_pinned()
    assert not torch.arange(1000.0).is_pinned()
    assert not torch.ones(3, device=device).is_pinned()
    assert not pinned.clone().is_pinned()


def test_device_tensor_can_not_be_pinned(device: str) -> None:
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(3, device=device).pin_memory()
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(3, device=device, pin_memory=True)


def test_device_tensor_does_not_become_an_array(device: str) -> None:
    with pytest.raises(TypeError, match="to numpy"):
        torch.ones(3, device=device).numpy()


def test_copy_to_the_meta_device_is_that_of_the_cpu(device: str) -> None:
    meta = torch.ones(3, device=device).to("meta")
    assert meta.shape == (3,)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        meta.to(device)
