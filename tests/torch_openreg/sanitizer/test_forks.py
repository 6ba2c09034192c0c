# SPDX-License-Identifier: BSD-3-Clause
"""Forked children that can use devices are looked at as their parent is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from torch_openreg.testing import run_each_rank

Output = Callable[..., str]

RACE = """
def race():
    x = torch.ones(3, device="openreg")
    try:
        with torch.Stream("openreg"):
            x.zero_()
    except torch.openreg.sanitizer.UnsynchronizedAccessError:
        return "found"
    return "not found"
"""


@pytest.mark.parametrize("enabled", [True, False])
def test_child_that_is_forked_before_a_device_is_used(
    output: Output, enabled: bool
) -> None:
    source = f"""
import os, torch
{RACE}
child = os.fork()
if not child:
    print(torch.openreg.sanitizer.is_enabled(), race(), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1], race())
"""
    found = "found" if enabled else "not found"
    assert (
        output(source, OPENREG_SANITIZER=str(int(enabled)))
        == f"{enabled} {found}\n0 {found}"
    )


def test_child_of_multiprocessing_and_its_threads(output: Output) -> None:
    source = f"""
import multiprocessing, threading, torch
{RACE}
def child(results):
    results.put(race())
    thread = threading.Thread(target=lambda: results.put(race()))
    thread.start()
    thread.join()
context = multiprocessing.get_context("fork")
results = context.SimpleQueue()
process = context.Process(target=child, args=(results,))
process.start()
print(results.get(), results.get())
process.join()
print(process.exitcode)
"""
    assert output(source, OPENREG_SANITIZER="1") == "found found\n0"


def test_child_of_a_block(output: Output) -> None:
    source = f"""
import os, torch
{RACE}
with torch.openreg.sanitizer.enabled():
    child = os.fork()
    if not child:
        print(race(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert output(source) == "found"


def race_on_a_rank(rank: int) -> None:
    x = torch.ones(3, device="openreg")
    with torch.Stream("openreg"):
        x.zero_()


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_race_on_a_rank_fails_it(
    start_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENREG_SANITIZER", "1")
    ranks = run_each_rank(race_on_a_rank, 2, backend=None, start_method=start_method)
    for rank in ranks:
        assert "UnsynchronizedAccessError: possible data race" in rank.failure
