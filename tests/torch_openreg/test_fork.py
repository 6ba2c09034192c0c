# SPDX-License-Identifier: BSD-3-Clause
"""Processes: a forked child cannot use running devices; all others can."""

from __future__ import annotations

from collections.abc import Callable

Output = Callable[..., str]

FORK = """
import os, sys, torch
{before}
child = os.fork()
if child == 0:
    for use in {uses}:
        try:
            print(eval(use))
        except BaseException as error:
            print(type(error).__name__, error)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print("parent", (torch.ones(2, device="openreg") + 1).tolist())
"""
STARTED = 'x = torch.ones(1, device="openreg")'
PARENT = "parent [2.0, 2.0]"


def test_forked_child_is_told_to_spawn_at_every_use(output: Output) -> None:
    uses = [
        'torch.ones(1, device="openreg")',
        "torch.openreg.init()",
        "torch.openreg.set_device(0)",
        "torch.openreg.synchronize()",
        "torch.openreg.get_rng_state()",
        "torch.openreg.mem_get_info()",
        "x + 1",
        "x.cpu()",
    ]
    *errors, parent = output(FORK.format(before=STARTED, uses=uses)).splitlines()
    assert len(errors) == len(uses)
    for error in errors:
        assert error.startswith("RuntimeError Cannot re-initialize openreg in forked")
        assert "spawn" in error
    assert parent == PARENT


def test_forked_child_may_use_the_cpu_and_seeds(output: Output) -> None:
    uses = [
        "torch.manual_seed(0).initial_seed()",
        "torch.seed() > 0",
        "torch.openreg.is_initialized()",
        "torch.openreg._is_in_bad_fork()",
        "torch.ones(2).sum().item()",
    ]
    printed = output(FORK.format(before=STARTED, uses=uses)).splitlines()
    assert printed == ["0", "True", "False", "True", "2.0", PARENT]


def test_child_forked_before_first_use_has_its_own_devices(output: Output) -> None:
    before = "torch.manual_seed(0); torch.openreg.is_available()"
    uses = ['torch.arange(3, device="openreg").tolist()']
    printed = output(FORK.format(before=before, uses=uses)).splitlines()
    assert printed == ["[0, 1, 2]", PARENT]
