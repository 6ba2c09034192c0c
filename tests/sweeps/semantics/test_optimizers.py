# SPDX-License-Identifier: BSD-3-Clause
"""Every optimizer: values, versions, the device of its state, and errors."""

from __future__ import annotations

import torch

from openreg_conformance.suites.semantics.optimizers import make, train


def test_capturable_steps_are_those_of_the_loop() -> None:
    # The CPU refuses capturable: _get_capturable_supported_devices in
    # torch/optim/optimizer.py. CUDA keeps the step count on the device.
    usual, loop = make("AdamW", "openreg", foreach=False)
    parameters, optimizer = make("AdamW", "openreg", capturable=True)
    train(usual, loop)
    train(parameters, optimizer)
    for mine, expected in zip(parameters, usual, strict=True):
        torch.testing.assert_close(mine, expected)
    assert optimizer.state[parameters[0]]["step"].device.type == "openreg"
