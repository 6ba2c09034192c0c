# SPDX-License-Identifier: BSD-3-Clause
"""Host writes to pinned memory outside of operators are found at a wait."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError

from support.programs import Program

from .programs import DEVICE, Access, line_of, new

Write = Callable[[Tensor], object]


def write_an_item(host: Tensor) -> None:
    host.numpy()[2] = 9


def write_a_slice(host: Tensor) -> None:
    host.numpy()[1:3] = 9


def copy_to(host: Tensor) -> None:
    np.copyto(host.numpy(), np.full(6, 9, np.float32))


def write_the_result(host: Tensor) -> None:
    array = np.asarray(host)
    np.add(array, 1, out=array)


def shuffle(host: Tensor) -> None:
    array = host.numpy()
    array[...] = array[::-1].copy()


def write_through_a_pointer(host: Tensor) -> None:
    ctypes.memset(host.data_ptr(), 1, 4)


def write_through_a_memoryview(host: Tensor) -> None:
    memoryview(host.numpy())[0] = 9.0


WRITES = [
    write_an_item,
    write_a_slice,
    copy_to,
    write_the_result,
    shuffle,
    write_through_a_pointer,
    write_through_a_memoryview,
]


def pinned() -> Tensor:
    return torch.arange(6.0).pin_memory()


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_write_before_the_copy_is_completed_is_found_where_the_host_waits(
    write: Write, main: torch.Stream
) -> None:
    def program() -> None:
        host = pinned()
        x = host.to(DEVICE, non_blocking=True)  # copied
        write(host)
        x.sum().item()  # waits

    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program()
    previous, current = found.value.previous, found.value.current
    assert previous.line == line_of(program, "copied")
    assert not previous.writes
    assert current.line == f"before {line_of(program, 'waits')}"
    assert (current.writes, current.where) == (True, "the host")


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_write_after_a_wait_is_not_reported(write: Write, main: torch.Stream) -> None:
    with sanitizer.enabled():
        host = pinned()
        for _ in range(3):
            host.to(DEVICE, non_blocking=True)
            main.synchronize()
            write(host)
        host.to(DEVICE, non_blocking=True)


def wait_of_an_event(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    host.to(DEVICE, non_blocking=True)  # first
    event = main.record_event()
    write_an_item(host)
    event.synchronize()  # waits


def wait_of_a_device(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    host.to(DEVICE, non_blocking=True)  # first
    write_an_item(host)
    torch.accelerator.synchronize()  # waits


def array_from_before(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    array = host.numpy()
    host.to(DEVICE, non_blocking=True)  # first
    array[1] = 9
    main.synchronize()  # waits


def part_of_a_tensor(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.arange(24.0).reshape(6, 4).pin_memory()
    new(6, 2).copy_(host[:, :2], non_blocking=True)  # first
    host.numpy()[3, 1] = 9
    main.synchronize()  # waits


def second_copy(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    host.to(DEVICE, non_blocking=True)  # first
    write_an_item(host)
    host.to(DEVICE, non_blocking=True)
    main.synchronize()  # waits


def copy_to_the_same_memory(main: torch.Stream, side: torch.Stream) -> None:
    host, x = pinned(), new(6)
    host.to(DEVICE, non_blocking=True)  # first
    write_an_item(host)
    host.copy_(x, non_blocking=True)  # waits


def replay_of_a_graph(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    graph = torch.accelerator.Graph()
    with side, graph:
        host.to(DEVICE, non_blocking=True) * 2
    graph.replay()  # first
    write_an_item(host)
    main.synchronize()  # waits


@pytest.mark.parametrize(
    "program",
    [
        wait_of_an_event,
        wait_of_a_device,
        array_from_before,
        part_of_a_tensor,
        second_copy,
        copy_to_the_same_memory,
        pytest.param(replay_of_a_graph, marks=pytest.mark.differs_in_process("graphs")),
    ],
    ids=lambda program: program.__name__,
)
def test_write_is_found_at_the_end_of_a_block_after_any_wait(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    with pytest.raises(UnsynchronizedAccessError) as found, sanitizer.enabled():
        program(main, side)
    assert found.value.previous.line == line_of(program, "first")
    assert found.value.current.line == f"before {line_of(program, 'waits')}"


def test_next_operator_raises_the_error_of_a_wait(main: torch.Stream) -> None:
    with sanitizer.enabled():
        host = pinned()
        host.to(DEVICE, non_blocking=True)
        write_an_item(host)
        main.synchronize()
        with pytest.raises(UnsynchronizedAccessError, match="without an operator"):
            torch.ones(3)
        torch.ones(3)


def other_part_of_the_memory(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.arange(24.0).reshape(6, 4).pin_memory()
    new(6, 2).copy_(host[:, :2], non_blocking=True)
    host.numpy()[:, 2:] = 9
    host[:3].to(DEVICE, non_blocking=True)
    host.numpy()[3:, 2:] = 9
    main.synchronize()


def part_of_a_lazy_copy(main: torch.Stream, side: torch.Stream) -> None:
    host = torch.arange(24.0).reshape(6, 4).pin_memory()
    copy = torch._lazy_clone(host)
    x = new(6, 2)
    x.copy_(copy[:, :2], non_blocking=True)
    main.synchronize()
    assert x[5].tolist() == [20.0, 21.0]


def memory_that_a_stream_writes_and_reads(
    main: torch.Stream, side: torch.Stream
) -> None:
    host, x = pinned(), new(6)
    for _ in range(3):
        host.copy_(x * 2, non_blocking=True)
        x = host.to(DEVICE, non_blocking=True)
    host.copy_(x, non_blocking=True)
    main.synchronize()
    assert host.tolist() == [8.0] * 6


def memory_that_ends_before_the_copy(main: torch.Stream, side: torch.Stream) -> None:
    for n in range(50):
        torch.full((100,), float(n)).pin_memory().to(DEVICE, non_blocking=True)
    main.synchronize()


def operators_of_the_host_in_turn(main: torch.Stream, side: torch.Stream) -> None:
    host = pinned()
    for n in range(5):
        host.to(DEVICE, non_blocking=True)
        main.synchronize()
        host.fill_(n)


@pytest.mark.parametrize(
    "program",
    [
        other_part_of_the_memory,
        part_of_a_lazy_copy,
        memory_that_a_stream_writes_and_reads,
        memory_that_ends_before_the_copy,
        operators_of_the_host_in_turn,
    ],
    ids=lambda program: program.__name__,
)
def test_program_without_an_unordered_host_write_is_not_reported(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        program(main, side)


def test_write_that_nothing_waits_for_is_printed_at_the_end_of_the_process(
    interpreter: Program,
) -> None:
    source = """
import torch
host = torch.arange(6.0).pin_memory()
array = host.numpy()
x = host.to("openreg", non_blocking=True)
array[2] = 9
"""
    result = interpreter(source, OPENREG_SANITIZER="1")
    assert "a write without an operator" in result.stderr
    assert "<string>:5" in result.stderr
