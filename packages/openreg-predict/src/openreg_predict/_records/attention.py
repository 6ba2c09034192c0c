# SPDX-License-Identifier: BSD-3-Clause
"""Attention as one kernel, where CUDA has one.

The device has the kernels of the CPU, which accept fewer masks and no dropout. It runs
other calls as products and a softmax. A real run computes these operators without
recording them, and notes one kernel in each direction. A dry run calls the operator of
that kernel on fake tensors.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from openreg_predict._records import hooks
from openreg_predict._records.recorder import Recorder

_PLAIN = (torch.Tensor, nn.Parameter)
_HALF = (torch.float16, torch.bfloat16)
_FLASH = torch.ops.aten._scaled_dot_product_flash_attention.default
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_backward.default
_EFFICIENT = torch.ops.aten._scaled_dot_product_efficient_attention.default
_EFFICIENT_BACKWARD = (
    torch.ops.aten._scaled_dot_product_efficient_attention_backward.default
)
# The kernels of CUDA, which a dry run never calls on the device.
CUDA_OPERATORS = (_FLASH, _FLASH_BACKWARD, _EFFICIENT, _EFFICIENT_BACKWARD)
_MATH = torch.nn.attention.SDPBackend.MATH.value


@contextmanager
def one_kernel_attention(device_type: str, recorder: Recorder | None) -> Iterator[None]:
    """Makes attention one kernel, as on CUDA.

    A mode would not reach the threads of autograd, where checkpoints compute again.

    Args:
        device_type: The type of the device.
        recorder: The recorder of a real run; ``None`` in a dry run.
    """
    original = F.scaled_dot_product_attention
    attention = _Attention(original, device_type, recorder)
    F.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        attention.has_ended = True
        F.scaled_dot_product_attention = original


def cuda_kernel(inputs: _Inputs) -> str:
    """Returns the kernel that CUDA chooses: ``flash``, ``efficient`` or ``math``.

    PyTorch has these rules for NVIDIA devices since Ampere, except that cuDNN's
    kernel counts as one of the first two.

    Args:
        inputs: The arguments of the call.
    """
    query, key, value = tensors = inputs[:3]
    if any(x.dim() != 4 or not x.numel() or x.stride(-1) != 1 for x in tensors):
        return "math"
    mask = inputs.attn_mask
    if mask is not None and (
        not mask.dim() or mask.stride(-1) != 1 or not inputs.mask_fits(mask)
    ):
        return "math"
    heads, key_heads, value_heads = (x.shape[1] for x in tensors)
    if inputs.enable_gqa:
        fits = key_heads == value_heads and heads % key_heads == 0
    else:
        fits = heads == key_heads == value_heads
    same = len({(x.shape[0], x.dtype) for x in tensors}) == 1
    width, out_width = query.shape[-1], value.shape[-1]
    if not (fits and same and width == key.shape[-1]):
        return "math"
    half = query.dtype in _HALF
    square = query.shape[2] == key.shape[2] or not inputs.is_causal
    if (
        torch._C._get_flash_sdp_enabled()
        and half
        and mask is None
        and square
        and width == out_width <= 256
    ):
        return "flash"
    aligned = not any(each % (8 if half else 4) for each in (width, out_width))
    known = half or query.dtype == torch.float32
    if (
        torch._C._get_mem_efficient_sdp_enabled()
        and known
        and aligned
        and heads == key_heads
    ):
        return "efficient"
    return "math"


class _Inputs(NamedTuple):
    """The arguments of a call."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    attn_mask: torch.Tensor | None
    dropout_p: float
    is_causal: bool
    scale: float | None
    enable_gqa: bool

    def have_types(self) -> bool:
        """Returns whether the arguments have the types of the schema."""
        given: tuple[Any, ...] = self
        *tensors, mask, dropout_p, is_causal, scale, enable_gqa = given
        return (
            all(isinstance(x, torch.Tensor) for x in tensors)
            and (mask is None or isinstance(mask, torch.Tensor))
            and (scale is None or isinstance(scale, (int, float)))
            and isinstance(dropout_p, (int, float))
            and isinstance(is_causal, bool)
            and isinstance(enable_gqa, bool)
        )

    def tensors(self) -> list[torch.Tensor]:
        return [x for x in self[:4] if x is not None]

    def needs_gradients(self) -> bool:
        return torch.is_grad_enabled() and any(x.requires_grad for x in self.tensors())

    def cast(self, dtype: torch.dtype) -> _Inputs:
        """Returns the arguments as autocast passes them on."""
        return self._replace(
            query=_cast(self.query, dtype),
            key=_cast(self.key, dtype),
            value=_cast(self.value, dtype),
            attn_mask=None if self.attn_mask is None else _cast(self.attn_mask, dtype),
        )

    def mask_fits(self, mask: torch.Tensor) -> bool:
        """Returns whether a mask can be expanded to the scores."""
        scores = *self.query.shape[:3], self.key.shape[2]
        sizes = zip(reversed(mask.shape), reversed(scores), strict=False)
        return mask.dim() <= 4 and all(x in (1, wanted) for x, wanted in sizes)

    def with_bias(self) -> _Inputs:
        """Returns the arguments with the mask as the efficient kernel gets it."""
        mask, query = self.attn_mask, self.query
        if mask is None:
            return self
        if mask.dtype == torch.bool:
            kept, excluded = (
                torch.scalar_tensor(x, dtype=query.dtype, device="cpu")
                for x in (0.0, -math.inf)
            )
            mask = torch.where(mask, kept, excluded)
        mask = mask.expand(*query.shape[:3], self.key.shape[2])
        return self._replace(attn_mask=mask)


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    fits = tensor.is_floating_point() and tensor.dtype != torch.float64
    return tensor.to(dtype) if fits else tensor


class _Attention:
    """Takes the place of ``torch.nn.functional.scaled_dot_product_attention``."""

    def __init__(
        self,
        original: Callable[..., torch.Tensor],
        device_type: str,
        recorder: Recorder | None,
    ) -> None:
        self.original = original
        self.device_type = device_type
        self.recorder = recorder
        self.has_ended = False

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        try:
            inputs = _inputs(*args, **kwargs)
        except TypeError:
            return self.original(*args, **kwargs)  # raises the error of PyTorch
        if self.has_ended or not self._is_known(inputs):
            return self.original(*args, **kwargs)
        if torch.is_autocast_enabled(self.device_type):
            inputs = inputs.cast(torch.get_autocast_dtype(self.device_type))
        kernel = cuda_kernel(inputs)
        if kernel == "math":
            return self._original(inputs)
        if self.recorder is None:
            return _without_data(kernel, inputs.with_bias())
        if not _is_composed(inputs):
            return self._original(inputs)
        return _Call(self.recorder, kernel, inputs).run(self._original)

    def _is_known(self, inputs: _Inputs) -> bool:
        """Returns whether a call may become one kernel, as on CUDA."""
        tensors = inputs.tensors()
        if not inputs.have_types():
            return False
        if any(x.is_nested or x.device.type != self.device_type for x in tensors):
            return False
        # Functions of autograd refuse the transforms of torch.func.
        return self.recorder is None or (
            all(type(x) in _PLAIN for x in tensors)
            and torch._C._functorch.peek_interpreter_stack() is None
        )

    def _original(self, inputs: _Inputs) -> torch.Tensor:
        *given, scale, enable_gqa = inputs
        return self.original(*given, scale=scale, enable_gqa=enable_gqa)


def _inputs(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> _Inputs:
    return _Inputs(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
    )


def _is_composed(inputs: _Inputs) -> bool:
    """Returns whether the device composes the call of other operators.

    The device makes the choice of the CPU, which reads only metadata. A question to the
    device would invalidate the capture of a graph.
    """
    choose: Callable[..., int] = torch._fused_sdp_choice
    mask = inputs.attn_mask
    if mask is not None and mask.requires_grad:
        return True
    # Without the math kernel, PyTorch may warn why no other one fits. The call does so
    # again.
    has_math = torch._C._get_math_sdp_enabled()
    with (
        torch._C._DisableTorchDispatch(),  # for modes of the program, too
        nullcontext() if has_math else warnings.catch_warnings(),
    ):
        if not has_math:
            warnings.simplefilter("ignore")
        *tensors, dropout_p, is_causal, scale, enable_gqa = inputs
        described = [None if x is None else _without_memory(x) for x in tensors]
        try:
            choice = choose(
                *described, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        except RuntimeError:
            return True  # a CUDA device has more kernels; another one raises the error
    return choice == _MATH


def _without_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a CPU tensor of the same shape, with the memory of one row."""
    row = torch.empty(tensor.shape[-1], dtype=tensor.dtype, device="cpu")
    return row.expand(tensor.shape)


def _without_data(kernel: str, inputs: _Inputs) -> torch.Tensor:
    """Calls CUDA's operator on fake tensors."""
    query, key, value = inputs.query, inputs.key, inputs.value
    dropout_p, is_causal, scale = inputs.dropout_p, inputs.is_causal, inputs.scale
    if kernel == "flash":
        result = _FLASH(query, key, value, dropout_p, is_causal, scale=scale)
    else:
        result = _EFFICIENT(
            query, key, value, inputs.attn_mask, inputs.needs_gradients(), dropout_p,
            is_causal, scale=scale,
        )  # fmt: skip
    return result[0]  # type: ignore[no-any-return]


_Kept = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]
_Results = tuple[torch.Tensor, torch.Tensor]


class _Call:
    """A call that the device composes of other operators, noted as one kernel."""

    def __init__(self, recorder: Recorder, kernel: str, inputs: _Inputs) -> None:
        self.recorder = recorder
        self.is_flash = kernel == "flash"
        self.given: _Inputs | None = inputs  # the mask selects the device's kernel
        self.inputs: _Inputs | None = inputs.with_bias()
        self.trained = inputs.needs_gradients()
        self.options = inputs.dropout_p, inputs.is_causal
        self.names: list[str] = []  # of the tensors that require gradients
        self.backward: tuple[torch.Tensor | None, ...] = ()

    def run(self, original: Callable[[_Inputs], torch.Tensor]) -> torch.Tensor:
        """Computes the result, without recording the operators of it."""
        given, inputs, recorder = self.given, self.inputs, self.recorder
        assert given is not None
        assert inputs is not None
        self.given = None
        if not self.trained:
            with recorder.hidden():
                result = original(given)
            return self.finish(result)[1][0]
        recorder.note_next_node()
        self.names = [n for n in _TENSORS if _requires_grad(getattr(inputs, n))]
        trained = [getattr(inputs, name) for name in self.names]
        with recorder.hidden():
            entered = _Enter.apply(self, *trained)  # type: ignore[no-untyped-call]
            changed = dict(zip(self.names, entered, strict=True))
            result = original(given._replace(**changed))
        recorder.hide_nodes(result.grad_fn, entered[0].grad_fn)
        return _Exit.apply(self, result)  # type: ignore[no-untyped-call,no-any-return]

    def finish(self, result: torch.Tensor) -> tuple[_Kept, _Results]:
        """Notes the kernel.

        Returns:
            Query, key, value and bias; and the result in the layout of CUDA's kernel,
            with the sums that its backward pass needs.
        """
        inputs, recorder = self.inputs, self.recorder
        assert inputs is not None
        self.inputs = None  # the backward pass keeps what it needs
        query = inputs.query
        batch, heads, rows = query.shape[:3]
        with recorder.hidden():
            sums = rows if self.is_flash else -(-rows // 32) * 32 * self.trained
            logsumexp = query.new_empty(batch, heads, sums, dtype=torch.float32)
            # A view, or an input of the autograd function, would refuse changes in
            # place.
            result = self.empty(result, query).copy_(result)
            q, k, v = (x.detach() for x in inputs[:3])
            bias = None if inputs.attn_mask is None else inputs.attn_mask.detach()
        results = (result, logsumexp)
        if self.is_flash:
            recorder.note(_FLASH, (q, k, v, *self.options), {}, results, "")
        else:
            arguments = (q, k, v, bias, self.trained, *self.options)
            recorder.note(_EFFICIENT, arguments, {}, results, "")
        return (q, k, v, bias), results

    def finish_backward(
        self, gradients: tuple[torch.Tensor | None, ...]
    ) -> tuple[torch.Tensor | None, ...]:
        """Notes the kernel of the backward pass.

        Returns:
            The gradients, in the layout of CUDA's kernel in a recording.
        """
        kept, self.backward = self.backward, ()
        recorder = hooks.active()
        if recorder is None or not kept:  # second derivatives may skip the result
            return gradients
        gradient, q, k, v, bias, result, logsumexp = kept
        found = dict(zip(self.names, gradients, strict=True))
        with recorder.hidden():
            for name, like in (("query", q), ("key", k), ("value", v)):
                each = found.get(name)
                if each is not None and like is not None:
                    found[name] = self.laid_out(each, like)
        results = tuple(found.get(name) for name in reversed(_TENSORS))
        arguments: tuple[Any, ...]
        if self.is_flash:
            arguments = (gradient, q, k, v, result, logsumexp, None, None, 0, 0,
                         *self.options)  # fmt: skip
            recorder.note(_FLASH_BACKWARD, arguments, {}, results, "")
        else:
            arguments = (gradient, q, k, v, bias, result, logsumexp, None, None,
                         self.options[0], [], self.options[1])  # fmt: skip
            recorder.note(_EFFICIENT_BACKWARD, arguments, {}, results, "")
        return tuple(found[name] for name in self.names)

    def laid_out(self, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Returns a gradient in the layout of CUDA's kernel."""
        empty = self.empty(tensor, like)
        return tensor if tensor.stride() == empty.stride() else empty.copy_(tensor)

    def empty(self, tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Returns memory in the layout of CUDA's kernel.

        Args:
            tensor: A tensor of the shape.
            like: The argument whose layout flash attention keeps.
        """
        if self.is_flash:
            return torch.empty_like(like)
        return torch.empty_permuted(
            tensor.shape, (0, 2, 1, 3), dtype=tensor.dtype, device=tensor.device
        )


# The gradients of the device's products arrive in this order. If two are of the same
# tensor, their sum depends on it.
_TENSORS = ("attn_mask", "value", "key", "query")


def _requires_grad(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.requires_grad


class _Enter(torch.autograd.Function):
    """Its backward pass runs after all operators of an attention's backward pass."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> Any:
        ctx.call = call
        ctx.set_materialize_grads(False)
        return tuple(x.view_as(x) for x in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        return (None, *ctx.call.finish_backward(gradients))


class _Exit(torch.autograd.Function):
    """Its backward pass runs before the operators of an attention's backward pass.

    It keeps what CUDA's kernel keeps for its backward pass.
    """

    @staticmethod
    def forward(ctx: Any, call: _Call, result: torch.Tensor) -> Any:
        ctx.call = call
        kept, results = call.finish(result)
        ctx.save_for_backward(*kept, *results)
        return results[0]

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        recorder = hooks.active()  # may be another one than in the forward pass
        if recorder is not None:
            recorder.hides_nodes = True
        ctx.call.backward = gradient, *ctx.saved_tensors
        return None, gradient
