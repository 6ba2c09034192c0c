# SPDX-License-Identifier: BSD-3-Clause
"""torch.autograd.profiler on the device: events on its streams, and named ranges."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
from torch.autograd import _disable_profiler, _enable_profiler, profiler
from torch.autograd.profiler_util import FunctionEventAvg

import openreg_aten

Output = Callable[..., str]
_IS_CUDA = torch.version.cuda is not None


def averages(profile: profiler.profile) -> dict[str, FunctionEventAvg]:
    return {event.key: event for event in profile.key_averages()}


def test_profile_shows_the_time_of_operators_on_the_device() -> None:
    x = torch.rand(400, 400, device="openreg")
    with profiler.profile(use_device="openreg") as profile:
        for _ in range(3):
            (x @ x).exp()
    found = averages(profile)
    for name in ("aten::matmul", "aten::mm", "aten::exp"):
        assert found[name].count == 3
        assert found[name].device_time_total > 0
    # An operator's time contains that of the operators it calls.
    assert (
        found["aten::matmul"].device_time_total >= found["aten::mm"].device_time_total
    )
    assert "openreg" in profile.table().lower()


def test_times_of_enqueued_work_are_those_of_the_stream() -> None:
    stream = torch.Stream("openreg:0")
    begun, ended = (torch.Event("openreg", enable_timing=True) for _ in range(2))
    x = torch.rand(700, 700, device="openreg")
    with profiler.profile(use_device="openreg") as profile, stream:
        begun.record()
        for _ in range(5):
            x = (x @ x).div_(700)
        ended.record()
    elapsed = begun.elapsed_time(ended) * 1000
    found = averages(profile)
    measured = sum(
        found[name].device_time_total for name in ("aten::matmul", "aten::div_")
    )
    assert 0 < measured <= elapsed + 10  # each is rounded to microseconds
    assert measured > elapsed / 2


def test_profile_of_another_device_times_that_device() -> None:
    with torch.openreg.device(1):
        x = torch.rand(300, 300, device="openreg")
        with profiler.profile(use_device="openreg") as profile:
            x.exp()
    assert averages(profile)["aten::exp"].device_time_total > 0


def test_backward_is_timed_too() -> None:
    x = torch.rand(300, 300, device="openreg", requires_grad=True)
    with profiler.profile(use_device="openreg") as profile:
        (x @ x).sum().backward()
    assert averages(profile)["MmBackward0"].device_time_total > 0


@pytest.mark.parametrize("use_kineto", [False, True])
def test_profile_does_not_complain(output: Output, use_kineto: bool) -> None:
    source = f"""
    import os
    os.dup2(1, 2)
    import torch
    from torch.autograd import profiler
    x = torch.ones(100, 100, device="openreg", requires_grad=True)
    with profiler.profile(use_device="openreg", use_kineto={use_kineto}) as profile:
        (x @ x).sum().backward()
    names = [event.key for event in profile.key_averages()]
    assert "aten::mm" in names, names
    """
    # Kineto prints its start and stop on any device, and a CUDA build looks for a GPU.
    expected = re.compile(r"USDT:" + r"|.*(CUPTI|Cupti|gpuGetDeviceCount)" * _IS_CUDA)
    lines = output(source).splitlines()
    assert [line for line in lines if not expected.match(line)] == []


def test_lost_device_leaves_a_profile_without_its_times(output: Output) -> None:
    source = """
    import warnings
    import torch
    from openreg_runtime import failures
    from torch.autograd import profiler

    x = torch.rand(100, 100, device="openreg")
    with profiler.profile(use_device="openreg") as profile:
        x.exp()
        with failures.lost_device(0):
            try:
                x.sin()
            except RuntimeError:
                print("lost")
    print({event.key for event in profile.key_averages()} >= {"aten::exp"})
    """
    assert output(source).split() == ["lost", "True"]


def test_profile_in_a_thread_has_the_times_of_its_operators() -> None:
    found: list[dict[str, FunctionEventAvg]] = []

    def work() -> None:
        x = torch.rand(300, 300, device="openreg")
        with profiler.profile(use_device="openreg") as profile:
            x.cos()
        found.append(averages(profile))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0]["aten::cos"].device_time_total > 0


@pytest.fixture
def observe() -> Iterator[Callable[..., None]]:
    """Enables the state PRIVATEUSE1, and disables it after the test if needed."""
    enabled = []

    def start(shapes: bool = False, memory: bool = False) -> None:
        options = (shapes, memory, False, False, False, _ExperimentalConfig())
        _enable_profiler(ProfilerConfig(ProfilerState.PRIVATEUSE1, *options), set())
        enabled.append(True)

    openreg_aten.take_ranges()
    yield start
    if torch.autograd._profiler_enabled():
        _disable_profiler()
    openreg_aten.take_ranges()


def test_operators_are_nested_ranges(observe: Callable[..., None]) -> None:
    x = torch.ones(2, 3, device="openreg")
    torch.sin(x)
    observe()
    with torch.profiler.record_function("step"):
        x.exp()
    x.cos()
    _disable_profiler()
    x.sin()
    ranges = openreg_aten.take_ranges()
    depths = {name: depth for name, depth, _ in ranges}
    assert ranges[0][:2] == ("step", 0)
    assert depths["aten::exp"] == 1
    assert depths["aten::cos"] == 0
    assert "aten::sin" not in depths
    assert len({thread for *_, thread in ranges}) == 1
    assert openreg_aten.take_ranges() == []


def test_ranges_have_the_shapes_when_asked(observe: Callable[..., None]) -> None:
    x = torch.ones(2, 3, device="openreg")
    observe(shapes=True)
    x @ x.t()
    _disable_profiler()
    names = [name for name, *_ in openreg_aten.take_ranges()]
    assert "aten::mm, sizes = [[2, 3], [3, 2]]" in names


def test_threads_of_the_backward_pass_have_ranges_of_their_own(
    observe: Callable[..., None],
) -> None:
    x = torch.ones(2, 3, device="openreg", requires_grad=True)
    y = x.exp().sum()
    observe()
    with torch.profiler.record_function("outer"):
        y.backward()
    _disable_profiler()
    ranges = openreg_aten.take_ranges()
    (outer,) = (thread for name, _, thread in ranges if name == "outer")
    ((depth, thread),) = (r[1:] for r in ranges if "ExpBackward0" in r[0] and r[1] == 0)
    assert depth == 0
    assert thread != outer


def test_observer_refuses_options_that_ranges_cannot_show(
    observe: Callable[..., None],
) -> None:
    with pytest.raises(RuntimeError, match="profile_memory, with_stack"):
        observe(memory=True)
    observe()
    with pytest.raises(RuntimeError, match="Profiler is already enabled"):
        observe()


def test_observer_needs_the_stubs(output: Output) -> None:
    source = """
    from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
    from torch.autograd import _enable_profiler
    options = (False, False, False, False, False, _ExperimentalConfig())
    try:
        _enable_profiler(ProfilerConfig(ProfilerState.PRIVATEUSE1, *options), set())
    except RuntimeError as error:
        print(error)
    """
    said = output(source, OPENREG_DISABLE="profiler_stubs")
    assert "PRIVATEUSE1 needs the mechanism profiler_stubs" in said
