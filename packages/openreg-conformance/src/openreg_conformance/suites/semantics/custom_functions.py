# SPDX-License-Identifier: BSD-3-Clause
"""Functions of ``torch.autograd.Function``: what they mark, save, refuse and raise."""

import warnings

import torch
from torch.autograd import Function

from openreg_conformance.checks.observing import Programs, refusal

_programs = Programs(__name__)
program, each, cases = _programs.program, _programs.each, _programs.cases


def leaf(device: str, *shape: int) -> torch.Tensor:
    size = torch.Size(shape or (3,))
    x = torch.linspace(-1, 2, size.numel(), device=device).view(size)
    return x.requires_grad_()


@program
def custom_function_marks_what_it_changed(device):
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(device)
    y = x * 1
    z = Twice.apply(y)
    z.sum().backward()
    return z is y, y._version, y.detach(), x.grad


@program
def custom_function_marks_what_has_no_gradient(device):
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            ctx.mark_non_differentiable(indices)
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(indices)
            ctx.length = len(x)
            return values, indices

        @staticmethod
        def backward(ctx, grad, nothing):
            (indices,) = ctx.saved_tensors
            gave.append(nothing)
            return grad.new_zeros(ctx.length).index_copy(0, indices, grad)

    gave = []
    x = leaf(device)
    values, indices = Sort.apply(-x)
    (values * torch.arange(3.0, device=device)).sum().backward()
    return values.detach(), indices, x.grad, gave


@program
def custom_function_notices_a_changed_saved_tensor(device):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(device) * 1
    y = Square.apply(x)
    x.add_(1)
    return refusal(y.sum().backward, "modified by an inplace operation")


@program
def custom_function_differentiable_once_is_refused_twice(device):
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(device)
    (gradient,) = torch.autograd.grad(Once.apply(x).exp().sum(), x, create_graph=True)
    return gradient.detach(), refusal(gradient.sum().backward, "once_differentiable")


@program
def custom_function_with_setup_context_works_under_vmap(device):
    class Scale(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(device, 2, 3).detach()
    gradient = torch.func.grad(lambda row: Scale.apply(row, 3.0).sum())
    return torch.vmap(gradient)(x)


@program
def wrong_gradients_of_custom_functions_are_refused(device):
    def function(result):
        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return result(grad)

        return Wrong.apply(leaf(device)).sum()

    return [
        refusal(function(lambda g: (g, g)).backward, "incorrect number of gradients"),
        refusal(function(lambda g: g[:2]).backward, "returned an invalid gradient"),
        refusal(function(lambda g: "x").backward, "expected Variable or None"),
    ]


@program
def exception_in_a_backward_function_keeps_its_type(device):
    class Fail(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("lost")

    x = leaf(device)
    message = refusal(Fail.apply(x).sum().backward, "lost")
    (x * 2).sum().backward()
    return message, x.grad


@program
def warning_in_a_backward_function_reaches_the_caller(device):
    class Warn(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            warnings.warn("odd gradient", stacklevel=1)
            return grad

    Warn.apply(leaf(device)).sum().backward()
