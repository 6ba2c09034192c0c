# SPDX-License-Identifier: BSD-3-Clause
"""FlexAttention on the device does what it does on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import (
    AuxRequest,
    create_block_mask,
    flex_attention,
)

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
]
SHAPE = (2, 4, 128, 32)


def tensors(device: str, dtype: torch.dtype = torch.float) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(SHAPE).to(device, dtype) for _ in range(3)]


def causal(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
    return q >= kv


def biased(score: Tensor, b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
    return score * 0.5 + (q - kv) * 0.1


def attended(device: str, *, compiled: bool, masked: bool, dtype: torch.dtype):
    mask = create_block_mask(causal, 2, 4, 128, 128, device=device) if masked else None

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=biased, block_mask=mask)

    torch.compiler.reset()
    run = torch.compile(run, fullgraph=True) if compiled else run
    return run(*tensors(device, dtype)).cpu()


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16], ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_attention_has_the_bits_of_the_cpu(compiled, masked, dtype):
    with torch.openreg.operator_paths() as paths:
        ours = attended("openreg", compiled=compiled, masked=masked, dtype=dtype)
    assert ours.equal(attended("cpu", compiled=compiled, masked=masked, dtype=dtype))
    kernels = any(name.startswith("compiled::") for name, _ in paths.calls)
    assert kernels or not compiled


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_backward_is_refused_in_the_words_for_the_cpu(compiled):
    words = []
    for device in ("cpu", "openreg"):
        torch.compiler.reset()
        run = torch.compile(flex_attention) if compiled else flex_attention
        inputs = [each.requires_grad_() for each in tensors(device)]
        with pytest.raises(NotImplementedError) as refused:
            run(*inputs)
        words.append(str(refused.value).splitlines()[0])
    assert words[0] == words[1]
    assert words[0].startswith("FlexAttention does not support backward on CPU.")


def test_largest_scores_are_refused_in_the_words_for_the_cpu():
    words = []
    for device in ("cpu", "openreg"):
        with pytest.raises(NotImplementedError) as refused:
            flex_attention(*tensors(device), return_aux=AuxRequest(max_scores=True))
        words.append(str(refused.value))
    assert words[0] == words[1]
