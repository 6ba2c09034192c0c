# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plugin of torch-openreg: fixtures and device options.

It is a separate package, because importing ``torch_openreg`` imports torch: a suite
that uses no fixture loads only this file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from . import _record, _schedules

if TYPE_CHECKING:
    import torch

_FAILED = pytest.StashKey[bool]()
_LIMITS_NOT_SET = pytest.StashKey[str]()

_LAUNCH_FAILURE = 8  # orErrorLaunchFailure, which a device survives
_MOST_STREAMS = 1000  # whose failures are cleared


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that set the devices' environment variables."""
    group = parser.getgroup("openreg", "simulated devices of torch-openreg")
    group.addoption(
        "--openreg-device-count",
        metavar="N",
        help="number of openreg devices; sets OPENREG_DEVICE_COUNT",
    )
    group.addoption(
        "--openreg-launch-blocking",
        action="store_true",
        help="run all work before its call returns; sets OPENREG_LAUNCH_BLOCKING=1",
    )
    group.addoption(
        "--openreg-no-cuda-limits",
        action="store_true",
        help="run what CUDA would refuse; sets OPENREG_CUDA_LIMITS=0",
    )
    group.addoption(
        "--openreg-as-cuda",
        action="store_true",
        help="simulate CUDA devices with openreg-cuda; sets OPENREG_DEVICE=cuda",
    )
    group.addoption(
        "--openreg-schedule",
        metavar="NAME",
        help="run each test under a schedule: eager, lazy or random:SEED",
    )
    group.addoption(
        "--openreg-schedules",
        metavar="N",
        help="repeat each test under N random schedules",
    )
    group.addoption(
        "--openreg-fail-malloc",
        metavar="N",
        help="fail allocations of device memory in each test, from the Nth on",
    )
    group.addoption(
        "--openreg-record",
        metavar="FILE",
        help="append the outcome of each test to a file, as JSON lines",
    )
    parser.addini(
        "openreg_as_cuda",
        "whether openreg-cuda simulates CUDA devices",
        type="bool",
        default=False,
    )
    parser.addini(
        "openreg_cuda_limits",
        "whether openreg devices refuse what CUDA refuses; false leaves"
        " OPENREG_CUDA_LIMITS as it is",
        type="bool",
        default=True,
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Sets the variables before a conftest can start the devices.

    Raises:
        pytest.UsageError: If the suite sets limits by a setting or an option, but an
            earlier import of torch has read others; or if it asks for CUDA devices,
            but openreg-cuda is missing or torch is imported already.
    """
    options = early_config.known_args_namespace
    if options.openreg_as_cuda or early_config.getini("openreg_as_cuda"):
        _simulate_cuda()
    if options.openreg_device_count is not None:
        os.environ["OPENREG_DEVICE_COUNT"] = options.openreg_device_count
    if options.openreg_launch_blocking:
        os.environ["OPENREG_LAUNCH_BLOCKING"] = "1"
    if options.openreg_no_cuda_limits:
        os.environ["OPENREG_CUDA_LIMITS"] = "0"
    elif early_config.getini("openreg_cuda_limits"):
        os.environ.setdefault("OPENREG_CUDA_LIMITS", "1")
    else:
        return
    message = _limits_not_set(os.environ["OPENREG_CUDA_LIMITS"])
    if message is None:
        return
    if options.openreg_no_cuda_limits or "openreg_cuda_limits" in early_config.inicfg:
        raise pytest.UsageError(message)
    early_config.stash[_LIMITS_NOT_SET] = message


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker for schedules, and the plugins that options ask for."""
    _schedules.configure(config)
    _record.configure(config)


def _simulate_cuda() -> None:
    try:
        import openreg_cuda

        openreg_cuda.enable()
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        hint = "install the package openreg-cuda" if is_missing else error
        raise pytest.UsageError(f"--openreg-as-cuda, openreg_as_cuda: {hint}") from None


def _limits_not_set(wanted: str) -> str | None:
    """Returns why the limits differ from the variable, or None if they do not."""
    if "openreg_aten" not in sys.modules:
        return None
    import openreg_runtime

    value = openreg_runtime.setting("OPENREG_CUDA_LIMITS").value
    if value == wanted:
        return None
    return (
        f"openreg: OPENREG_CUDA_LIMITS={wanted} has no effect, and {value} applies: "
        "torch was imported before the plugin pytest_openreg ran, as by a plugin of "
        "another package or by the program that calls pytest.main. Set the variable "
        "in the environment of pytest"
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    """Shows that limits could not be set."""
    return config.stash.get(_LIMITS_NOT_SET, None)


@pytest.fixture
def openreg_device() -> Iterator[torch.device]:
    """An openreg device that is current in the test.

    Waits for its work after the test, so that a failure fails this test and not a later
    one, and restores the previous device and stream. A failed device, for example after
    an index out of range, is reset.
    """
    with _kept_state():
        import torch

        import openreg_aten

        yield torch.device(openreg_aten.device_type(), 0)


@pytest.fixture
def openreg_devices() -> Iterator[list[torch.device]]:
    """All openreg devices, at least two. The first is current in the test."""
    with _kept_state():
        import torch

        import openreg_aten

        name = openreg_aten.device_type()
        count = torch.accelerator.device_count()
        if count < 2:
            pytest.fail(
                f"openreg_devices: needs 2 devices, but OPENREG_DEVICE_COUNT is {count}"
            )
        yield [torch.device(name, index) for index in range(count)]


@contextmanager
def _kept_state() -> Iterator[None]:
    import torch_openreg

    torch_openreg.register()
    from torch_openreg import openreg

    with ExitStack() as after:  # runs all callbacks in reverse order
        after.callback(openreg.set_device, openreg.current_device())
        for index in range(openreg.device_count()):
            after.callback(openreg.set_stream, openreg.current_stream(index))
            after.callback(_finish, index)
        openreg.set_device(0)
        yield


def _finish(index: int) -> None:
    """Waits for a device, and resets a failed one for later tests.

    Each call reports the failure of one stream.

    Raises:
        torch.AcceleratorError: The first failure of the device's work.
    """
    import torch

    from torch_openreg import openreg

    failure: torch.AcceleratorError | None = None
    other_failures = 0
    try:
        for _ in range(_MOST_STREAMS):
            try:
                openreg.synchronize(index)
            except torch.AcceleratorError as error:
                failure = failure or error
                other_failures += getattr(error, "error_code", None) != _LAUNCH_FAILURE
            else:
                break
            if other_failures == 2:  # a sticky failure
                openreg.reset_device(index)
                break
        if failure is not None:
            raise failure
    finally:
        del failure  # its traceback holds this frame


@pytest.fixture
def openreg_memory_limit() -> Iterator[Callable[..., None]]:
    """A function ``(limit, device=None)`` that limits memory until the end of the test.

    As ``torch_openreg.testing.memory_limit``: ``limit`` in bytes.
    """
    from torch_openreg.testing import memory_limit

    with ExitStack() as limits:

        def limit(limit: int, device: torch.types.Device = None) -> None:
            limits.enter_context(memory_limit(limit, device))

        yield limit


@pytest.fixture
def openreg_ranks() -> Callable[..., list[Any]]:
    """A function ``(function, size, *arguments)`` that runs ``function`` on ranks.

    As ``torch_openreg.testing.run_ranks``: each rank is a process with a group, and
    ranks that still run after ``seconds`` are ended.
    """
    from torch_openreg.testing import run_ranks

    return run_ranks


@pytest.fixture
def openreg_no_leak(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaks device memory, as ``assert_no_leak`` does.

    Later fixtures count as part of the test. A failed test is not checked, because its
    traceback keeps memory.
    """
    with _no_leak(request, strict=False):
        yield


@pytest.fixture
def openreg_no_leak_strict(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves any block of device memory that it allocated.

    As ``openreg_no_leak``, with ``assert_no_leak(strict=True)``.
    """
    with _no_leak(request, strict=True):
        yield


@contextmanager
def _no_leak(request: pytest.FixtureRequest, strict: bool) -> Iterator[None]:
    from torch_openreg.testing import assert_no_leak

    # pytest keeps the traceback of a failure, and its locals, until the next test runs.
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    with suppress(_TestFailedError), assert_no_leak(strict=strict):
        yield
        if request.node.stash.get(_FAILED, False):
            raise _TestFailedError


class _TestFailedError(Exception):
    """Skips the check of ``assert_no_leak``."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes that a test has failed, for the fixtures that check it afterwards."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
