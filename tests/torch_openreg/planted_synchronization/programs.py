# SPDX-License-Identifier: BSD-3-Clause
"""Small programs with a synchronization bug each, and their corrected versions.

A program takes ``right``: whether it has the missing synchronization. It returns the
values that it computes, which are always the same if it is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import distributed

Program = Callable[[bool], list[float]]
DEVICE = "openreg:0"


@dataclass(frozen=True)
class Bug:
    """A program with a bug.

    Attributes:
        name: The function's name.
        program: The program.
        report: The public report of such a bug, if the program follows one.
    """

    name: str
    program: Program
    report: str


BUGS: list[Bug] = []


def bug(report: str = "") -> Callable[[Program], Program]:
    """Adds a program to the list."""

    def add(program: Program) -> Program:
        BUGS.append(Bug(program.__name__, program, report))
        return program

    return add


def main_stream() -> torch.Stream:
    """The current stream."""
    return torch.accelerator.current_stream()


def full(value: float, size: int = 8) -> torch.Tensor:
    """A tensor on the device."""
    return torch.full((size,), value, dtype=torch.float32, device=DEVICE)


def pinned(value: float, size: int = 8) -> torch.Tensor:
    """A tensor in pinned memory."""
    return torch.full((size,), value, dtype=torch.float32, pin_memory=True)


# ---- host and device ---------------------------------------------------------


@bug("pytorch/pytorch#86264")
def host_reads_before_the_copy(right: bool) -> list[float]:
    host = pinned(0)
    host.copy_(full(3) * 2, non_blocking=True)
    if right:
        torch.accelerator.synchronize()
    return [host.sum().item()]


@bug("pytorch/pytorch#127612")
def host_writes_the_source_of_a_copy(right: bool) -> list[float]:
    host = pinned(1)
    x = full(0)
    x.copy_(host, non_blocking=True)
    if right:
        main_stream().synchronize()
    host.fill_(-1)
    return x.tolist()


@bug()
def host_waits_for_the_wrong_stream(right: bool) -> list[float]:
    side, host = torch.Stream(DEVICE), pinned(0)
    x = full(4)
    side.wait_stream(main_stream())
    with side:
        host.copy_(x, non_blocking=True)
    (side if right else main_stream()).synchronize()
    value = host.sum().item()
    side.synchronize()  # so that `x` outlives the copy
    return [value]


@bug()
def host_reads_an_array_before_the_copy(right: bool) -> list[float]:
    host = pinned(0)
    array = host.numpy()
    done = torch.Event(DEVICE)
    if not right:
        done.record()
    host.copy_(full(5), non_blocking=True)
    if right:
        done.record()
    done.synchronize()
    return [float(array.sum())]


@bug()
def staging_buffer_is_reused(right: bool) -> list[float]:
    staging = pinned(0)
    batches = []
    for value in (1.0, 2.0, 3.0):
        staging.fill_(value)
        batches.append(staging.to(DEVICE, non_blocking=True))
        if right:
            main_stream().synchronize()
    return [batch.sum().item() for batch in batches]


# ---- two streams -------------------------------------------------------------


@bug("ROCm/pytorch#3194")
def consumer_reads_before_the_transfer(right: bool) -> list[float]:
    transfer, host = torch.Stream(DEVICE), pinned(7)
    x = full(0)
    transfer.wait_stream(main_stream())
    with transfer:
        x.copy_(host, non_blocking=True)
    if right:
        main_stream().wait_stream(transfer)
    total = (x + 1).sum().item()
    transfer.synchronize()
    return [total]


@bug("sgl-project/sglang#20611")
def write_back_starts_before_the_forward_pass(right: bool) -> list[float]:
    write, host = torch.Stream(DEVICE), pinned(0)
    cache = full(0)
    main_stream().synchronize()
    cache += 6
    if right:
        write.wait_stream(main_stream())
    with write:
        host.copy_(cache, non_blocking=True)
    write.synchronize()
    value = host.sum().item()
    main_stream().synchronize()
    return [value]


@bug("sgl-project/sglang#26380")
def scheduler_overwrites_indices_of_the_forward_pass(right: bool) -> list[float]:
    forward, table = torch.Stream(DEVICE), torch.arange(8.0, device=DEVICE)
    indices = torch.zeros(4, dtype=torch.int64, device=DEVICE)
    forward.wait_stream(main_stream())
    with forward:
        first = table.index_select(0, indices)
    if right:
        main_stream().wait_stream(forward)
    indices.fill_(5)
    main_stream().synchronize()
    forward.synchronize()
    return first.tolist()


@bug("BVLC/caffe#2998")
def prefetched_buffer_returns_to_the_queue_too_early(right: bool) -> list[float]:
    prefetch, slot, consumer = torch.Stream(DEVICE), full(0), main_stream()
    consumer.synchronize()
    tops = []
    for value in (1.0, 2.0, 3.0):
        with prefetch:
            if right:
                prefetch.wait_stream(consumer)  # the slot is free
            slot.fill_(value)
        consumer.wait_stream(prefetch)
        tops.append(slot.clone())
    return [top.sum().item() for top in tops]


@bug("btxchain/btx#97")
def weight_slot_is_overwritten_during_its_use(right: bool) -> list[float]:
    load, slots = torch.Stream(DEVICE), [full(0), full(0)]
    used = [torch.Event(DEVICE), torch.Event(DEVICE)]
    main_stream().synchronize()
    x, results = full(1), []
    for layer in range(4):
        slot = layer % 2
        with load:
            if right and layer >= 2:
                load.wait_event(used[slot])
            slots[slot].fill_(layer + 1.0)
        main_stream().wait_stream(load)
        results.append(x * slots[slot])
        used[slot].record()
    return [result.sum().item() for result in results]


@bug()
def double_buffer_waits_for_the_other_slot(right: bool) -> list[float]:
    load, slots = torch.Stream(DEVICE), [full(0), full(0)]
    used = [torch.Event(DEVICE), torch.Event(DEVICE)]
    main_stream().synchronize()
    results = []
    for batch in range(5):
        slot = batch % 2
        with load:
            if batch >= 2:
                # Waits for the use before the last one.
                load.wait_event(used[slot])
            slots[slot].fill_(batch + 1.0)
        main_stream().wait_stream(load)
        if not right:
            used[slot].record()
        results.append(slots[slot] * 10)
        if right:
            used[slot].record()
    return [result.sum().item() for result in results]


@bug()
def result_of_another_stream_is_not_awaited(right: bool) -> list[float]:
    side, x, y = torch.Stream(DEVICE), full(2), full(0)
    side.wait_stream(main_stream())
    with side:
        torch.mul(x, 3, out=y)
    if right:
        main_stream().wait_stream(side)
    total = y.sum().item()
    side.synchronize()
    return [total]


@bug()
def event_is_recorded_too_early(right: bool) -> list[float]:
    side, x, ready = torch.Stream(DEVICE), full(0), torch.Event(DEVICE)
    side.wait_stream(main_stream())
    with side:
        if not right:
            ready.record()
        x.fill_(4)
        if right:
            ready.record()
    main_stream().wait_event(ready)
    total = x.sum().item()
    side.synchronize()
    return [total]


@bug()
def event_is_recorded_on_the_wrong_stream(right: bool) -> list[float]:
    side, x, ready = torch.Stream(DEVICE), full(0), torch.Event(DEVICE)
    side.wait_stream(main_stream())
    with side:
        x.fill_(4)
    ready.record(side if right else main_stream())
    main_stream().wait_event(ready)
    total = x.sum().item()
    side.synchronize()
    return [total]


@bug()
def wait_comes_before_the_work(right: bool) -> list[float]:
    side, x = torch.Stream(DEVICE), full(1)
    side.wait_stream(main_stream())
    if not right:
        main_stream().wait_stream(side)
    with side:
        x.mul_(8)
    if right:
        main_stream().wait_stream(side)
    total = x.sum().item()
    side.synchronize()
    return [total]


@bug()
def tensor_changes_while_a_copy_reads_it(right: bool) -> list[float]:
    side, x, host = torch.Stream(DEVICE), full(9), pinned(0)
    side.wait_stream(main_stream())
    with side:
        host.copy_(x, non_blocking=True)
    if right:
        main_stream().wait_stream(side)
    x.zero_()
    main_stream().synchronize()
    side.synchronize()
    return host.tolist()


@bug()
def two_streams_update_one_tensor(right: bool) -> list[float]:
    side, x = torch.Stream(DEVICE), full(1)
    side.wait_stream(main_stream())
    with side:
        x.add_(1)
    if right:
        main_stream().wait_stream(side)
    x.mul_(10)
    main_stream().synchronize()
    side.synchronize()
    return x.tolist()


@bug()
def optimizer_steps_before_the_backward_pass(right: bool) -> list[float]:
    side = torch.Stream(DEVICE)
    weight, gradient = full(1), full(0)
    side.wait_stream(main_stream())
    with side:
        gradient.copy_(full(2) * 3)
    if right:
        main_stream().wait_stream(side)
    weight.sub_(gradient, alpha=0.5)
    main_stream().synchronize()
    side.synchronize()
    return weight.tolist()


# ---- memory ------------------------------------------------------------------


@bug("meta-pytorch/torchrec#4231")
def source_is_freed_without_record_stream(right: bool) -> list[float]:
    torch.accelerator.empty_cache()
    side, host = torch.Stream(DEVICE), pinned(0, 1024)
    x = full(5, 1024)
    side.wait_stream(main_stream())
    with side:
        host.copy_(x, non_blocking=True)
    if right:
        x.record_stream(side)
    del x
    y = full(-1, 1024)  # reuses the memory
    main_stream().synchronize()
    side.synchronize()
    return [host.sum().item(), y.sum().item()]


@bug()
def view_is_used_after_its_memory_is_free(right: bool) -> list[float]:
    torch.accelerator.empty_cache()
    side = torch.Stream(DEVICE)
    x = full(5, 1024)
    view = x[512:]
    del x
    side.wait_stream(main_stream())
    with side:
        doubled = view * 2
    if right:
        view.record_stream(side)
    del view
    y = full(-1, 1024)
    main_stream().synchronize()
    side.synchronize()
    return [doubled.sum().item(), y.sum().item()]


@bug()
def batches_of_a_side_stream_lack_record_stream(right: bool) -> list[float]:
    torch.accelerator.empty_cache()
    side, total = torch.Stream(DEVICE), full(0, 1024)
    batches = [full(value, 1024) for value in (1.0, 2.0, 3.0, 4.0)]
    side.wait_stream(main_stream())
    for batch in batches:
        with side:
            x = batch * batch
        main_stream().wait_stream(side)
        if right:
            x.record_stream(main_stream())
        total += x
        del x
    side.synchronize()
    return [total.sum().item()]


# ---- devices, graphs and collectives ------------------------------------------


@bug()
def copy_between_devices_is_not_awaited(right: bool) -> list[float]:
    other = torch.device("openreg:1")
    reader, target = torch.Stream(other), torch.zeros(8, device=other)
    torch.accelerator.synchronize(1)
    target.copy_(full(3), non_blocking=True)
    if right:
        reader.wait_stream(torch.accelerator.current_stream(other))
    with reader:
        total = (target + 1).sum().item()
    torch.accelerator.synchronize(0)
    torch.accelerator.synchronize(1)
    return [total]


@bug()
def input_of_a_graph_changes_during_its_replay(right: bool) -> list[float]:
    side, graph, x = torch.Stream(DEVICE), torch.accelerator.Graph(), full(1)
    with torch.Stream(DEVICE), graph:
        y = x * 2
    torch.accelerator.synchronize()
    with side:
        graph.replay()
    if right:
        main_stream().wait_stream(side)
    x.fill_(50)
    main_stream().synchronize()
    side.synchronize()
    return y.tolist()


@bug()
def collective_is_not_awaited(right: bool) -> list[float]:
    if not distributed.is_initialized():
        distributed.init_process_group(
            "occl", rank=0, world_size=1, store=distributed.HashStore()
        )
    x, gathered = full(6), [full(0)]
    work = distributed.all_gather(gathered, x, async_op=True)
    if right:
        work.wait()
    total = gathered[0].sum().item()
    work.wait()
    torch.accelerator.synchronize()
    return [total]
