# SPDX-License-Identifier: BSD-3-Clause
"""Injected failures: which calls they hit, and which calls report them."""

from __future__ import annotations

import time

import pytest

import openreg_runtime as runtime
from openreg_runtime import failures


def outcomes(call, count: int) -> list[str]:
    """Makes ``count`` calls and returns the error of each, or ``"ok"``."""
    names = []
    for _ in range(count):
        try:
            call()
            names.append("ok")
        except runtime.OpenRegError as error:
            names.append(error.name.removeprefix("orError"))
    return names


def test_the_nth_allocation_fails_with_its_number() -> None:
    with failures.inject_failure("malloc", first=2, device=1) as failure:
        runtime.Buffer(8, device=1)
        with pytest.raises(
            runtime.OpenRegError,
            match="injected failure: allocation number 2 on device 1",
        ) as caught:
            runtime.Buffer(8, device=1)
        assert caught.value.name == "orErrorMemoryAllocation"
        assert caught.value.code == 6
        runtime.Buffer(8, device=1)
        assert (failure.calls, failure.hits) == (3, 1)


def test_pinned_allocations_fail_apart_from_those_of_devices() -> None:
    with failures.inject_failure("malloc_host") as failure:
        runtime.Buffer(8)
        assert outcomes(lambda: runtime.PinnedBuffer(8), 2) == [
            "MemoryAllocation",
            "ok",
        ]
    assert (failure.calls, failure.hits) == (2, 1)


def test_period_hits_each_nth_call_after_the_first() -> None:
    with failures.inject_failure("malloc", first=2, period=3):
        failed = outcomes(lambda: runtime.Buffer(8), 9)
    assert [i for i, name in enumerate(failed, 1) if name != "ok"] == [2, 5, 8]


def test_a_probability_of_0_hits_no_call() -> None:
    with failures.inject_failure("malloc", probability=0, period=1) as failure:
        assert outcomes(lambda: runtime.Buffer(8), 5) == ["ok"] * 5
    assert (failure.calls, failure.hits) == (5, 0)


def test_the_same_seed_hits_the_same_calls() -> None:
    def hits(seed: int) -> list[str]:
        with failures.inject_failure("malloc", probability=0.5, seed=seed, first=5):
            return outcomes(lambda: runtime.Buffer(8), 64)

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert hits(1)[:4] == ["ok"] * 4
    assert 10 < hits(1).count("MemoryAllocation") < 50


def test_failed_launch_surfaces_at_the_next_wait() -> None:
    stream = runtime.Stream()
    ran = []
    with failures.inject_failure("launch", first=2) as failure:
        for i in range(3):
            stream.launch(ran.append, i)
        with pytest.raises(
            runtime.OpenRegError, match="injected failure: launch number 2 on device 0"
        ) as caught:
            stream.synchronize()
    assert caught.value.name == "orErrorLaunchFailure"
    assert ran == [0]  # the work behind the failure was dropped
    assert (failure.calls, failure.hits) == (3, 1)
    stream.launch(ran.append, 3)
    stream.synchronize()
    assert ran == [0, 3]


def test_failed_copy_surfaces_at_the_call_that_waits() -> None:
    stream = runtime.Stream()
    block, pinned = runtime.Buffer(8), runtime.PinnedBuffer(8)
    with failures.inject_failure("copy"):
        with pytest.raises(runtime.OpenRegError, match="copy number 1") as caught:
            block.copy_from(bytes(8))
        assert caught.value.name == "orErrorLaunchFailure"
    with failures.inject_failure("copy", period=2) as failure:
        block.copy_from(pinned, stream)
        block.fill(1, stream)
        block.copy_to(pinned, stream)
        with pytest.raises(runtime.OpenRegError, match="copy number 1"):
            stream.synchronize()
    assert (failure.calls, failure.hits) == (3, 2)


def test_copies_and_host_functions_are_no_launches() -> None:
    stream = runtime.Stream()
    block, pinned = runtime.Buffer(8), runtime.PinnedBuffer(8)
    ran = []
    with failures.inject_failure("launch", period=1) as failure:
        block.copy_from(pinned, stream)
        stream.launch_host(ran.append, 1)
        stream.synchronize()
    assert ran == [1]
    assert (failure.calls, failure.hits) == (0, 0)


def test_kernel_that_a_failure_hits_releases_its_arguments() -> None:
    stream = runtime.Stream()
    block = runtime.Buffer(64)
    with failures.inject_failure("launch"):
        stream.launch(print, block)
        del block
        with pytest.raises(runtime.OpenRegError):
            stream.synchronize()
    # The fixture no_leak detects the block if it is not freed.


def test_delay_holds_the_work_but_not_the_call() -> None:
    stream = runtime.Stream()
    ran = []
    with failures.inject_failure("launch", delay=0.05) as failure:
        start, end = runtime.Event(), runtime.Event()
        start.record(stream)
        stream.launch(ran.append, 1)
        end.record(stream)
        stream.synchronize()
        assert failure.hits == 1
    assert ran == [1]
    assert start.elapsed_time(end) >= 50


def test_delay_holds_an_allocation() -> None:
    start = time.monotonic()
    with failures.inject_failure("malloc", delay=0.05) as failure:
        runtime.Buffer(8)
    assert failure.hits == 1
    assert time.monotonic() - start >= 0.05


def test_device_counts_only_its_own_calls() -> None:
    with failures.inject_failure("malloc", device=runtime.Device(1)) as failure:
        assert outcomes(lambda: runtime.Buffer(8, 0), 2) == ["ok", "ok"]
        assert outcomes(lambda: runtime.Buffer(8, 1), 2) == ["MemoryAllocation", "ok"]
    assert failure.calls == 2


@pytest.mark.parametrize("error", ["IllegalAddress", "DeviceLost"])
def test_device_failure_persists_until_a_reset(error: str) -> None:
    device = runtime.Device(1)
    stream = runtime.Stream(device)
    with failures.inject_failure("launch", error=error, device=device):
        stream.launch(int)
        assert outcomes(stream.synchronize, 2) == [error, error]
        assert outcomes(lambda: runtime.Buffer(8, device), 1) == [error]
        assert outcomes(lambda: runtime.Buffer(8, 0), 1) == ["ok"]
        device.reset()
    runtime.Buffer(8, device).fill(1)


def test_all_failures_count_and_the_first_one_that_hits_decides() -> None:
    stream = runtime.Stream()
    with (
        failures.inject_failure("launch", first=2) as outer,
        failures.inject_failure("launch", first=2, error="IllegalAddress") as inner,
    ):
        stream.launch(int)
        stream.launch(int)
        assert outcomes(stream.synchronize, 2) == ["LaunchFailure", "ok"]
    assert (outer.calls, outer.hits, inner.calls, inner.hits) == (2, 1, 2, 1)


def test_failure_ends_with_its_context_also_by_an_exception() -> None:
    with (
        pytest.raises(KeyError),
        failures.inject_failure("malloc", period=1) as failure,
    ):
        raise KeyError
    runtime.Buffer(8)
    assert (failure.calls, failure.hits) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"site": "free"}, "site is 'free', expected one of malloc, malloc_host"),
        ({"error": "Timeout"}, "error is 'Timeout', expected one of none, Mem"),
        ({"first": 0}, "first is 0, expected 1 to 18446744073709551615"),
        ({"first": 2**64}, "first is 18446744073709551616, expected 1 to"),
        ({"period": -1}, "period is -1, expected 0 to 18446744073709551615"),
        ({"probability": 1.5}, "probability is 1.5, expected 0 to 1"),
        ({"probability": float("nan")}, "probability is nan, expected 0 to 1"),
        ({"seed": -1}, "seed is -1, expected 0 to"),
        ({"delay": -0.5}, "delay is -0.5, expected 0 to 3600"),
        ({"delay": 4000}, "delay is 4000, expected 0 to 3600"),
    ],
)
def test_argument_that_is_not_accepted_raises(arguments, reason: str) -> None:
    with (
        pytest.raises(ValueError, match=reason),
        failures.inject_failure(**{"site": "launch"} | arguments),
    ):
        pass


@pytest.mark.parametrize(
    ("site", "arguments", "reason"),
    [
        (
            "malloc",
            {"error": "LaunchFailure"},
            "orErrorLaunchFailure cannot be injected",
        ),
        ("copy", {"error": "MemoryAllocation"}, "MemoryAllocation cannot be injected"),
        ("malloc_host", {"error": "DeviceLost"}, "DeviceLost cannot be injected"),
        ("malloc_host", {"device": 0}, "pinned memory belongs to no device"),
        ("launch", {"device": 7}, "device 7 does not exist"),
    ],
)
def test_arguments_that_contradict_raise(site: str, arguments, reason: str) -> None:
    with (
        pytest.raises(runtime.OpenRegError, match=reason),
        failures.inject_failure(site, **arguments),
    ):
        pass


def test_failures_of_the_environment_hit_the_calls_they_name(run_script) -> None:
    done = run_script(
        """
        import openreg_runtime as runtime

        def outcome(call):
            try:
                call()
                return "ok"
            except runtime.OpenRegError as error:
                return error.name

        print([outcome(lambda: runtime.Buffer(8)) for _ in range(4)])
        stream = runtime.Stream(1)
        stream.launch(int)
        print(outcome(stream.synchronize), runtime.resource_usage().failures)
        """,
        OPENREG_FAILURES="malloc:first=2:period=2; launch:device=1:error=DeviceLost",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['ok', 'orErrorMemoryAllocation', 'ok', 'orErrorMemoryAllocation']",
        "orErrorDeviceLost 2",
    ]


def test_process_exits_with_failures_active_and_work_pending(run_script) -> None:
    done = run_script(
        """
        import openreg_runtime as runtime
        from openreg_runtime import failures

        contexts = [
            failures.inject_failure("launch", period=3),
            failures.inject_failure("copy", period=2, delay=0.01),
            failures.inject_failure("malloc", probability=0.5, seed=1),
        ]
        for context in contexts:
            context.__enter__()  # not released
        stream, block = runtime.Stream(), None
        while block is None:
            try:
                block = runtime.Buffer(1024)
            except runtime.OpenRegError:
                pass
        pinned = runtime.PinnedBuffer(1024)
        for _ in range(1000):
            stream.launch(lambda: None)
            block.copy_from(pinned, stream)
        runtime.Device(1).lose()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
