# SPDX-License-Identifier: BSD-3-Clause
"""torch.accelerator.random, which torch has since version 2.14."""

from __future__ import annotations

from collections.abc import Callable

import torch

from support.versions import since

pytestmark = since(2, 14)


def test_seeds_and_states_are_those_of_the_device() -> None:
    torch.manual_seed(11)
    found = torch.accelerator.random
    for device in (None, 1, "openreg:1", torch.device("openreg", 1)):
        assert found.initial_seed(device) == 11
        state = torch.openreg.get_rng_state(1 if device else 0)
        assert torch.equal(found.get_rng_state(device), state)
    assert len(found.get_rng_state_all()) == torch.openreg.device_count()


def test_seed_that_waits_for_the_device_is_seen(
    output: Callable[..., str],
) -> None:
    assert output(
        """
        import torch
        torch.manual_seed(5)
        print(torch.openreg.is_initialized())
        print(torch.accelerator.random.initial_seed(), torch.openreg.is_initialized())
        """
    ).split() == ["False", "5", "True"]


def test_deferred_calls_run_when_the_device_starts(output: Callable[..., str]) -> None:
    assert output(
        """
        import torch
        from torch.accelerator._utils import _lazy_call
        _lazy_call(lambda: print("started"), seed=True)
        print("import")
        torch.openreg.init()
        """
    ).split() == ["import", "started"]
