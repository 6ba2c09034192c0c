# SPDX-License-Identifier: BSD-3-Clause
"""Schedules find planted bugs, and do not blame the corrected programs."""

from __future__ import annotations

import pytest
import torch

from torch_openreg.testing import schedule

from .matrix import attempt_that_finds, false_alarms
from .programs import BUGS, Bug

SEEDS = 20
# A slot of two is overwritten only if one stream runs ahead of another by two steps.
ONLY_RANDOM = {
    "prefetched_buffer_returns_to_the_queue_too_early",
    "weight_slot_is_overwritten_during_its_use",
    "double_buffer_waits_for_the_other_slot",
}

each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


def test_there_are_twenty_bugs_and_five_follow_public_reports() -> None:
    assert len(BUGS) >= 20
    assert len({bug.report for bug in BUGS if bug.report}) >= 5


@each_bug
def test_lazy_shows_the_bug_in_the_first_run(bug: Bug) -> None:
    if bug.name in ONLY_RANDOM:
        assert attempt_that_finds(bug, "lazy", 1) == 0
    else:
        assert attempt_that_finds(bug, "lazy", 1) == 1


@each_bug
def test_a_seed_shows_the_bug(bug: Bug) -> None:
    assert 1 <= attempt_that_finds(bug, "random", SEEDS) <= SEEDS


@each_bug
def test_a_seed_shows_the_bug_again(bug: Bug) -> None:
    seed = attempt_that_finds(bug, "random", SEEDS) - 1
    results = []
    for _ in range(5):
        with schedule(f"random:{seed}"):
            results.append(bug.program(False))
        for device in range(2):
            torch.accelerator.synchronize(device)
    assert all(each == results[0] for each in results)


@each_bug
def test_corrected_program_is_not_blamed(bug: Bug) -> None:
    assert false_alarms(bug, "lazy", 1) == 0
    assert false_alarms(bug, "random", SEEDS) == 0
