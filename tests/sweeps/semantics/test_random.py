# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: seeds, states of generators, and which generator is used."""

from __future__ import annotations

import pytest
import torch
import torch.utils.checkpoint

from openreg_conformance.suites.semantics.random import DRAWS


@pytest.mark.parametrize("draw", DRAWS)
def test_draw_on_the_device_leaves_the_hosts_generator_alone(draw):
    # CUDA: getDefaultCUDAGenerator, aten/src/ATen/cuda/CUDAGeneratorImpl.cpp.
    before = torch.get_rng_state()
    DRAWS[draw]("openreg")
    assert torch.equal(torch.get_rng_state(), before)


def test_generator_of_another_device_is_refused() -> None:
    # CUDA: check_generator in aten/src/ATen/core/Generator.h.
    with pytest.raises(RuntimeError, match="Expected a 'openreg' device type for gen"):
        torch.rand(2, device="openreg", generator=torch.Generator())


def test_generator_of_the_device_is_refused_on_the_host() -> None:
    # CUDA: the CPU's kernel refuses it with check_generator, too.
    with pytest.raises(
        RuntimeError, match="Expected a 'cpu' device type for generator"
    ):
        torch.rand(2, generator=torch.Generator("openreg"))


def test_fork_of_one_device_leaves_the_other_alone() -> None:
    # CUDA: fork_rng in torch/random.py keeps the devices that it is given.
    torch.openreg.manual_seed_all(1)
    expected = torch.rand(2, device="openreg:1")
    torch.openreg.manual_seed_all(1)
    with torch.random.fork_rng([0], device_type="openreg"):
        torch.rand(2, device="openreg:0")
    assert torch.equal(torch.rand(2, device="openreg:1"), expected)
