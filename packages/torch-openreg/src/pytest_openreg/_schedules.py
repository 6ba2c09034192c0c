# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests under schedules, and repeats them under several seeds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_FIXTURE = "_openreg_seed"
_PROPERTY = "openreg_schedule"
_DEFAULT_SEEDS = 20


def configure(config: pytest.Config) -> None:
    """Adds the marker, and what the options ask for.

    Raises:
        pytest.UsageError: If an option has a wrong value.
    """
    config.addinivalue_line(
        "markers",
        "openreg_schedules(n=20): repeat the test under n random schedules of the"
        " openreg devices",
    )
    name, seeds = config.option.openreg_schedule, config.option.openreg_schedules
    if seeds is not None and (not seeds.isdecimal() or int(seeds) < 1):
        raise pytest.UsageError(
            f"--openreg-schedules is {seeds!r}, expected a whole number of seeds,"
            " at least 1"
        )
    if name is not None and seeds is not None:
        raise pytest.UsageError(
            "--openreg-schedule and --openreg-schedules exclude each other"
        )
    config.pluginmanager.register(_Seeds(config), "openreg-seeds")
    if name is not None:
        from torch_openreg.testing import _schedule

        try:
            _schedule.check(name)
        except ValueError as error:
            raise pytest.UsageError(f"--openreg-schedule: {error}") from error
        config.pluginmanager.register(_OneSchedule(name), "openreg-schedule")


@contextmanager
def _scheduled(name: str) -> Iterator[None]:
    """Runs work under a schedule, here and in child processes."""
    from torch_openreg.testing import schedule

    before = os.environ.get("OPENREG_SCHEDULE")
    with schedule(name):
        os.environ["OPENREG_SCHEDULE"] = name
        try:
            yield
        finally:
            if before is None:
                os.environ.pop("OPENREG_SCHEDULE", None)
            else:
                os.environ["OPENREG_SCHEDULE"] = before


class _OneSchedule:
    """Runs each test under one schedule, which restarts with each test."""

    def __init__(self, name: str) -> None:
        self._name = name

    @pytest.fixture(autouse=True)
    def _openreg_schedule(self) -> Iterator[None]:
        with _scheduled(self._name):
            yield


class _Seeds:
    """Repeats tests under seeds."""

    def __init__(self, config: pytest.Config) -> None:
        self._seeds: str | None = config.option.openreg_schedules
        self._off = config.option.openreg_schedule is not None

    def _count(self, definition: pytest.Function) -> int:
        """Returns the number of seeds of a test, or 0."""
        if self._off:
            return 0
        marker = definition.get_closest_marker("openreg_schedules")
        if self._seeds is not None:
            return int(self._seeds)
        if marker is None:
            return 0
        count = marker.kwargs.get("n", (*marker.args, _DEFAULT_SEEDS)[0])
        if not isinstance(count, int) or count < 1:
            raise pytest.UsageError(
                f"{definition.nodeid}: openreg_schedules({count!r}): expected a whole"
                " number of seeds, at least 1"
            )
        return count

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        count = self._count(metafunc.definition)
        if count and _FIXTURE in metafunc.fixturenames:
            names = [f"random:{seed}" for seed in range(count)]
            metafunc.parametrize(_FIXTURE, names, ids=names, indirect=True)

    @pytest.fixture(autouse=True)
    def _openreg_seed(self, request: pytest.FixtureRequest) -> Iterator[None]:
        if not hasattr(request, "param"):  # the test is not repeated
            yield
            return
        request.node.user_properties.append((_PROPERTY, request.param))
        with _scheduled(request.param):
            yield

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        failed: dict[str, list[tuple[str, str]]] = {}
        for kind in ("failed", "error"):
            for report in terminalreporter.stats.get(kind, ()):
                name = dict(getattr(report, "user_properties", ())).get(_PROPERTY)
                if name is not None:
                    test = report.nodeid.replace(f"[{name}]", "")
                    test = test.replace(f"-{name}]", "]")
                    failed.setdefault(test, []).append((name, report.nodeid))
        if failed:
            terminalreporter.section("openreg schedules")
        for test, reports in failed.items():
            names = list(dict.fromkeys(name for name, _ in reports))
            terminalreporter.line(f"{test} failed under {', '.join(names)}")
            terminalreporter.line("  repeat: " + _command(test, names[0]))


def _command(test: str, name: str) -> str:
    words = ["python", "-m", "pytest", test, f"--openreg-schedule={name}"]
    return " ".join(map(shlex.quote, words))
