# SPDX-License-Identifier: BSD-3-Clause
"""Forward-mode derivatives, ``torch.func``, and the zero tensors that they make."""

import torch
from torch import nn
from torch.autograd import forward_ad as fwAD
from torch.func import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def vector(device: str, size: int = 3) -> torch.Tensor:
    return torch.linspace(-1, 2, size, device=device)


def function(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() * x.cumsum(0)).exp()


@program
def dual_tensors_carry_tangents(device):
    x = vector(device)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones_like(x))
        primal, tangent = fwAD.unpack_dual(function(dual))
        plain = fwAD.unpack_dual(function(x)).tangent
        return primal.clone(), tangent.clone(), plain


@program
def tangent_follows_in_place_changes_and_views(device):
    x = vector(device)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x.clone(), torch.ones_like(x))
        view = dual[1:]
        view.mul_(3)
        dual[0] = 7.0
        both = fwAD.unpack_dual(dual), fwAD.unpack_dual(view)
        return [(p.clone(), t.clone()) for p, t in both]


@program
def dual_tensor_shares_storage_with_its_primal(device):
    x = vector(device)
    t = torch.ones_like(x)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        unpacked = fwAD.unpack_dual(dual)
        return (
            dual.data_ptr() == x.data_ptr(),
            unpacked.tangent is t,
            unpacked.tangent.data_ptr() == t.data_ptr(),
            dual._version,
        )


@program
def tangents_that_do_not_fit_are_refused(device):
    x = vector(device)
    with fwAD.dual_level():
        return [
            refusal(lambda: fwAD.make_dual(x, x[:2]), "has a different size than"),
            refusal(lambda: fwAD.make_dual(x.int(), x), "floating point or complex"),
        ]


@program
def dual_level_outside_is_refused(device):
    x = vector(device)
    return refusal(lambda: fwAD.make_dual(x, x), "no level exists")


@program
def forward_over_reverse_gives_the_hessian_vector_product(device):
    x = vector(device).requires_grad_()
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones_like(x))
        (gradient,) = torch.autograd.grad(function(dual).sum(), dual, create_graph=True)
        primal, tangent = fwAD.unpack_dual(gradient)
        return primal.detach(), tangent.detach()


@program
def custom_function_defines_jvp(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x**3

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 3 * x * x * tangent

    x = vector(device)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones_like(x))
        return [each.clone() for each in fwAD.unpack_dual(Cube.apply(dual))]


@program
def jvp_and_vjp_agree(device):
    x = vector(device)
    value, tangent = jvp(function, (x,), (torch.ones_like(x),))
    same, pull = vjp(function, x)
    return value, tangent, same, pull(torch.ones_like(x))


@program
def jacobians_of_both_modes_agree(device):
    x = vector(device)
    return jacfwd(function)(x), jacrev(function)(x), jacrev(function, chunk_size=1)(x)


JACOBIANS = {"jacfwd": jacfwd, "jacrev": jacrev}


@program
@each("outer", JACOBIANS)
@each("inner", JACOBIANS)
def second_derivatives_agree_in_all_orders(device, outer, inner):
    gradient = JACOBIANS[inner](lambda x: function(x).sum())
    return JACOBIANS[outer](gradient)(vector(device))


@program
def hessian_agrees(device):
    return hessian(lambda x: (x @ x) * x.prod())(vector(device))


@program
def linearized_function_agrees(device):
    x = vector(device)
    value, push = linearize(function, x)
    return value, push(torch.ones_like(x)), push(x)


@program
def linearized_function_of_two_inputs_agrees(device):
    x = vector(device)
    value, push = linearize(lambda a, b: a * b + a, x, x + 1)
    return value, push(torch.ones_like(x), torch.zeros_like(x))


@program
def grad_with_auxiliary_output_agrees(device):
    def with_aux(x, y):
        return (x * y).sum(), {"product": x * y}

    x = vector(device)
    return grad_and_value(with_aux, argnums=(0, 1), has_aux=True)(x, x + 1)


@program
def nested_grad_agrees(device):
    x = torch.tensor(0.5, device=device)
    return grad(grad(torch.sin))(x), grad(lambda x: x * grad(torch.exp)(x))(x)


@program
def per_sample_gradients_agree(device):
    module = nn.Linear(3, 2).to(device)
    parameters = dict(module.named_parameters())

    def loss(parameters, x, y):
        prediction = torch.func.functional_call(module, parameters, (x[None],))
        return nn.functional.cross_entropy(prediction, y[None])

    x = torch.arange(12.0, device=device).view(4, 3) / 10
    y = torch.tensor([0, 1, 1, 0], device=device)
    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    return gradients, [p.grad for p in module.parameters()]


@program
def vmap_over_other_dimensions_agrees(device):
    x = torch.arange(12.0, device=device).view(3, 4)
    return (
        vmap(torch.dot, in_dims=(1, 1))(x, x),
        vmap(lambda r: (r, r.sum()), out_dims=(1, 0))(x),
        vmap(vmap(torch.mul), in_dims=(0, None))(x, x[0]),
        vmap(lambda r: r.sort().values, chunk_size=2)(x),
    )


@program
def vmap_refuses_what_depends_on_values(device):
    x = vector(device)
    return [
        refusal(lambda: vmap(lambda e: e.item())(x), "vmap: It looks like you're"),
        refusal(lambda: vmap(torch.nonzero)(x.view(3, 1)), "can output dynamic shape"),
        refusal(lambda: vmap(lambda e: torch.rand_like(e))(x), "randomness"),
    ]


@program
def vmap_in_place_on_an_unbatched_tensor_is_refused(device):
    x, total = vector(device), torch.zeros((), device=device)
    return refusal(
        lambda: vmap(lambda each: total.copy_(each))(x), "vmap: inplace arithmetic"
    ), total


@program
@each("randomness", ["same", "different"])
def vmap_draws_random_numbers_as_asked(device, randomness):
    x = torch.ones(4, device=device)
    torch.manual_seed(5)
    drawn = vmap(lambda e: e + torch.rand_like(e), randomness=randomness)(x)
    return drawn, len(drawn.unique())


@program
def vmap_of_in_place_changes_raises_versions(device):
    x = torch.arange(6.0, device=device).view(2, 3)
    vmap(lambda row: row.mul_(2))(x)
    return x


@program
def functionalize_removes_mutations(device):
    def mutate(x):
        y = x.clone()
        y[0].add_(1)
        y.view(-1)[1] = 5
        return y

    x = vector(device)
    return torch.func.functionalize(mutate)(x), x


@program
def batch_norm_without_statistics_works_under_vmap(device):
    module = nn.BatchNorm1d(2).to(device)
    torch.func.replace_all_batch_norm_modules_(module)
    x = torch.arange(12.0, device=device).view(2, 3, 2)
    return vmap(module)(x), module.running_mean


@program
def zero_tensor_behaves_as_zeros(device):
    zero = torch._efficientzerotensor((2, 3), device=device)
    x = torch.ones(2, 3, device=device)
    return (
        zero._is_zerotensor(),
        tuple(zero.shape),
        zero.dtype,
        zero + x,
        (zero * x)._is_zerotensor(),
        zero.clone()._is_zerotensor(),
        zero.cpu().sum().item(),
        (x - zero),
        (x @ torch._efficientzerotensor((3, 2), device=device)),
    )


@program
def zero_tensor_is_materialized_by_a_copy(device):
    zero = torch._efficientzerotensor((3,), device=device)
    target = torch.ones(3, device=device)
    target.copy_(zero)
    return target, torch.stack([target + 1, zero]), zero.expand(2, 3).clone()


@program
def zero_tensor_refuses_to_be_changed(device):
    zero = torch._efficientzerotensor((3,), device=device)
    return [
        refusal(lambda: zero.add_(1), "ZeroTensors are immutable"),
        refusal(lambda: torch.add(zero, 1, out=zero), "ZeroTensors are immutable"),
    ]


@program
def jvp_with_an_input_without_tangent_uses_zeros(device):
    x, y = vector(device), vector(device) + 1
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones_like(x))
        results = [
            dual * y + y.cos(),
            torch.cat([dual, y]),
            torch.stack([y, dual]).mean(0),
            torch.where(x > 0, dual, y),
            nn.functional.layer_norm(dual, (3,), y, y),
        ]
        return [fwAD.unpack_dual(each).tangent.clone() for each in results]
