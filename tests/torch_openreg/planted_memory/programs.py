# SPDX-License-Identifier: BSD-3-Clause
"""Small programs, each with a bug that its own check does not find on the device.

Each program is a function that raises an exception if its check fails. The first line
of its documentation describes the bug, ``Modes`` lists the settings that find it, and
``From`` names the public report of the same bug in a library.

    python programs.py   prints the programs that fail under the present settings
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
from collections.abc import Callable

import torch
from torch import nn

D = "openreg"
Program = Callable[[], None]


def use_before(*shape: int, dtype: torch.dtype = torch.float32) -> None:
    """Leaves zeros in the memory of the next tensor of this shape."""
    torch.zeros(shape, dtype=dtype, device=D)


def check(value: torch.Tensor) -> None:
    """The check of most programs: the result is a number."""
    assert math.isfinite(value.sum().item())


def sums_begin_with_unwritten_memory() -> None:
    """An accumulator that is allocated by empty. Modes: nan, sanitizer."""
    use_before(3)
    total = torch.empty(3, device=D)
    for _ in range(4):
        total += torch.ones(3, device=D)
    check(total)


def attention_reads_free_rows_of_the_cache() -> None:
    """Attention over the whole cache, not its written part. Modes: nan, sanitizer."""
    use_before(1, 2, 8, 4)
    keys = torch.empty(1, 2, 8, 4, device=D)
    keys[:, :, :5] = 1
    query = torch.ones(1, 2, 1, 4, device=D)
    check((query @ keys.transpose(2, 3)).softmax(-1) @ keys)


def padding_of_a_batch_is_not_written() -> None:
    """Rows of different lengths in one batch. Modes: nan, sanitizer."""
    use_before(2, 6)
    batch = torch.empty(2, 6, device=D)
    for row, length in enumerate((6, 4)):
        batch[row, :length] = torch.ones(length, device=D)
    check(batch.mean(1))


def order_is_only_partly_written() -> None:
    """An index of rows with one row missing. Modes: nan, sanitizer."""
    use_before(4, dtype=torch.int64)
    order = torch.empty(4, dtype=torch.int64, device=D)
    order[:3] = torch.arange(3, device=D)
    check(torch.ones(4, 2, device=D)[order])


def rows_behind_the_limit_have_no_gradient() -> None:
    """A backward pass that leaves truncated rows. Modes: nan, sanitizer.

    From: pytorch/FBGEMM#5754
    """

    class Truncate(torch.autograd.Function):
        @staticmethod
        def forward(_: object, x: torch.Tensor) -> torch.Tensor:
            return x[:3].clone()

        @staticmethod
        def backward(_: object, gradient: torch.Tensor) -> torch.Tensor:
            use_before(5, 2)
            result = torch.empty(5, 2, device=D)
            result[:3] = gradient
            return result

    x = torch.ones(5, 2, device=D, requires_grad=True)
    y: torch.Tensor = Truncate.apply(x * 2)  # type: ignore[no-untyped-call]
    y.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    check(x.grad)


def running_mean_begins_with_unwritten_memory() -> None:
    """A moving average that is allocated by empty. Modes: nan, sanitizer.

    From: lucidrains/stylegan2-pytorch#86
    """
    use_before(1)
    mean = torch.empty(1, device=D)
    for length in (3.0, 4.0):
        mean.lerp_(torch.full((1,), length, device=D), 0.01)
    check(mean)


def cache_blocks_are_read_before_they_are_written() -> None:
    """A table of blocks names a block that nobody filled. Modes: nan, sanitizer.

    From: vllm-project/vllm#940
    """
    use_before(4, 2, 4)
    blocks = torch.empty(4, 2, 4, device=D)
    table = [2, 0]
    blocks[0] = 1
    check(torch.stack([blocks[each] for each in table]).softmax(-1))


def output_of_idle_sequences_is_not_written() -> None:
    """An output buffer that is filled only for active rows. Modes: nan, sanitizer.

    From: vllm-project/vllm#19784
    """
    use_before(3, 4)
    output = torch.empty(3, 4, device=D)
    active = 0  # as in a run that only measures memory
    output[:active] = 1
    check(nn.functional.layer_norm(output, (4,)))


def bias_of_a_materialized_module_is_not_initialized() -> None:
    """to_empty() without an initialization of all parameters. Modes: nan, sanitizer."""
    module = nn.Linear(4, 3, device="meta")
    use_before(3)
    use_before(3, 4)
    module.to_empty(device=D)
    nn.init.ones_(module.weight)
    check(module(torch.ones(2, 4, device=D)))


def grown_buffer_is_read_as_a_whole() -> None:
    """resize_() keeps the old elements, and adds others. Modes: nan, sanitizer."""
    use_before(600)
    x = torch.ones(300, device=D)
    x.resize_(600)
    check(x.sqrt())


def mask_has_unwritten_elements() -> None:
    """A mask whose last elements nobody sets. Modes: nan, sanitizer."""
    use_before(6, dtype=torch.bool)
    mask = torch.empty(6, dtype=torch.bool, device=D)
    mask[:4] = True
    assert mask.sum().item() == 4


def mask_does_not_hide_a_nan() -> None:
    """Unwritten elements are multiplied by 0, not replaced. Modes: nan, sanitizer."""
    use_before(6)
    scores = torch.empty(6, device=D)
    scores[:4] = 1
    mask = torch.tensor([1, 1, 1, 1, 0, 0], device=D)
    check((scores * mask).sum())


def first_step_reads_the_other_buffer() -> None:
    """Double buffering that is off by one. Modes: nan, sanitizer."""
    use_before(2, 4)
    buffers = torch.empty(2, 4, device=D)
    for step in range(3):
        buffers[step % 2] = step
        check(buffers[(step + 1) % 2].exp())


def staging_buffer_is_not_filled() -> None:
    """A pinned buffer that is longer than the last batch. Modes: nan."""
    torch.zeros(4, pin_memory=True)
    staging = torch.empty(4, pin_memory=True)
    staging[:3] = 1
    check(staging.to(D, non_blocking=True).mean())


def freed_weights_are_read_without_a_gather() -> None:
    """A storage is released and allocated again, not filled. Modes: nan."""
    weight = torch.zeros(1000, device=D)
    storage = weight.untyped_storage()
    size = storage.nbytes()
    storage.resize_(0)
    storage.resize_(size)
    check(weight * 2)


def graph_is_replayed_before_its_input_is_copied() -> None:
    """The first replay reads the empty static input. Modes: nan, sanitizer."""
    use_before(4)
    x = torch.empty(4, device=D)
    graph = torch.accelerator.Graph()
    with torch.Stream(D), graph:
        y = x * 2
    graph.replay()
    torch.accelerator.synchronize()
    check(y)


def histogram_is_added_to_unwritten_memory() -> None:
    """scatter_add_() into the result of empty. Modes: nan, sanitizer."""
    use_before(4)
    counts = torch.empty(4, device=D)
    counts.scatter_add_(0, torch.tensor([0, 1, 1], device=D), torch.ones(3, device=D))
    check(counts)


def every_second_column_is_not_written() -> None:
    """Two halves are interleaved, and one is missing. Modes: nan, sanitizer."""
    use_before(3, 8)
    x = torch.empty(3, 8, device=D)
    x[:, ::2] = 1
    check(x.square())


def momentum_begins_with_unwritten_memory() -> None:
    """Optimizer state that is allocated by empty_like. Modes: nan, sanitizer."""
    weights = [torch.ones(4, device=D), torch.ones(2, device=D)]
    for each in weights:
        use_before(*each.shape)
    momenta = [torch.empty_like(each) for each in weights]
    torch._foreach_mul_(momenta, 0.9)
    torch._foreach_add_(momenta, weights)
    for each in momenta:
        check(each)


def copy_of_unwritten_memory_is_read() -> None:
    """The elements were unwritten before they were copied. Modes: nan, sanitizer."""
    use_before(4)
    x = torch.empty(4, device=D)
    y = torch.cat([x, torch.ones(2, device=D)]).clone()
    check(y.relu())


def bfloat16_product_on_an_old_gpu() -> None:
    """bfloat16 where cuBLAS has no product of it. Modes: p100.

    From: pytorch/pytorch#57773
    """
    x = torch.ones(4, 4, dtype=torch.bfloat16, device=D)
    check(x @ x)


def bfloat16_is_chosen_without_a_question() -> None:
    """A library refuses bfloat16 below capability 8.0. Modes: t4, p100.

    From: vllm-project/vllm#1157
    """
    has_profile = torch.openreg.get_device_name() != "OpenReg simulated device"
    if has_profile and torch.openreg.get_device_capability() < (8, 0):
        raise ValueError("Bfloat16 is only supported from compute capability 8.0")


def float8_product_before_ada() -> None:
    """A float8 product on a GPU without float8 units. Modes: a100, t4, p100."""
    x = torch.ones(16, 16, device=D).to(torch.float8_e4m3fn)
    one = torch.ones((), device=D)
    check(torch._scaled_mm(x, x.t(), one, one, out_dtype=torch.float32))


def batch_does_not_fit_the_smaller_gpu() -> None:
    """A buffer for 16 GiB. Modes: t4."""
    torch.empty(15 << 30, dtype=torch.uint8, device=D)


PROGRAMS: list[Program] = [
    each
    for each in list(globals().values())
    if callable(each)
    and (getattr(each, "__doc__", None) or "").find("Modes:") > 0
    and each.__module__ == __name__
]


def modes_of(program: Program) -> set[str]:
    """Returns the modes that find the bug of a program."""
    words = (program.__doc__ or "").partition("Modes:")[2].partition(".")[0]
    return {each.strip() for each in words.split(",")}


def main() -> None:
    """Runs all programs, and prints the error of each one that fails."""
    fills_memory = os.environ.get("OPENREG_UNINITIALIZED") == "nan"
    found = {}
    for program in PROGRAMS:
        # It would write 15 GiB.
        if program is batch_does_not_fit_the_smaller_gpu and fills_memory:
            continue
        try:
            program()
        except Exception as error:
            found[program.__name__] = type(error).__name__
        gc.collect()
        torch.accelerator.synchronize()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
