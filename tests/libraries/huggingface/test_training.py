# SPDX-License-Identifier: BSD-3-Clause
"""Architectures train on openreg bitwise as on the CPU."""

from __future__ import annotations

import pytest

from .architectures import ARCHITECTURES, CASES
from .training import built, differing, trained, trained_on_the_cpu


@pytest.mark.parametrize("optimizer_first", [False, True], ids=["after", "before"])
@pytest.mark.parametrize(("name", "attention"), CASES)
def test_architecture_trains_with_cpu_numbers(
    device: str, name: str, attention: str, optimizer_first: bool
) -> None:
    _, ours = trained(name, attention, device, optimizer_first)
    cpu = trained_on_the_cpu(name, attention)
    assert differing(ours, cpu) == []
    assert cpu["loss 0"] > cpu["loss 4"], "the CPU learns nothing either"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture_keeps_its_parameters_when_moved(device: str, name: str) -> None:
    model = built(name, ARCHITECTURES[name].attention[-1])
    before = list(model.named_parameters(remove_duplicate=False))
    model.to(device)
    after = list(model.named_parameters(remove_duplicate=False))
    assert [key for key, _ in after] == [key for key, _ in before]
    for (key, one), (_, other) in zip(before, after, strict=True):
        assert other is one, key
        assert other.device.type == device, key
