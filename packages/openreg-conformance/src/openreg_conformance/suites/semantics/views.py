# SPDX-License-Identifier: BSD-3-Clause
"""Views and aliases: what shares memory, how it is changed, and what is refused."""

import torch

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


VIEWS = {
    "slice": lambda x: x[1:, ::2],
    "select": lambda x: x[0],
    "transpose": lambda x: x.mT,
    "permute": lambda x: x[None].permute(2, 0, 1),
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(2, 6),
    "reshape that copies": lambda x: x.mT.reshape(-1),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "ravel of a transpose": lambda x: x.mT.ravel(),
    "expand": lambda x: x[:, :1].expand(3, 4),
    "expand_as": lambda x: x[0].expand_as(x),
    "squeeze": lambda x: x[:, :1].squeeze(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "diagonal": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "split": lambda x: x.split([1, 3], 1),
    "chunk": lambda x: x.chunk(3, 1),
    "tensor_split": lambda x: x.tensor_split(2, 1),
    "unbind": lambda x: x.unbind(1),
    "hsplit": lambda x: x.hsplit(2),
    "movedim": lambda x: x.movedim(0, 1),
    "swapdims": lambda x: x.swapdims(0, 1),
    "detach": lambda x: x.detach(),
    "alias": lambda x: torch.ops.aten.alias(x),
    "view_as": lambda x: x.view_as(x),
    "view of a dtype": lambda x: x.view(torch.int32),
    "view of a smaller dtype": lambda x: x.view(torch.int16),
    "view of a larger dtype": lambda x: x.view(torch.float64),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(3, 2, 2)),
    "contiguous": lambda x: x.contiguous(),
    "contiguous of a transpose": lambda x: x.mT.contiguous(),
    "real": lambda x: x.real,
    "conj": lambda x: x.conj(),
    "resolve_conj": lambda x: x.resolve_conj(),
    "atleast_3d": lambda x: torch.atleast_3d(x),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[:1]),
    "to its own device": lambda x: x.to(x.device),
    "to its own dtype": lambda x: x.float(),
    "to with copy": lambda x: x.to(x.device, copy=True),
    "type_as": lambda x: x.type_as(x),
    "data": lambda x: x.data,
    "T": lambda x: x.T,
    "index with None and Ellipsis": lambda x: x[None, ..., 1],
    "index with a tensor": lambda x: x[torch.tensor([0, 2]).to(x.device)],
    "squeeze of views": lambda x: x[1:][:, 1:].mT[0],
    "slice_scatter": lambda x: x.slice_scatter(x[:1], 0, 0, 1),
    "dropout of nothing": lambda x: torch.nn.functional.dropout(x, 0.0),
    "dropout in evaluation": lambda x: torch.nn.functional.dropout(x, 0.5, False),
    "cat of one": lambda x: torch.cat([x]),
    "flip": lambda x: x.flip(0),
    "identity of einsum": lambda x: torch.einsum("ij->ji", x),
}


def matrix(device: str) -> torch.Tensor:
    return torch.arange(12.0, device=device).view(3, 4).clone()


@program
@each("view", VIEWS)
def view_shares_what_it_shares_on_the_cpu(device, view):
    x = matrix(device)
    made = VIEWS[view](x)
    x.add_(1)
    based = [
        None if each._base is None else (each._base is x, each._base is x._base)
        for each in (made if isinstance(made, list | tuple) else [made])
    ]
    return x, made, based


@program
@each(
    "view",
    [
        name
        for name in VIEWS
        if name not in ("expand", "expand_as", "unfold", "broadcast_tensors")
    ],
)
def change_of_a_view_is_seen_where_it_is_on_the_cpu(device, view):
    x = matrix(device)
    made = VIEWS[view](x)
    first = made[0] if isinstance(made, list | tuple) else made
    first.mul_(2)
    first[(-1,) * first.dim()] = 7
    return x, made


@program
@each("view", [v for v in VIEWS if "dtype" not in v])
def view_is_differentiable_as_on_the_cpu(device, view):
    x = matrix(device).requires_grad_()
    made = VIEWS[view](x * 1)
    first = made[-1] if isinstance(made, list | tuple) else made
    if first.requires_grad:
        first.abs().square().sum().backward()
    return first.detach(), type(first.grad_fn).__name__, x.grad


@program
def complex_views_share_their_parts(device):
    z = torch.complex(matrix(device), matrix(device) + 1)
    real, imag, conj = z.real, z.imag, z.conj()
    negative = conj.imag
    real.mul_(2)
    negative.add_(1)
    conj[0] = 1j
    return z, real, imag, conj, negative, torch.view_as_real(z)


@program
def conjugate_and_negative_views_are_resolved(device):
    z = torch.complex(matrix(device), matrix(device) + 1)
    negative = z.conj().imag
    return (
        z.conj().resolve_conj(),
        negative.resolve_neg(),
        z.conj() @ z.mT,
        z.mH.contiguous(),
        negative + negative,
        z.conj().conj(),
        z.conj().clone(),
        negative.numpy(force=True).tolist(),
    )


@program
def conjugate_view_goes_to_the_host_and_back(device):
    z = torch.complex(matrix("cpu"), matrix("cpu") + 1)
    there = z.conj().to(device, copy=True)
    back = there.conj().cpu()
    target = torch.zeros_like(z).to(device)
    target.conj().copy_(z.to(device))
    return there, torch.equal(back.resolve_conj(), z), target


@program
def view_as_real_refuses_conjugates(device):
    z = torch.complex(matrix(device), matrix(device))
    return [
        refusal(lambda: torch.view_as_real(z.conj()), "view_as_real doesn't work on"),
        refusal(lambda: z.conj().view(torch.float32), "conj"),
        refusal(lambda: matrix(device).imag, "imag is not implemented"),
    ]


@program
def writes_to_overlapping_memory_are_refused(device):
    x = torch.zeros(1, device=device)
    y = torch.arange(4.0, device=device)
    wide = x.expand(3)
    return [
        refusal(lambda: wide.add_(1), "single memory location"),
        refusal(lambda: wide.copy_(y[:3]), "single memory location"),
        refusal(lambda: y[1:].add_(y[:3]), "single memory location"),
        refusal(lambda: torch.mul(y[:3], 2, out=y[1:]), "single memory location"),
        refusal(lambda: torch.cat([y[:2], y[1:3]], out=y), "memory location"),
        refusal(
            lambda: y[:3].index_copy_(0, torch.tensor([0]).to(device), y[:1]), "memory"
        ),
    ], x


@program
def as_strided_reaches_beyond_its_view_but_not_its_storage(device):
    x = torch.arange(6.0, device=device)
    y = x[2:4].as_strided((3, 2), (2, 1), 0)
    y[0, 0] = 9
    return (
        x,
        y,
        [
            refusal(lambda: x.as_strided((4, 2), (2, 1)), "out of bounds for storage"),
            refusal(lambda: x.as_strided((2,), (-1,)), "Negative strides"),
            refusal(lambda: x.as_strided((2,), (1, 1)), "mismatch"),
        ],
    )


@program
def view_that_needs_a_copy_is_refused(device):
    x = matrix(device)
    return [
        refusal(lambda: x.mT.view(-1), "view size is not compatible"),
        refusal(lambda: x.view(5, 2), "is invalid for input of size 12"),
        refusal(lambda: x[:, 1:].view(torch.float64), "must be divisible by"),
        refusal(lambda: x[:, :3].contiguous().view(torch.double), "divisible"),
        refusal(lambda: x.unfold(1, 5, 1), "maximum size for tensor"),
    ]


@program
def set_makes_tensors_share_a_storage(device):
    x, y = torch.arange(4.0, device=device), torch.zeros(2, device=device)
    identity = id(y)
    y.set_(x.untyped_storage(), 1, (2,), (2,))
    y.mul_(10)
    z = torch.empty(0, device=device).set_(x)
    return x, y, z, id(y) == identity


@program
def set_refuses_what_does_not_fit(device):
    x = torch.arange(4.0, device=device)
    return [
        refusal(
            lambda: x.set_(torch.ones(2, device=device, dtype=torch.int64)),
            "Could not set",
        ),
        refusal(lambda: x.set_(x.untyped_storage(), -1, (2,), (1,)), "offset"),
    ]


@program
def tensor_made_over_a_storage_shares_it(device):
    x = torch.arange(4.0, device=device)
    y = torch.tensor([], device=device).set_(x.untyped_storage())
    z = torch.empty(0, dtype=torch.int32, device=device).set_(
        x.untyped_storage(), 0, (2, 2)
    )
    y[0] = 1.0
    return x, y, z


@program
def resized_tensor_keeps_its_first_elements(device):
    x = torch.arange(4.0, device=device)
    view = x[1:3]
    x.resize_(2, 3)
    x[1] = 0
    y = torch.arange(6.0, device=device).resize_(2)
    return x[:1], x[1], view, y, y.untyped_storage().nbytes()


@program
def resize_of_what_requires_grad_is_refused(device):
    x = torch.ones(2, device=device, requires_grad=True)
    return refusal(lambda: x.resize_(3), "cannot resize variables that require grad")


@program
def storage_may_be_resized_copied_and_filled(device):
    x = torch.arange(4.0, device=device)
    storage = x.untyped_storage()
    storage.resize_(0)
    empty = storage.nbytes()
    storage.resize_(16)
    storage.copy_(torch.ones(4, device=device).untyped_storage())
    ones = x.clone()
    storage.fill_(0)
    return empty, ones, x, len(storage), storage.tolist()


@program
def copy_of_overlapping_views_agrees(device):
    x = torch.arange(6.0, device=device)
    x[1:] = x[:-1].clone()
    y = torch.arange(9.0, device=device).view(3, 3)
    y.copy_(y.mT.clone())
    z = torch.arange(4.0, device=device)
    z.copy_(z)
    return x, y, z


@program
def deepcopy_and_clone_own_their_memory(device):
    from copy import copy, deepcopy

    x = matrix(device)
    view = x[1:, 1:]
    return x, [view.clone(), deepcopy(view), copy(view), view.mT.clone()]


@program
def out_of_another_shape_is_resized_with_a_warning(device):
    x = matrix(device)
    out, empty = torch.zeros(2, device=device), torch.empty(0, device=device)
    torch.add(x, 1, out=out)
    torch.add(x, 2, out=empty)
    return out, empty


@program
def out_that_cannot_take_the_result_is_refused(device):
    x = matrix(device)
    return [
        refusal(
            lambda: torch.add(x, 0.5, out=torch.empty(3, 4, device=device).int()),
            "can't be cast",
        ),
        refusal(lambda: torch.mm(x, x.mT, out=x.int()), "dtype"),
    ]


@program
def out_is_the_result_itself(device):
    x = matrix(device)
    out = torch.empty(3, 4, device=device)
    values, indices = torch.empty(3, device=device), torch.empty(3).long().to(device)
    result = torch.max(x, 1, out=(values, indices))
    return torch.exp(x, out=out) is out, result.values is values, result[1] is indices


@program
def in_place_operator_returns_its_tensor(device):
    x = matrix(device)
    view = x[0]
    alias = x
    x += 1
    view *= 2
    return x is alias, x.add_(1) is x, x.zero_() is x, x.relu_() is x, x[0] is view, x


@program
def data_pointers_agree_with_offsets(device):
    x = torch.zeros(8, device=device)
    return [
        x.data_ptr() == x.untyped_storage().data_ptr(),
        x[3:].data_ptr() - x.data_ptr(),
        x.detach().data_ptr() == x.data_ptr(),
        torch.empty(0, device=device).data_ptr(),
        x[8:].data_ptr(),
        x[2:2].storage_offset(),
        x.is_set_to(x.view(8)),
        x.is_set_to(x[1:]),
    ]


@program
def empty_tensors_have_views_too(device):
    x = torch.empty(0, 3, device=device)
    return x, x.mT, x.view(3, 0), x[:, 1:], x.sum(0), torch.cat([x, x]), x.unbind(1)


@program
def multiple_outputs_of_a_view_keep_their_base(device):
    x = matrix(device)
    parts = x.split(2, 1)
    parts[0].zero_()
    parts[1][0] = 1
    return x, parts, [p._base is x for p in parts]


@program
def functionalized_copies_of_views_own_their_memory(device):
    x = matrix(device)
    return x, [
        torch.view_copy(x, (4, 3)),
        torch.transpose_copy(x, 0, 1),
        torch.slice_copy(x, 0, 1, 3),
        torch.unbind_copy(x),
        torch.split_copy(x, 2, 1),
        torch.expand_copy(x[:1], (2, 4)),
        torch.as_strided_copy(x, (2, 2), (1, 1)),
    ]
