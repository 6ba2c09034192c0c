# SPDX-License-Identifier: BSD-3-Clause
"""Writes the outcome of each test to a file, for ``python -m torch_openreg hunt``.

The file has a JSON object per line: the start of a test, or its outcome.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest


def configure(config: pytest.Config) -> None:
    """Adds what the options ask for.

    Raises:
        pytest.UsageError: If an option has a wrong value.
    """
    file, nth = config.option.openreg_record, config.option.openreg_fail_malloc
    if nth is not None:
        if not nth.isdecimal() or int(nth) < 1:
            raise pytest.UsageError(
                f"--openreg-fail-malloc is {nth!r}, expected a whole number, at least 1"
            )
        config.pluginmanager.register(_FailingMalloc(int(nth)), "openreg-fail-malloc")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Record(Path(file)), "openreg-record")


class _FailingMalloc:
    """Fails allocations of device memory in each test, from the nth on.

    One failure has no effect, because the allocator frees its cache and tries again.
    """

    def __init__(self, nth: int) -> None:
        self._nth = nth

    @pytest.fixture(autouse=True)
    def _openreg_fail_malloc(self) -> Iterator[None]:
        import torch

        from torch_openreg.testing import inject_failure

        torch.accelerator.empty_cache()  # so that allocations reach the device
        with inject_failure("malloc", first=self._nth, period=1):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.excinfo is not None and _is_out_of_memory(call.excinfo.value):
            report.user_properties.append(("openreg_out_of_memory", True))
        return report


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Returns whether an error reports that memory is exhausted."""
    import torch

    from openreg_runtime import OpenRegError

    while error is not None:
        if isinstance(error, torch.OutOfMemoryError):
            return True
        if isinstance(error, OpenRegError) and "injected" in str(error):
            return True
        error = error.__cause__
    return False


class _Record:
    def __init__(self, file: Path) -> None:
        self._file = file

    def _write(self, **fields: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(test=nodeid, outcome="started")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            properties = dict(report.user_properties)
            self._write(
                test=report.nodeid,
                outcome="failed",
                when=report.when,
                message=_message(report),
                out_of_memory=bool(properties.get("openreg_out_of_memory")),
            )
        elif report.when == "call" or report.skipped:
            self._write(test=report.nodeid, outcome=report.outcome)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._write(test=nodeid, outcome="finished")

    def pytest_sessionfinish(self) -> None:
        self._write(test="", outcome="ended")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(
                test=report.nodeid or "collection",
                outcome="failed",
                when="collect",
                message=_message(report),
                out_of_memory=False,
            )


def _message(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
