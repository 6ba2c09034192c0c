# SPDX-License-Identifier: BSD-3-Clause
"""Architectures generate the same text on openreg as on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .architectures import ARCHITECTURES, CASES
from .training import built, moved, seed

WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 1.5},
    "beams": {"do_sample": False, "num_beams": 3, "num_return_sequences": 2},
}
GENERATING = [case for case in CASES if ARCHITECTURES[case[0]].generates]


def sharpened(name: str, attention: str) -> nn.Module:
    """Returns a model with large weights, so that it does not repeat one token."""
    model = built(name, attention).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(5)
    if "grouped_mm" in model.get_experts_implementation().values():
        # transformers would switch to it while decoding, but not on the CPU.
        model.set_experts_implementation("batched_mm")
    return model


def written(
    model: nn.Module, name: str, device: str, way: dict[str, Any]
) -> tuple[Tensor, list[Tensor]]:
    """Returns the tokens and their scores on the CPU."""
    inputs = moved(ARCHITECTURES[name].inputs(), device)
    inputs.pop("labels")
    seed(2)
    result = model.to(device).generate(
        **inputs,
        **way,
        max_new_tokens=8,
        min_new_tokens=8,
        return_dict_in_generate=True,
        output_scores=True,
    )
    assert result.sequences.device.type == device
    return result.sequences.cpu(), [scores.cpu() for scores in result.scores]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "attention"), GENERATING)
def test_architecture_generates_the_tokens_of_the_cpu(
    device: str, name: str, attention: str, way: str
) -> None:
    model = sharpened(name, attention)
    cpu_tokens, cpu_scores = written(model, name, "cpu", WAYS[way])
    tokens, scores = written(model, name, device, WAYS[way])
    assert tokens.tolist() == cpu_tokens.tolist()
    for ours, cpu in zip(scores, cpu_scores, strict=True):
        assert torch.equal(ours, cpu)
    assert len(set(cpu_tokens[:, -8:].flatten().tolist())) > 1
