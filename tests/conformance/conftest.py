# SPDX-License-Identifier: BSD-3-Clause
"""The marker ``whole``, the tally of each test, and the report at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from openreg_conformance.checks.tally import Tally

from . import DEVICE
from .expected_failures import EXPECTED_FAILURES, rounding_reason
from .summary import report

# Before the first backward pass: the device's autograd thread keeps the number that
# holds when it starts. With one thread a kernel sums in one order.
torch.set_num_threads(1)

PROPERTY = "conformance"


def is_whole(config: pytest.Config) -> bool:
    """Whether ``-m whole`` asks for everything."""
    return bool(config.getoption("markexpr") == "whole")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks tests that take every dtype and every sample, instead of a few of each."""
    if is_whole(config):
        for item in items:
            item.add_marker("whole")


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether everything is tested."""
    return is_whole(request.config)


@pytest.fixture
def tally() -> Tally:
    """Collects the checks of a test; what failed is judged when the test ends."""
    return Tally(DEVICE)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Fails a test for the checks that failed and were not expected to."""
    tally = pyfuncitem.funcargs.get("tally")
    try:
        result = yield
    finally:
        if isinstance(tally, Tally):
            # Part of the test's report, which pytest-xdist carries to its controller.
            pyfuncitem.user_properties.append((PROPERTY, tally.plain()))
    if isinstance(tally, Tally):
        judge(tally, pyfuncitem.callspec.id, bool(pyfuncitem.funcargs.get("whole")))
    return result


def judge(tally: Tally, name: str, whole: bool) -> None:
    """Raises what pytest shall make of a test."""
    expected = [each for each in EXPECTED_FAILURES if each.names(name)]
    unexplained = tally.inexact if rounding_reason(name) is None else set()
    surprises = [f"{check}: not the bits of the CPU" for check in sorted(unexplained)]
    surprises += [
        f"{check}: {message}"
        for check, message in tally.failures
        if not any(check in each.checks for each in expected)
    ]
    if surprises:
        pytest.fail("\n".join(surprises), pytrace=False)
    failed = {check for check, _ in tally.failures}
    for each in expected:
        made = tally.checks().intersection(each.checks)
        if whole and each.always and made and not failed.intersection(each.checks):
            pytest.fail(f"passes, but is expected to fail: {each.reason}", False)
    if failed:
        pytest.xfail("; ".join(each.reason for each in expected))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Reports on all tests of this folder."""
    tallies = [
        (each.nodeid.partition("[")[2].rstrip("]"), value)
        for reports in terminalreporter.stats.values()
        for each in reports
        if isinstance(each, pytest.TestReport) and each.when == "call"
        for name, value in each.user_properties
        if name == PROPERTY
    ]
    if tallies:
        terminalreporter.section("conformance with the CPU")
        for line in report(tallies):
            terminalreporter.line(line)
