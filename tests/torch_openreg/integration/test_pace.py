# SPDX-License-Identifier: BSD-3-Clause
"""Small operators on idle streams are enqueued if that is faster."""

from __future__ import annotations

import pytest

from support.programs import Program

ON = {"OPENREG_ENQUEUE_BURSTS": "1"}
PROGRAM = """
    import torch

    from openreg_aten import _C

    def counted(intervals, operators):
        x = torch.zeros(8, device="openreg")
        torch.accelerator.synchronize()
        _C.count_paths(1)
        before = dict(((n, p), c) for n, p, c in _C.path_counts())
        for _ in range(intervals):
            for _ in range(operators):
                x = x + 1
                sum(range(1000))  # otherwise the alternative is not tried
            torch.accelerator.synchronize()
        after = dict(((n, p), c) for n, p, c in _C.path_counts())
        _C.count_paths(-1)
        assert x.tolist() == [intervals * operators] * 8
        key = "aten::add.Tensor", "enqueued"
        return after.get(key, 0) - before.get(key, 0)
"""


@pytest.mark.differs_in_process("pace")
def test_bursts_of_small_operators_are_tried_both_ways(fork_script: Program) -> None:
    # The first round has 32 intervals, five of which run the other way.
    ended = fork_script(
        f"{PROGRAM}\n    print(counted(40, 64), counted(200, 64))", **ON
    )
    assert not ended.returncode, ended.stderr
    first, second = map(int, ended.stdout.split())
    assert 64 <= first < 40 * 64
    assert 64 <= second < 200 * 64


def test_bursts_are_enqueued_where_to_run_them_is_a_round_trip(
    fork_script: Program,
) -> None:
    process = {"OPENREG_ISOLATION": "process"}
    ended = fork_script(f"{PROGRAM}\n    print(counted(40, 64))", **ON, **process)
    assert not ended.returncode, ended.stderr
    assert int(ended.stdout) >= 39 * 64  # all except some of the first


@pytest.mark.parametrize("operators", [1, 8])
def test_small_operators_that_are_waited_for_run_inline(
    fork_script: Program, operators: int
) -> None:
    ended = fork_script(f"{PROGRAM}\n    print(counted(400, {operators}))", **ON)
    assert not ended.returncode, ended.stderr
    assert int(ended.stdout) == 0


def test_bursts_run_inline_with_the_setting(fork_script: Program) -> None:
    ended = fork_script(
        f"{PROGRAM}\n    print(counted(200, 64))", OPENREG_ENQUEUE_BURSTS="0"
    )
    assert not ended.returncode, ended.stderr
    assert int(ended.stdout) == 0


def test_small_indices_out_of_range_are_the_errors_of_their_calls(
    fork_script: Program,
) -> None:
    ended = fork_script(
        """
        import torch

        x = torch.zeros(8, device="openreg")
        bad = torch.tensor([9], device="openreg")
        for _ in range(100):
            for _ in range(32):
                x = x + 1
                sum(range(1000))  # otherwise the alternative is not tried
            torch.accelerator.synchronize()
            try:
                x[bad]
            except IndexError:
                continue
            raise SystemExit("no error")
        torch.accelerator.synchronize()
        """,
        **ON,
    )
    assert not ended.returncode, ended.stdout + ended.stderr
