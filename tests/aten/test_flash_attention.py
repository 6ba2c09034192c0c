# SPDX-License-Identifier: BSD-3-Clause
"""Flash attention under CUDA's name has the results of the CPU's kernel."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._functorch.aot_autograd import aot_function
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import scaled_dot_product_attention

import openreg_aten  # noqa: F401

aten = torch.ops.aten
DEVICE = torch._C._get_privateuse1_backend_name()


def inputs(layout: str, dtype: torch.dtype) -> list[Tensor]:
    torch.manual_seed(0)
    # Batch, heads, positions, features; models have positions before heads.
    made = [torch.randn(2, 3, 5, 8, dtype=dtype) for _ in range(4)]
    if layout == "positions first":
        made = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in made]
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", ["contiguous", "positions first"])
@pytest.mark.parametrize("causal", [False, True])
def test_it_and_its_derivative_are_those_of_the_cpu(causal, layout, dtype):
    *qkv, gradient = inputs(layout, dtype)
    wanted, wanted_sum = aten._scaled_dot_product_flash_attention_for_cpu(
        *qkv, is_causal=causal
    )
    wanted_gradients = aten._scaled_dot_product_flash_attention_for_cpu_backward(
        gradient, *qkv, wanted, wanted_sum, 0.0, causal
    )
    given = [x.to(DEVICE).requires_grad_() for x in qkv]
    output, logsumexp, *rest = aten._scaled_dot_product_flash_attention(
        *given, is_causal=causal
    )
    output.backward(gradient.to(DEVICE))
    assert torch.equal(output.cpu(), wanted)
    assert torch.equal(logsumexp.cpu(), wanted_sum)
    assert rest[2:4] == [5, 5]
    for found, x in zip(given, wanted_gradients, strict=True):
        assert torch.equal(found.grad.cpu(), x)


@pytest.mark.parametrize("layout", ["contiguous", "positions first"])
def test_fake_tensors_have_its_metadata(layout):
    qkv = [x.to(DEVICE) for x in inputs(layout, torch.float32)[:3]]
    real = aten._scaled_dot_product_flash_attention(*qkv)
    with FakeTensorMode() as mode:
        fake = aten._scaled_dot_product_flash_attention(
            *[mode.from_tensor(x) for x in qkv]
        )
    for one, other in zip(real, fake, strict=True):
        if isinstance(one, Tensor):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            assert one.stride() == other.stride()
        else:
            assert one == other


def test_debug_mask_is_refused():
    x = torch.ones(1, 1, 2, 8, device=DEVICE)
    with pytest.raises(RuntimeError, match="return_debug_mask is True"):
        aten._scaled_dot_product_flash_attention(x, x, x, return_debug_mask=True)


def attention_in(graph: torch.fx.Graph) -> list[str]:
    names = [str(node.target) for node in graph.nodes]
    return [name for name in names if "attention" in name]


def test_graphs_of_aot_autograd_have_it_and_those_of_make_fx_have_the_cpus():
    *qkv, _ = inputs("contiguous", torch.float32)
    given = [x.to(DEVICE) for x in qkv]
    plain = make_fx(lambda q, k, v: scaled_dot_product_attention(q, k, v))(*given)
    assert attention_in(plain.graph) == [
        "aten._scaled_dot_product_flash_attention_for_cpu.default"
    ]
    traced = []

    def compiler(module: torch.fx.GraphModule, _) -> torch.fx.GraphModule:
        traced.extend(attention_in(module.graph))
        return module

    attention = aot_function(scaled_dot_product_attention, fw_compiler=compiler)
    found = attention(*(x.requires_grad_() for x in given))
    assert traced == ["aten._scaled_dot_product_flash_attention.default"]
    assert torch.equal(found.cpu(), scaled_dot_product_attention(*qkv))
