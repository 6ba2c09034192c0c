# SPDX-License-Identifier: BSD-3-Clause
"""Compiled architectures have the results of those compiled for the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from .architectures import ARCHITECTURES
from .training import Numbers, built, differing, moved, trained

# Some of each kind: decoders, a mixture of experts, an encoder, encoder-decoders, and
# models of images and of sound.
NAMES = (
    "gpt2",
    "llama",
    "gemma3",
    "opt",
    "qwen3_moe",
    "bert",
    "t5",
    "bart",
    "vit",
    "convnext",
    "whisper",
)
pytestmark = [
    pytest.mark.timeout(1500),
    # PyTorch's modules warn about each other when compilers import them.
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:torch\..*"),
    # Dynamo reads the gradient of results of the graph before a break. It hides the
    # warning, which as an error is raised anyway, on each device.
    pytest.mark.filterwarnings(r"ignore:The \.grad attribute of a Tensor:UserWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Resets the compiler."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def model_of(name: str, device: str) -> nn.Module:
    """Returns a model with its best attention."""
    return built(name, ARCHITECTURES[name].attention[-1]).to(device)


def answered(name: str, device: str) -> Numbers:
    """Returns the results of a compiled model for its inputs."""
    architecture = ARCHITECTURES[name]
    model = model_of(name, device).eval()
    compiled = torch.compile(model)
    inputs = moved(architecture.inputs(), device)
    with torch.no_grad():
        said = compiled(**inputs, **architecture.call)
    return {
        key: value.cpu()
        for key, value in said.items()
        if isinstance(value, torch.Tensor)
    }


@pytest.mark.parametrize("name", NAMES)
def test_compiled_architecture_answers_with_the_numbers_of_the_compiled_cpu(
    device: str, name: str
) -> None:
    with torch.openreg.operator_paths() as paths:
        ours = answered(name, device)
    assert any(call.startswith("compiled::") for call, _ in paths.calls)
    assert differing(ours, answered(name, "cpu")) == []


@pytest.mark.parametrize("name", NAMES)
def test_compiled_architecture_trains_with_the_numbers_of_the_compiled_cpu(
    device: str, name: str
) -> None:
    attention = ARCHITECTURES[name].attention[-1]
    with torch.openreg.operator_paths() as paths:
        _, ours = trained(name, attention, device, compiled=True)
    assert any(call.startswith("compiled::") for call, _ in paths.calls)
    torch.compiler.reset()
    _, cpu = trained(name, attention, "cpu", compiled=True)
    assert differing(ours, cpu) == []
    assert cpu["loss 0"] > cpu["loss 4"], "the CPU learns nothing either"
