# SPDX-License-Identifier: BSD-3-Clause
"""Forked children that can use devices are checked like their parent."""

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
results = context.Queue()
process = context.Process(target=child, args=(results,))
process.start()
print(results.get(timeout=60), results.get(timeout=60))
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


THREAD_IN_A_BLOCK = """
    with torch.openreg.sanitizer.enabled():
        thread = threading.Thread(target=lambda: print("thread"))
        thread.start()
        thread.join()
    print(torch.openreg.sanitizer.is_enabled())
"""


def test_threads_and_blocks_of_a_child_that_cannot_use_devices(output: Output) -> None:
    source = f"""
import os, threading, torch
def child():
    print(torch.openreg.sanitizer.is_enabled())
    {THREAD_IN_A_BLOCK}
with torch.openreg.sanitizer.enabled():
    torch.ones(3, device="openreg")
    pid = os.fork()
    if not pid:
        child()
if not pid:
    print(torch.openreg.sanitizer.is_enabled(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], torch.openreg.sanitizer.is_enabled())
"""
    assert output(source) == "False\nthread\nFalse\nFalse\n0 False"


def test_child_of_enable_that_cannot_use_devices(output: Output) -> None:
    source = f"""
import os, threading, torch
torch.ones(3, device="openreg")
pid = os.fork()
if not pid:
    {THREAD_IN_A_BLOCK}
    torch.openreg.sanitizer.disable()
    print(torch.openreg.sanitizer.is_enabled(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], torch.openreg.sanitizer.is_enabled())
"""
    assert output(source, OPENREG_SANITIZER="1") == "thread\nFalse\nFalse\n0 True"


@pytest.mark.parametrize("inside", [True, False])
def test_block_of_another_thread_does_not_count_in_a_child(
    output: Output, inside: bool
) -> None:
    block = "torch.openreg.sanitizer.enabled()" if inside else "nullcontext()"
    source = f"""
import os, threading, torch
from contextlib import nullcontext
entered, forked = threading.Event(), threading.Event()
def hold():
    with torch.openreg.sanitizer.enabled():
        entered.set()
        forked.wait()
thread = threading.Thread(target=hold)
thread.start()
entered.wait()
with {block}:
    pid = os.fork()
    if not pid:
        print(torch.openreg.sanitizer.is_enabled())
if not pid:
    print(torch.openreg.sanitizer.is_enabled(), threading.getprofile(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1], torch.openreg.sanitizer.is_enabled())
forked.set()
thread.join()
print(torch.openreg.sanitizer.is_enabled())
"""
    assert output(source) == f"{inside}\nFalse None\n0 True\nFalse"


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
