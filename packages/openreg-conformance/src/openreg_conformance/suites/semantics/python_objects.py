# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as objects of Python: numbers, containers, text, keys, constructors."""

import operator
import random
import weakref

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack, to_dlpack

from openreg_conformance.checks.observing import Host, Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def numbers(device: str) -> torch.Tensor:
    return torch.arange(4.0, device=device)


@program
def tensor_of_one_element_is_a_number(device):
    x = torch.tensor([2], device=device)
    return [
        int(x),
        float(x),
        bool(x),
        complex(x),
        operator.index(x),
        [10, 20, 30][x],
        list(range(5))[: torch.tensor(3, device=device)],
        x.item(),
        round(float(torch.tensor(2.5, device=device))),
        f"{torch.tensor(1.25, device=device):.1f}",
    ]


@program
def tensor_of_many_elements_is_no_number(device):
    x = numbers(device)
    return [
        refusal(lambda: bool(x), "Boolean value of Tensor with more than one value"),
        refusal(lambda: float(x), "only one element tensors can be converted"),
        refusal(lambda: x.item(), "a Tensor with 4 elements cannot be converted"),
        refusal(lambda: operator.index(x), "only integer tensors of a single element"),
        refusal(lambda: len(x.sum()), "len() of a 0-d tensor"),
        refusal(lambda: list(x.sum()), "iteration over a 0-d tensor"),
        refusal(lambda: bool(x[:0]), "Boolean value of Tensor with no values"),
    ]


@program
def tensor_is_a_sequence(device):
    x = numbers(device).view(2, 2)
    first, second = x
    first.add_(1)
    return x, first, second, len(x), 3.0 in x, 9.0 in x, list(reversed(x)), x.tolist()


@program
def tensor_is_a_key_by_its_identity(device):
    x = numbers(device)
    y = x.view_as(x)
    table = {x: "x", y: "y"}
    return table[x], table[y], len({x, x, y}), hash(x) == id(x)


@program
def python_object_outlives_its_references(device):
    x = numbers(device)
    x.note = "kept"
    holder = torch.nn.ParameterList()
    holder.x = x
    identity = id(x)
    del x
    base = numbers(device).requires_grad_() * 2
    base.note = "kept by the graph"
    out = base.exp()
    del base
    return holder.x.note, id(holder.x) == identity, type(out.grad_fn).__name__


@program
def weak_reference_dies_with_its_tensor(device):
    x = numbers(device)
    reference = weakref.ref(x)
    alive = reference() is x
    del x
    return alive, reference() is None


@program
def text_of_tensors_agrees(device):
    x = numbers(device)
    kinds = [
        x,
        x.view(2, 2) / 3,
        x.int(),
        x > 1,
        x * 1e9,
        torch.full((2,), 1 + 2j, device=device),
        x.requires_grad_(),
        x * 2,
        x[:0],
        x.sum().detach(),
        torch.zeros(1001, device=device),
        torch.tensor([float("nan"), float("inf"), 1.0], device=device),
        x.detach().half(),
    ]
    return [repr(each) for each in kinds], str(x.detach()[1])


@program
def constructors_copy_what_they_are_given(device):
    x = numbers(device)
    made = [
        torch.tensor(x),
        torch.tensor([x[0], x[1]], device=device),
        torch.as_tensor(x),
        torch.asarray(x),
        torch.asarray(x, copy=True),
        x.new_tensor(x),
        x.new_tensor([1, 2]),
        x.new_full((2,), 3),
        x.new_empty(0),
        torch.stack(list(x)),
        torch.tensor([[1, 2.5]], device=device),
        torch.tensor(True, device=device),
        torch.scalar_tensor(2, device=device),
        torch.clone(x),
        x.type(torch.float64),
        x.expand_as(x),
    ]
    x.add_(1)
    return x, made


@program
def arrays_become_tensors(device):
    array = np.arange(4, dtype=np.float32)
    made = (
        torch.tensor(array, device=device),
        torch.as_tensor(array).to(device, copy=True),
    )
    array[0] = 9
    scalars = [torch.tensor(np.float64(1.5), device=device)]
    x = numbers(device)
    scalars += [x * np.float32(2), x + np.int64(3), x * np.float64(0.1)]
    return made, scalars, x.cpu().numpy().tolist()


@program
def numbers_of_the_host_mix_with_tensors(device):
    x = numbers(device)
    scalar = torch.tensor(2.0, dtype=torch.float64)
    return [
        x * scalar,
        scalar * x,
        x.int() * scalar,
        x.int() + torch.tensor(2),
        torch.where(x > 1, x, scalar),
        torch.minimum(x, scalar),
        torch.lerp(x, x + 1, scalar.float()),
        x.add(x, alpha=scalar.item()),
        x.div(scalar, rounding_mode="floor"),
        x[torch.tensor(1)],
        x[torch.tensor([0, 2])],
        x.masked_fill(x > 1, scalar),
        torch.full((2,), scalar.item(), device=device),
        x.half() * scalar,
        2 / x.add(1),
        x.pow(scalar),
        2**x,
    ]


@program
def reflected_and_in_place_operators_agree(device):
    x = numbers(device) + 1
    y = x
    results = [1 - x, 6 // x, 7 % x, 2.5 * x, -x, +x, abs(-x), ~(x > 2), x @ x, x < 2]
    y -= 1
    y *= 3
    y /= 2
    y //= 1
    y %= 4
    y **= 2
    return results, x, x is y


@program
def in_place_operator_of_a_smaller_dtype_is_refused(device):
    x = torch.arange(3, device=device)

    def divide():
        x.div_(2)

    return [
        refusal(divide, "can't be cast to the desired output type"),
        refusal(lambda: x.add_(0.5), "can't be cast to the desired output type"),
        refusal(lambda: x.add_(numbers(device)), "must match the size of tensor b"),
        refusal(lambda: x[5], "index 5 is out of bounds"),
        refusal(lambda: x["a"], "invalid data type"),
    ], x


@program
def dlpack_shares_memory(device):
    x = numbers(device)
    # PyTorch's Tensor.__dlpack_device__ does not know the device, so by a capsule.
    y = from_dlpack(to_dlpack(x))
    y.add_(1)
    return x, y.tolist(), y.data_ptr() == x.data_ptr()


@program
def arrays_of_tensors_that_require_grad_are_refused(device):
    x = numbers(device).requires_grad_()
    return [
        refusal(lambda: x.numpy(), "Can't call numpy() on Tensor that requires grad")
        if device == "cpu"
        else refusal(lambda: x.cpu().numpy(), "Can't call numpy() on Tensor that"),
        x.numpy(force=True).tolist(),
        x.tolist(),
    ]


@program
def shuffled_list_of_rows_agrees(device):
    x = numbers(device).view(4, 1).clone()
    rows = list(x)
    random.Random(0).shuffle(rows)
    return torch.cat(rows), sorted(x.flatten().tolist(), reverse=True), max(x), sum(x)


MEMORY = {
    "empty": lambda d: torch.empty(3, device=d),
    "int": lambda d: torch.empty(3, dtype=torch.int32, device=d),
    "like": lambda d: torch.empty_like(torch.ones(2, 2, device=d)),
    "strided": lambda d: torch.empty_strided((2, 2), (1, 2), device=d),
    "new": lambda d: torch.ones(1, device=d).new_empty(2),
    "resize_": lambda d: torch.ones(1, device=d).resize_(3),
    "permuted": lambda d: torch.empty_permuted((2, 3), (1, 0), device=d),
    "skip_init": lambda d: (
        torch.nn.utils.skip_init(torch.nn.Linear, 2, 1, device=d).weight
    ),
}


@program
@each("make", MEMORY)
def deterministic_mode_fills_memory(device, make):
    torch.use_deterministic_algorithms(True)
    try:
        return MEMORY[make](device)
    finally:
        torch.use_deterministic_algorithms(False)


@program
def default_dtype_decides_what_is_made(device):
    torch.set_default_dtype(torch.float64)
    try:
        made = [torch.ones(1, device=device), torch.tensor([1.0], device=device)]
        return made, torch.arange(2, device=device) / 2, torch.rand(1, device=device)
    finally:
        torch.set_default_dtype(torch.float32)


@program
def graph_crosses_between_host_and_device(device):
    x = torch.arange(4.0, requires_grad=True)
    there = x.to(device, copy=True) * 2
    back = there.to("cpu", copy=True).exp() + x
    again = back.to(device, copy=True).double()
    again.sum().backward()
    return again.detach(), Host(x.grad)


@program
def copy_into_a_part_of_a_device_tensor_is_differentiable(device):
    x = torch.arange(2.0, requires_grad=True)
    target = torch.zeros(4, device=device)
    target[1:3] = x.to(device, copy=True)
    target[3:].copy_(x[:1])
    (target * torch.arange(4.0, device=device)).sum().backward()
    return target.detach(), Host(x.grad)


@program
def packed_sequence_moves(device):
    rows = [torch.ones(3, 2), torch.zeros(1, 2)]
    packed = torch.nn.utils.rnn.pack_sequence(rows).to(device)
    padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed)
    return packed.data, Host(packed.batch_sizes), padded, Host(lengths)


@program
def attributes_of_devices_agree(device):
    x = numbers(device)
    return [
        x.is_cpu == (device == "cpu"),
        x.is_meta,
        x.is_cuda == (x.device.type == "cuda"),
        x.is_sparse,
        x.is_pinned(),
        x.is_contiguous(),
        x.is_floating_point(),
        x.device,
        x.type(),
        torch.is_tensor(x),
        x.layout,
        x.nbytes,
        x.element_size(),
    ]
