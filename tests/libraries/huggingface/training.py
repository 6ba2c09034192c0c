# SPDX-License-Identifier: BSD-3-Clause
"""Trains an architecture on a device, and returns all resulting numbers."""

from __future__ import annotations

import functools
import random

import numpy as np
import torch
from torch import Tensor, nn

from .architectures import ARCHITECTURES, Inputs

Numbers = dict[str, Tensor]
STEPS = 5


def seed(value: int) -> None:
    """Seeds every generator of torch, NumPy and Python."""
    torch.manual_seed(value)
    np.random.seed(value)  # masks of wav2vec2
    random.seed(value)


def moved(inputs: Inputs, device: str) -> Inputs:
    """Returns the inputs on a device."""
    return {name: value.to(device) for name, value in inputs.items()}


def built(name: str, attention: str) -> nn.Module:
    """Returns the model of a row of the table, always with the same weights."""
    seed(0)
    return ARCHITECTURES[name].build(attention)


def trained(
    name: str,
    attention: str,
    device: str,
    optimizer_first: bool = False,
    compiled: bool = False,
) -> tuple[nn.Module, Numbers]:
    """Trains a model for a few steps.

    Args:
        name: A name of the table.
        attention: The implementation of attention.
        device: Device of the training.
        optimizer_first: Whether the optimizer is made before the model is moved.
        compiled: Whether ``torch.compile`` compiles the model.

    Returns:
        The model, and on the CPU each loss, the last gradients and the weights.
    """
    architecture = ARCHITECTURES[name]
    model = built(name, attention)
    if optimizer_first:
        optimizer = architecture.optimizer(model.parameters())
        model.to(device)
    else:
        model.to(device)
        optimizer = architecture.optimizer(model.parameters())
    inputs = moved(architecture.inputs(), device)
    numbers: Numbers = {}
    seed(1)  # for dropout
    model.train()
    forward = torch.compile(model) if compiled else model
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = forward(**inputs, **architecture.call).loss
        loss.backward()
        optimizer.step()
        numbers[f"loss {step}"] = loss.detach()
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            numbers[f"gradient of {key}"] = parameter.grad
    numbers |= model.state_dict()
    return model, {key: value.cpu() for key, value in numbers.items()}


@functools.cache
def trained_on_the_cpu(name: str, attention: str) -> Numbers:
    """Returns the result of :func:`trained` on the CPU."""
    return trained(name, attention, "cpu")[1]


def differing(ours: Numbers, cpu: Numbers) -> list[str]:
    """Returns the names of values that are missing or differ in a bit."""
    return [
        key
        for key in {**cpu, **ours}
        if key not in ours or key not in cpu or not same_bits(ours[key], cpu[key])
    ]


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Returns whether two CPU tensors have the same dtype, shape and bits."""
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and one.numpy(force=True).tobytes() == other.numpy(force=True).tobytes()
    )
