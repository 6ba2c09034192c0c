# SPDX-License-Identifier: BSD-3-Clause
"""Bugs that pass every test on the CPU, and the tests on openreg that find them."""

from __future__ import annotations

from typing import NamedTuple


class Bug(NamedTuple):
    """A bug to insert.

    Attributes:
        right: The code in ``tinytrain.py``.
        wrong: The code that replaces it.
        found_by: The tests that fail.
        message: Part of an error message.
    """

    right: str
    wrong: str
    found_by: set[str]
    message: str


ON_THE_DEVICE = {
    "test_training_matches_the_cpu",
    "test_each_device_trains",
    "test_step_does_not_wait_for_the_device",
    "test_steps_leak_no_memory",
    "test_failed_step_can_be_repeated",
}

BUGS = {
    "missing_to_device": Bug(
        right="target = target.to(self.device, non_blocking=True)",
        wrong="target = target.clone()",
        found_by=ON_THE_DEVICE,
        message="Expected all tensors to be on the same device",
    ),
    "hard_coded_cuda": Bug(
        right="self.device = torch.device(device)",
        wrong="self.device = "
        'torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        found_by=ON_THE_DEVICE,
        message="Expected all tensors to be on the same device",
    ),
    "leak": Bug(
        right="deque(maxlen=window)",
        wrong="deque()",
        found_by={"test_steps_leak_no_memory"},
        message="bytes are left on openreg:0",
    ),
    "host_sync": Bug(
        right="self.losses.append(loss.detach())",
        wrong="self.losses.append(loss.detach().cpu())",
        found_by={"test_step_does_not_wait_for_the_device"},
        message=": self.losses.append(loss.detach().cpu())",
    ),
}
