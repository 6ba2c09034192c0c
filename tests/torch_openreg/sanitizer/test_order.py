# SPDX-License-Identifier: BSD-3-Clause
"""Unordered accesses by two streams, or a stream and the host, are found."""

from __future__ import annotations

import pytest
import torch
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError

from .programs import DEVICE, Access, new, race_of, read_after_write


def write_after_write(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.empty(7, device=DEVICE)
    x.fill_(1)  # first
    with side:
        x.zero_()  # second


def write_after_read(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    side.wait_stream(main)
    with side:
        y = x * 2  # first
    x.add_(y.shape[0])  # second


def wait_for_an_event_that_came_before(main: torch.Stream, side: torch.Stream) -> None:
    x = new(7)
    event = main.record_event()
    x.mul_(2)  # first
    side.wait_event(event)
    with side:
        x.sum()  # second


def part_of_a_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = new(8)
    side.wait_stream(main)
    x[5:] = 3  # first
    with side:
        x[2:6].sum()  # second


def parts_with_gaps(main: torch.Stream, side: torch.Stream) -> None:
    x = new(6, 8)
    side.wait_stream(main)
    x[:, :5].zero_()  # first
    with side:
        x[:, 4:].add_(1)  # second


def list_of_tensors(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(3), new(4)
    side.wait_stream(main)
    torch._foreach_mul_([x, y], 2)  # first
    with side:
        torch._foreach_add([y], 1)  # second


def argument_for_the_result(main: torch.Stream, side: torch.Stream) -> None:
    x, result = new(5), torch.empty(5, device=DEVICE)
    side.wait_stream(main)
    torch.exp(x, out=result)  # first
    with side:
        result.sum()  # second


def sparse_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.eye(4, device=DEVICE)
    x = x.to_sparse()  # first
    with side:
        x * 2  # second


def jagged_tensor(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.nested.nested_tensor_from_jagged(
        new(5, 2), torch.tensor([0, 2, 5]).to(DEVICE)
    )
    side.wait_stream(main)
    y = x * 2  # first
    with side:
        y + 1  # second


def another_device(main: torch.Stream, side: torch.Stream) -> None:
    x = torch.ones(3, device="openreg:1")  # first
    torch.openreg.synchronize(0)
    with torch.Stream("openreg:1"):
        x + 1  # second


def copy_within_the_device(main: torch.Stream, side: torch.Stream) -> None:
    x, y = new(9), new(9)
    side.wait_stream(main)
    with side:
        y.copy_(x, non_blocking=True)  # first
    x.zero_()  # second


def host_reads_before_a_copy_is_done(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.zeros(6, pin_memory=True)
    host.copy_(new(6), non_blocking=True)  # first
    side.synchronize()
    host.sum()  # second


def host_reads_a_new_tensor(main: torch.Stream, side: torch.Stream) -> None:
    host = new(6).to("cpu", non_blocking=True)  # first
    host[2].item()  # second


def host_writes_before_a_copy_is_done(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.ones(6).pin_memory()
    x = host.to(DEVICE, non_blocking=True)  # first
    host.zero_()  # second
    x.sum()


def copies_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        host = new(6).to("cpu", non_blocking=True)  # first
        host.reshape(2, 3).sum()  # second


def parts_in_inference_mode(main: torch.Stream, side: torch.Stream) -> None:
    with torch.inference_mode():
        x = new(3, 4).t()  # first
        with side:
            x.reshape(12)  # second


FOUND = [
    copies_in_inference_mode,
    parts_in_inference_mode,
    write_after_write,
    read_after_write,
    write_after_read,
    wait_for_an_event_that_came_before,
    part_of_a_tensor,
    parts_with_gaps,
    list_of_tensors,
    argument_for_the_result,
    sparse_tensor,
    jagged_tensor,
    another_device,
    copy_within_the_device,
    host_reads_before_a_copy_is_done,
    host_reads_a_new_tensor,
    host_writes_before_a_copy_is_done,
]


@pytest.mark.parametrize("program", FOUND, ids=lambda program: program.__name__)
def test_use_without_an_order_is_found_with_both_lines(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    error = race_of(program, main, side)
    assert error.current.line in str(error)
    assert error.previous.line in str(error)


def test_report_names_operators_arguments_and_streams(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled(), side:
        with main:
            x = new(3)
        y = torch.empty_like(x)
        with pytest.raises(UnsynchronizedAccessError) as found:
            torch.sub(y, x)
    previous, current = found.value.previous, found.value.current
    assert previous.operator.startswith("aten::ones(")
    assert (previous.writes, previous.arguments) == (True, ("output",))
    assert previous.where == "the default stream of openreg:0"
    assert current.operator.startswith("aten::sub.Tensor(")
    assert (current.writes, current.arguments) == (False, ("other",))
    assert current.where == f"stream {side.stream_id} of openreg:0"
    assert found.value.address == x.data_ptr()
    assert found.value.allocated == previous.line
    for access in (previous, current):
        assert access.operator in str(found.value)
        assert access.where in str(found.value)
