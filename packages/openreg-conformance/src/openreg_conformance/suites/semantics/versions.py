# SPDX-License-Identifier: BSD-3-Clause
"""Version counters: what raises them, what shares them, and who notices."""

import torch
from torch import Tensor

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


CHANGES = {
    "add_": lambda x: x.add_(1),
    "iadd": lambda x: x.__iadd__(1),
    "mul_": lambda x: x.mul_(2),
    "sub_": lambda x: x.sub_(x),
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3),
    "copy_": lambda x: x.copy_(torch.ones(4).to(x.device)),
    "copy_ from the host": lambda x: x.copy_(torch.ones(4)),
    "copy_ of another dtype": lambda x: x.copy_(torch.ones(4, dtype=torch.int32)),
    "setitem": lambda x: x.__setitem__(1, 5.0),
    "setitem of a slice": lambda x: x.__setitem__(slice(1, 3), 5.0),
    "setitem with a mask": lambda x: x.__setitem__(x > 1, 5.0),
    "setitem with indices": lambda x: x.__setitem__([0, 2], 5.0),
    "setitem of a tensor": lambda x: x.__setitem__(slice(0, 2), x[2:].clone()),
    "index_add_": lambda x: x.index_add_(0, torch.tensor([1]).to(x.device), x[:1] * 2),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([1]).to(x.device), 1),
    "scatter_": lambda x: x.scatter_(0, torch.tensor([1]).to(x.device), 7.0),
    "masked_fill_": lambda x: x.masked_fill_(x > 1, 0),
    "clamp_": lambda x: x.clamp_(0, 1),
    "relu_": lambda x: torch.relu_(x),
    "normal_": lambda x: x.normal_(),
    "uniform_": lambda x: x.uniform_(),
    "bernoulli_": lambda x: x.bernoulli_(),
    "random_": lambda x: x.random_(),
    "lerp_": lambda x: x.lerp_(x * 2, 0.5),
    "addcmul_": lambda x: x.addcmul_(x, x),
    "cumsum_": lambda x: x.cumsum_(0),
    "t_": lambda x: x.t_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "resize_": lambda x: x.resize_(2, 2),
    "resize_as_": lambda x: x.resize_as_(torch.ones(2).to(x.device)),
    "as_strided_": lambda x: x.as_strided_((2,), (2,)),
    "set_": lambda x: x.set_(torch.ones(2).to(x.device)),
    "set_ to nothing": lambda x: x.set_(),
    "detach_": lambda x: x.detach_(),
    "requires_grad_": lambda x: x.requires_grad_(),
    "add out": lambda x: torch.add(x, 1, out=x),
    "mm out": lambda x: torch.mv(torch.eye(4).to(x.device), x.clone(), out=x),
    "sum out": lambda x: torch.sum(x.clone().view(2, 2), 0, out=x.resize_(2)),
    "cat out": lambda x: torch.cat([x[:2].clone(), x[2:].clone()], out=x),
    "index_select out": lambda x: torch.index_select(
        x.clone(), 0, torch.tensor([3, 2, 1, 0]).to(x.device), out=x
    ),
    "sort out": lambda x: torch.sort(
        x.clone(), out=(x, torch.empty(4, dtype=torch.int64, device=x.device))
    ),
    "data add_": lambda x: x.data.add_(1),
    "detach add_": lambda x: x.detach().add_(1),
    "view add_": lambda x: x.view(2, 2).add_(1),
    "slice add_": lambda x: x[1:].add_(1),
    "unbind mul_": lambda x: x.unbind()[0].mul_(2),
    "alias zero_": lambda x: torch.ops.aten.alias(x).zero_(),
    "storage fill_": lambda x: x.untyped_storage().fill_(0),
    "data assigned": lambda x: setattr(x, "data", torch.ones(2).to(x.device)),
    "foreach add_": lambda x: torch._foreach_add_([x], 1),
    "foreach add_ of a list": lambda x: torch._foreach_add_([x], [x.clone()]),
    "foreach mul_": lambda x: torch._foreach_mul_([x], 2.0),
    "foreach mul_ of scalars": lambda x: torch._foreach_mul_([x], [2.0]),
    "foreach mul_ of a tensor": lambda x: torch._foreach_mul_(
        [x], torch.tensor(2.0).to(x.device)
    ),
    "foreach sub_": lambda x: torch._foreach_sub_([x], 1),
    "foreach div_": lambda x: torch._foreach_div_([x], 2.0),
    "foreach pow_": lambda x: torch._foreach_pow_([x], 2.0),
    "foreach maximum_": lambda x: torch._foreach_maximum_([x], 2.0),
    "foreach clamp_max_": lambda x: torch._foreach_clamp_max_([x], 1.0),
    "foreach neg_": lambda x: torch._foreach_neg_([x]),
    "foreach sqrt_": lambda x: torch._foreach_sqrt_([x]),
    "foreach exp_": lambda x: torch._foreach_exp_([x]),
    "foreach abs_": lambda x: torch._foreach_abs_([x]),
    "foreach zero_": lambda x: torch._foreach_zero_([x]),
    "foreach copy_": lambda x: torch._foreach_copy_([x], [x.clone()]),
    "foreach lerp_": lambda x: torch._foreach_lerp_([x], [x * 2], 0.5),
    "foreach addcmul_": lambda x: torch._foreach_addcmul_([x], [x], [x], 0.5),
    "foreach addcdiv_": lambda x: torch._foreach_addcdiv_([x], [x], [x + 1], 0.5),
    "amp unscale": lambda x: torch._amp_foreach_non_finite_check_and_unscale_(
        [x], torch.zeros(1).to(x.device), torch.full((1,), 0.5).to(x.device)
    ),
    "fused sgd": lambda x: torch._fused_sgd_(
        [x],
        [x.clone()],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    ),
    "swap": lambda x: torch.utils.swap_tensors(x, torch.ones(3).to(x.device)),
}


@program
@each("change", CHANGES)
def change_raises_the_version_as_often(device, change):
    x = torch.arange(4.0, device=device)
    CHANGES[change](x)
    return x


@program
@each("change", [c for c in CHANGES if c not in ("swap", "detach_")])
def change_of_a_view_raises_the_version_of_its_base(device, change):
    base = torch.arange(6.0, device=device)
    view, sibling = base[1:5], base[2:4]
    CHANGES[change](view)
    return base, view, sibling


@program
@each("change", [c for c in CHANGES if c.startswith("foreach") or c.endswith("out")])
def change_after_a_tensor_was_saved_is_noticed(device, change):
    w = torch.ones(4, device=device, requires_grad=True)
    x = torch.arange(4.0, device=device)
    loss = (w * x).sum()
    CHANGES[change](x)
    return refusal(loss.backward, "modified by an inplace operation")


@program
def foreach_raises_the_version_of_each_tensor_by_one(device):
    xs = [torch.ones(n, device=device) for n in (1, 3, 2)]
    torch._foreach_add_(xs, 1)
    torch._foreach_mul_(xs[:2], [x.clone() for x in xs[:2]])
    return xs


@program
def detached_tensor_shares_the_version(device):
    x = torch.ones(2, device=device)
    detached, data = x.detach(), x.data
    detached.add_(1)
    data.add_(1)
    return x, detached, data


@program
def change_of_data_is_not_noticed(device):
    w = torch.ones(2, device=device, requires_grad=True)
    x = torch.ones(2, device=device)
    loss = (w * x).sum()
    x.data.mul_(3)
    loss.backward()
    return w.grad, x


@program
def change_through_detach_is_noticed(device):
    w = torch.ones(2, device=device, requires_grad=True)
    loss = (w * w).sum()
    w.detach().mul_(3)
    return refusal(loss.backward, "modified by an inplace operation")


@program
def message_names_the_version_and_the_operator(device):
    w = torch.ones(2, 2, device=device, requires_grad=True)
    y = w.exp()
    y.add_(1)
    y.add_(1)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        return refusal(y.sum().backward, "is at version 2; expected version 0")


@program
def version_may_be_preserved(device):
    x = torch.ones(2, device=device)
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    return x


@program
def inference_tensors_have_no_version(device):
    with torch.inference_mode():
        x = torch.ones(2, device=device)
        x.add_(1)
    return x, refusal(lambda: x._version, "do not track version counter")


@program
@each("op", ["add_", "copy_", "set_", "view"])
def inference_tensor_is_guarded_outside(device, op):
    with torch.inference_mode():
        x = torch.ones(2, device=device)
    calls = {
        "add_": lambda: x.add_(1),
        "copy_": lambda: x.copy_(x.clone()),
        "set_": lambda: x.set_(torch.ones(2, device=device)),
        "view": lambda: x.view(2).add_(1),
    }
    return refusal(calls[op], "Inplace update to inference tensor"), x


@program
def normal_tensor_changed_in_inference_mode_raises_its_version(device):
    x = torch.ones(2, device=device)
    with torch.inference_mode():
        x.add_(1)
        x.view(2).add_(1)
        torch._foreach_add_([x], 1)
    return x


@program
def no_grad_raises_versions_too(device):
    x: Tensor = torch.ones(2, device=device, requires_grad=True)
    with torch.no_grad():
        x.add_(1)
        x[0] = 3
    return x


@program
def random_operator_with_out_raises_the_version(device):
    x = torch.empty(3, device=device)
    torch.randn(3, out=x)
    torch.rand(3, out=x)
    torch.normal(0.0, torch.ones(3, device=device), out=x)
    return x


@program
def batch_norm_raises_the_versions_of_its_statistics(device):
    module = torch.nn.BatchNorm1d(2, device=device)
    x = torch.arange(6.0, device=device).view(3, 2)
    module(x)
    module(x)
    module.eval()(x)
    return module.running_mean, module.running_var, module.num_batches_tracked


@program
def result_of_a_view_operator_shares_the_version(device):
    x = torch.arange(8.0, device=device)
    views = [
        x.view(2, 4),
        x.reshape(4, 2),
        x[::2],
        x.unfold(0, 3, 2),
        x.expand(2, 8),
        x.split(3)[1],
        x.view(2, 4).diagonal(),
        x.unsqueeze(0).mT,
        x.view(torch.int32),
        torch.view_as_complex(x.view(4, 2)),
    ]
    x.add_(1)
    views[2].mul_(2)
    return x, views
