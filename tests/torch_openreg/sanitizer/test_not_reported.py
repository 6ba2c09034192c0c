# SPDX-License-Identifier: BSD-3-Clause
"""Programs that order their uses of memory are not reported."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError

from .programs import DEVICE, Access, new


def wait_of_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        x.add_(1)
    main.wait_stream(side)
    x.sum()


def wait_of_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_event(main.record_event())
    with side:
        x.zero_()


def wait_along_a_chain(main: torch.Stream, side: torch.Stream) -> None:
    third = torch.Stream("openreg:1")
    x = new(7)
    third.wait_stream(main)
    side.wait_stream(third)
    with side:
        x.zero_()


def wait_of_the_host_for_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    main.synchronize()
    with side:
        x.zero_()


def wait_of_the_host_for_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    main.record_event().synchronize()
    with side:
        x.zero_()


def wait_of_the_host_for_a_device(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    torch.accelerator.synchronize()
    with side:
        x.zero_()


def host_asks_for_a_stream(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    while not main.query():
        pass
    with side:
        x.zero_()


def host_asks_for_an_event(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    event = main.record_event()
    while not event.query():
        pass
    with side:
        x.zero_()


def host_measures_time(main: torch.Stream, side: torch.Stream) -> None:
    start, end = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
    start.record(main)
    x = new(7)
    end.record(main)
    while not end.query():
        pass
    start.elapsed_time(end)
    with side:
        x.zero_()


def host_reads_a_value(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    x.sum().item()
    with side:
        x.zero_()


def copy_that_blocks(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.arange(5).to(DEVICE)
    with side:
        x.add_(1)
        y = x.cpu()
    x.zero_()
    y.sum()


def copy_to_the_host_and_a_wait(main: torch.Stream, side: torch.Stream) -> None:
    host = new(4).to("cpu", non_blocking=True)
    main.synchronize()
    host.sum()


def pinned_memory_in_turn(main: torch.Stream, side: torch.Stream) -> None:
    for n in range(20):
        host = torch.full((100,), n).pin_memory()
        host.to(DEVICE, non_blocking=True)


def copies_of_one_stream(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.zeros(6, pin_memory=True)
    for _ in range(3):
        host.copy_(new(6), non_blocking=True)
    host.copy_(new(6))
    host.sum()


def copy_between_devices(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.ones(5, device="openreg:1").to(DEVICE)
    y = torch.empty(5, device="openreg:1").copy_(x)
    x.zero_()
    y.add_(1)


def reads_on_both(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        x.sum()
    x.sum()


def different_halves(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    side.wait_stream(main)
    for half, other in ((x[:3], x[3:]), (x[:, :3], x[:, 3:]), (x.T[::2], x.T[1::2])):
        half.zero_()
        with side:
            other.add_(1)
        main.wait_stream(side)
        side.wait_stream(main)


def metadata_only(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    with side:
        torch.zeros_like(x), torch.empty_like(x), x.new_ones(3), x.view(-1).shape
        x.is_pinned(), x.detach(), x.expand(2, 6, 8), torch.Tensor.is_same_size(x, x)


def no_elements(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(0), new(3)[3:]
    with side:
        x.zero_(), y.zero_()


def recorded_stream(main: torch.Stream, side: torch.Stream) -> None:
    for _ in range(20):
        x = new(100)
        side.wait_stream(main)
        with side:
            x.sum()
        x.record_stream(side)


def wait_before_the_memory_is_used_again(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(100)
    side.wait_stream(main)
    with side:
        x.sum()
    del x
    y = torch.empty(100, device=DEVICE)
    main.wait_stream(side)
    y.zero_()


def memory_that_the_device_had_back(main: torch.Stream, side: torch.Stream) -> None:
    size = 6_000_000  # a separate segment, independent of other tests
    address = new(size).data_ptr()
    torch.accelerator.empty_cache()
    with side:
        assert new(size).data_ptr() == address


def random_numbers(main: torch.Stream, side: torch.Stream) -> None:
    torch.rand(5, device=DEVICE)
    with side:
        torch.rand(5, device=DEVICE)


def numbers_of_the_host(main: torch.Stream, side: torch.Stream) -> None:
    two = torch.tensor(2.0)
    x = new(3) * two
    two.fill_(3)
    with side:
        new(3) * two
    x.sum()


def waits_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(5)
        x.to("cpu")
        with side:
            x.zero_()


def metadata_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(3, 4)
        with side:
            torch.empty(4, device=DEVICE).expand_as(x)


def argument_of_an_operator_that_was_not_called(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(5)
    with side, pytest.raises(UnsynchronizedAccessError):
        x.mul_(2)
    x.add_(1)


def tensors_without_memory(main: torch.Stream, side: torch.Stream) -> None:
    with FakeTensorMode():
        x = new(3) * 2
        with side, sanitizer.enabled():
            assert x.add_(new(3)).shape == (3,)


NOT_REPORTED = [
    waits_in_inference_mode,
    metadata_in_inference_mode,
    argument_of_an_operator_that_was_not_called,
    tensors_without_memory,
    wait_of_a_stream,
    wait_of_an_event,
    wait_along_a_chain,
    wait_of_the_host_for_a_stream,
    wait_of_the_host_for_an_event,
    wait_of_the_host_for_a_device,
    host_asks_for_a_stream,
    host_asks_for_an_event,
    host_measures_time,
    host_reads_a_value,
    copy_that_blocks,
    copy_to_the_host_and_a_wait,
    pinned_memory_in_turn,
    copies_of_one_stream,
    copy_between_devices,
    reads_on_both,
    different_halves,
    metadata_only,
    no_elements,
    recorded_stream,
    wait_before_the_memory_is_used_again,
    memory_that_the_device_had_back,
    random_numbers,
    numbers_of_the_host,
]


@pytest.mark.parametrize("program", NOT_REPORTED, ids=lambda program: program.__name__)
def test_program_with_an_order_is_not_reported(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        program(main, side)
