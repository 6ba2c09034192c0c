# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer reports the first operator that reads elements nobody has written."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UninitializedReadError

from .programs import DEVICE, line_of, new

Output = Callable[..., str]
Program = Callable[[], object]
OTHER = "openreg:1"


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=DEVICE)


# ---- programs that read unwritten elements


def compute() -> None:
    empty(3) + 1


def update_in_place() -> None:
    empty(3).add_(1)


def read_partly_written_rows() -> None:
    x = empty(2, 5)
    x[0].zero_()
    x.sum()


def read_partly_written_columns() -> None:
    x = empty(4, 6).t()
    x[:3] = 1
    x.sum()


def read_a_copy() -> None:
    x = empty(3).clone()
    x[:2] = 1
    x.sum()


def read_a_copy_on_another_device() -> None:
    empty(3).to(OTHER).sum()


def read_a_part_of_a_joined_tensor() -> None:
    torch.cat([new(3), empty(3)]).sum()


def read_a_padded_tensor() -> None:
    nn.functional.pad(empty(3), (1, 1)).sum()


def read_new_elements_of_a_resized_tensor() -> None:
    x = new(3)
    x.resize_(6)
    x.sum()


def index_by_unwritten_elements() -> None:
    new(5)[empty(3, dtype=torch.int64)]


def read_selected_rows() -> None:
    nn.functional.embedding(new(1).long(), empty(3, 4)).sum()


def copy_to_the_host() -> None:
    empty(3).cpu()


def take_an_item() -> None:
    empty(3)[1].item()


def update_a_list_in_place() -> None:
    torch._foreach_add_([new(2), empty(2)], 1)


def read_after_a_partial_copy() -> None:
    x = empty(4)
    x[:3].copy_(torch.ones(3))
    x.mul(2)


def replay_without_an_input() -> None:
    x = empty(4)
    graph = torch.accelerator.Graph()
    with torch.Stream(DEVICE), graph:
        x * 2
    graph.replay()


def read_before_the_replay() -> None:
    x, y = new(4), empty(4)
    graph = torch.accelerator.Graph()
    with torch.Stream(DEVICE), graph:
        y.copy_(x)
    torch.accelerator.synchronize()
    y.sum()


def read_in_a_backward_pass() -> None:
    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(_: object, x: torch.Tensor) -> torch.Tensor:
            return x * 1

        @staticmethod
        def backward(_: object, gradient: torch.Tensor) -> torch.Tensor:
            return torch.empty_like(gradient) * 2

    x: torch.Tensor = Gradient.apply(new(3).requires_grad_())  # type: ignore[no-untyped-call]
    x.sum().backward()  # type: ignore[no-untyped-call]


REPORTED = [
    compute,
    update_in_place,
    read_partly_written_rows,
    read_partly_written_columns,
    read_a_copy,
    read_a_copy_on_another_device,
    read_a_part_of_a_joined_tensor,
    read_a_padded_tensor,
    read_new_elements_of_a_resized_tensor,
    index_by_unwritten_elements,
    read_selected_rows,
    copy_to_the_host,
    take_an_item,
    update_a_list_in_place,
    read_after_a_partial_copy,
    replay_without_an_input,
    read_before_the_replay,
    read_in_a_backward_pass,
]


@pytest.mark.parametrize("program", REPORTED, ids=lambda program: program.__name__)
def test_read_of_unwritten_elements_is_reported(program: Program) -> None:
    with pytest.raises(UninitializedReadError), sanitizer.enabled():
        program()


# ---- programs that do not


def write_all() -> None:
    x = empty(3)
    x.zero_()
    x.sum().item()


def write_all_in_parts() -> None:
    x = empty(4, 6).t()
    x[:3] = 1
    x[:3].sum()
    x[3:].fill_(2)
    x.sum()


def write_by_out() -> None:
    x = empty(3)
    torch.add(new(3), 1, out=x)
    x.sum()


def draw() -> None:
    empty(3).normal_().sum()


def copy_unwritten_elements() -> None:
    x = empty(3).detach().clone()
    x[:2] = 1
    x[:2].sum()


def copy_between_devices() -> None:
    x = empty(4).to(OTHER)
    x[:2] = 1
    x[:2].sum()


def copy_from_the_host() -> None:
    torch.empty(3).to(DEVICE).sum()


def read_only_the_padding() -> None:
    x = nn.functional.pad(empty(3), (1, 1))
    (x[0] + x[4]).item()
    x[1:4] = 0
    x.sum()


def read_the_written_part_of_a_joined_tensor() -> None:
    torch.cat([new(3), empty(3)])[:3].sum()


def read_the_kept_elements_of_a_resized_tensor() -> None:
    x = new(3)
    x.resize_(6)
    x[:3].sum()


def ignore_an_operand_by_a_zero_factor() -> None:
    torch.baddbmm(empty(2, 2, 2), new(2, 2, 2), new(2, 2, 2), beta=0).sum()


def put_elements() -> None:
    x = empty(3)
    x[torch.arange(3, device=DEVICE)] = 1.0
    x.sum()


def scatter_elements() -> None:
    empty(3).scatter(0, torch.arange(3, device=DEVICE), new(3)).sum()


def choose_other_elements() -> None:
    torch.where(torch.ones(3, dtype=torch.bool, device=DEVICE), new(3), empty(3)).sum()


def copy_a_list() -> None:
    x = [empty(3), empty(2)]
    torch._foreach_copy_(x, [new(3), new(2)])
    torch._foreach_add_(x, 1)


def write_channels_last() -> None:
    x = empty(2, 3, 4, 4).to(memory_format=torch.channels_last)
    x.copy_(torch.ones(2, 3, 4, 4))
    x.sum()


def initialize_a_copied_module() -> None:
    module = copy.deepcopy(nn.Linear(3, 3, device="meta").to_empty(device=DEVICE))
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    module(new(1, 3))


def write_the_input_before_the_replay() -> None:
    x = empty(4)
    graph = torch.accelerator.Graph()
    with torch.Stream(DEVICE), graph:
        y = x * 2
    x.copy_(torch.ones(4))
    graph.replay()
    y.sum().item()


def read_the_output_of_a_replay() -> None:
    x, y = new(4), empty(4)
    graph = torch.accelerator.Graph()
    with torch.Stream(DEVICE), graph:
        y.copy_(x)
    graph.replay()
    y.sum()


def step_with_new_momentum_buffers() -> None:
    weight = nn.Parameter(new(3))
    optimizer = torch.optim.SGD([weight], 0.1, momentum=0.9, fused=True)
    for _ in range(2):
        weight.sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def decode_with_a_cache() -> None:
    keys, values = empty(1, 2, 8, 4), empty(1, 2, 8, 4)
    for length in range(1, 9):
        keys[:, :, length - 1] = 1
        values[:, :, length - 1] = 2
        nn.functional.scaled_dot_product_attention(
            new(1, 2, 1, 4), keys[:, :, :length], values[:, :, :length]
        )


def use_a_lazy_module() -> None:
    module = nn.LazyLinear(3).to(DEVICE)
    module(new(2, 4)).sum().backward()


def reuse_freed_memory() -> None:
    x = empty(1000)
    del x
    (new(1000) + 1).sum()


NOT_REPORTED = [
    write_all,
    write_all_in_parts,
    write_by_out,
    draw,
    copy_unwritten_elements,
    copy_between_devices,
    copy_from_the_host,
    read_only_the_padding,
    read_the_written_part_of_a_joined_tensor,
    read_the_kept_elements_of_a_resized_tensor,
    ignore_an_operand_by_a_zero_factor,
    put_elements,
    scatter_elements,
    choose_other_elements,
    copy_a_list,
    write_channels_last,
    initialize_a_copied_module,
    write_the_input_before_the_replay,
    read_the_output_of_a_replay,
    step_with_new_momentum_buffers,
    decode_with_a_cache,
    use_a_lazy_module,
    reuse_freed_memory,
]


@pytest.mark.parametrize("program", NOT_REPORTED, ids=lambda program: program.__name__)
def test_program_that_writes_first_is_not_reported(program: Program) -> None:
    with sanitizer.enabled():
        program()


# ---- reports


def test_report_names_the_read_the_allocation_and_the_first_element() -> None:
    def program() -> torch.Tensor:
        x = torch.empty(4, 6, device=DEVICE)  # allocated
        x[:2] = 1
        x[2, :3] = 1
        return x.exp()  # read

    with pytest.raises(UninitializedReadError) as found, sanitizer.enabled():
        program()
    error = found.value
    assert error.current.operator.startswith("aten::exp(")
    assert error.current.arguments == ("self",)
    assert error.current.where == f"the default stream of {DEVICE}"
    assert error.current.line == line_of(program, "read")
    assert error.allocated == line_of(program, "allocated")
    assert "9 of its 24 elements were never written, the first at index" in str(error)


def test_report_of_a_copy_names_the_allocation_of_the_elements() -> None:
    def program() -> torch.Tensor:
        x = torch.empty(3, device=DEVICE)  # allocated
        y = x.clone()
        return y + 1

    with pytest.raises(UninitializedReadError) as found, sanitizer.enabled():
        program()
    assert found.value.allocated == line_of(program, "allocated")


def test_report_of_a_replay_names_the_captured_line() -> None:
    def program() -> None:
        x = torch.empty(4, device=DEVICE)  # allocated
        graph = torch.accelerator.Graph()
        with torch.Stream(DEVICE), graph:
            x * 2  # captured
        graph.replay()  # replayed

    with pytest.raises(UninitializedReadError) as found, sanitizer.enabled():
        program()
    error = found.value
    assert error.current.line == line_of(program, "replayed")
    assert error.current.captured == line_of(program, "captured")
    assert error.allocated == line_of(program, "allocated")


def test_operator_that_is_reported_is_not_called() -> None:
    with sanitizer.enabled():
        x, y = empty(3), new(3)
        with pytest.raises(UninitializedReadError):
            y.add_(x)
    assert y.tolist() == [1, 1, 1]


def test_element_counts_as_written_with_any_of_its_shapes() -> None:
    with sanitizer.enabled():
        x = empty(4, 6)
        for row in x.view(torch.int32).unbind():
            row.fill_(1)
        assert math.isfinite(x.view(2, 12).sum().item())


def test_setting_turns_the_reports_off(output: Output) -> None:
    source = """
import torch
try:
    torch.empty(3, device="openreg").add(1)
    print("not reported")
except torch.openreg.sanitizer.UninitializedReadError:
    print("reported")
"""
    assert output(source, OPENREG_SANITIZER="1") == "reported"
    assert (
        output(source, OPENREG_SANITIZER="1", OPENREG_SANITIZER_UNWRITTEN="0")
        == "not reported"
    )


COLLECTIVES = """
import os
import torch
import torch.distributed as dist
from torch.openreg import sanitizer

os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="0")
dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.arange(2.0, device="openreg")

def single(call):
    out = torch.empty(2, device="openreg")
    call(out, x)
    return out

def listed(call):
    out = torch.empty(2, device="openreg")
    call(x, [out])
    return out

def coalesced():
    out = torch.empty(2, device="openreg")
    with dist._coalescing_manager(device=x.device):
        dist.all_gather_into_tensor(out, x)
    return out

def race(call):
    side, given = torch.Stream("openreg"), torch.ones(2, device="openreg")
    side.wait_stream(torch.accelerator.current_stream())
    with side:
        given.fill_(3)
    try:
        call(torch.empty(2, device="openreg"), given)
    except sanitizer.UnsynchronizedAccessError:
        return "race"
    finally:
        torch.accelerator.synchronize()

with sanitizer.enabled():
    results = [single(dist.all_to_all_single), single(dist.all_gather_single)]
    results += [single(dist.reduce_scatter_single), listed(dist.gather), coalesced()]
    print([each.tolist() for each in results] == [[0.0, 1.0]] * 5)
    print(race(dist.all_to_all_single), race(lambda out, x: dist.gather(x, [out])))
    try:
        dist.all_reduce(torch.empty(2, device="openreg"))
    except sanitizer.UninitializedReadError:
        print("unwritten")
dist.destroy_process_group()
"""


def test_collective_writes_its_output_and_reads_its_input(output: Output) -> None:
    assert output(COLLECTIVES).splitlines() == ["True", "race race", "unwritten"]


def test_output_of_a_gather_of_parameters_is_written() -> None:
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives  # noqa: F401

    gather: Any = torch.ops.fsdp.all_gather_copy_in
    with sanitizer.enabled():
        x, whole = torch.ones(4, device=DEVICE), empty(4)
        _, whole = gather([x], whole, [4], 4, 0)
        assert (whole + 1).tolist() == [2.0] * 4
