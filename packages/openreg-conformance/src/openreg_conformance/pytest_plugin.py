# SPDX-License-Identifier: BSD-3-Clause
"""Collects ``conformance.toml`` as tests: one per case, run in worker processes.

[run] device = "acme" level = "smoke" # or sample, whole imports = ["my_acme"] # if
torch does not load the device; or files, relative to this one suites = ["device"] #
default: all exact = false # whether to require bitwise equality and the CPU's random
    numbers

[[expected]]
cases = ["operators/linalg.lstsq/*"]
reason = "..."
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .expectations import Expectation
    from .runner import Judge, Settings

NAME = "conformance.toml"


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> ConformanceFile | None:
    """Collects the file."""
    if file_path.name != NAME:
        return None
    collected: ConformanceFile = ConformanceFile.from_parent(parent, path=file_path)
    return collected


class ConformanceFile(pytest.File):
    """A file with a device and its known failures."""

    def collect(self) -> Iterator[ConformanceItem]:
        """Lists the cases; the listing process runs the first of them."""
        from . import expectations
        from .loading import UnusableError
        from .runner import Judge, Worker

        try:
            known = expectations.read(self.path)
        except expectations.ExpectationError as error:
            raise self.CollectError(str(error)) from error
        run = tomllib.loads(self.path.read_text(encoding="utf-8")).get("run", {})
        try:
            settings = self._settings(run)
        except ValueError as error:
            raise self.CollectError(f"{self.path}: {error}") from error
        try:
            worker = Worker(settings, listing=True)
        except UnusableError as error:
            raise self.CollectError(
                f"device {settings.device} cannot be used: {error}"
            ) from error
        judge = Judge(settings, worker)
        self.config.add_cleanup(judge.close)
        for case in worker.cases:
            item: ConformanceItem = ConformanceItem.from_parent(
                self,
                name=case["name"],
                judge=judge,
                known=known,
                device=settings.device,
            )
            yield item

    def _settings(self, run: Any) -> Settings:
        """Returns the settings of the table [run].

        Raises:
            ValueError: If it is invalid.
        """
        from .runner import Settings
        from .suites import SUITES

        may = {"device", "level", "imports", "suites", "timeout", "exact"}
        if not isinstance(run, dict) or "device" not in run:
            raise ValueError("run has no device")
        if wrong := set(run) - may:
            raise ValueError(
                f"run has {sorted(wrong)[0]}; it may have {', '.join(sorted(may))}"
            )
        for name in ("imports", "suites"):
            if not isinstance(run.get(name, []), list):
                raise ValueError(f"{name} is {run[name]!r}, not a list of names")
        imports = [
            str(self.path.parent / each) if str(each).endswith(".py") else each
            for each in run.get("imports", [])
        ]
        return Settings(
            run["device"],
            run.get("level", "smoke"),
            tuple(run.get("suites", SUITES)),
            tuple(imports),
            limit=run.get("timeout", Settings.limit),
            exact=run.get("exact", False),
        )


class ConformanceItem(pytest.Item):
    """A case."""

    def __init__(
        self, *, judge: Judge, known: list[Expectation], device: str, **options: Any
    ) -> None:
        super().__init__(**options)
        self._judge, self._known, self._device = judge, known, device

    @property
    def cls(self) -> type | None:
        """The class that PyTorch's ``--hw-classification`` checks."""
        if "torch" not in sys.modules:  # then PyTorch's plugin is not there
            return None
        from .hardware import class_of, classification

        return class_of(classification(self._device))

    def runtest(self) -> None:
        """Runs the case and converts its outcome for pytest."""
        from .expectations import mark

        found = {"name": self.name, **self._judge.judge(self.name)}
        mark(found, self._known)
        outcome, message = found["outcome"], found.get("message", "")
        if outcome == "skipped":
            pytest.skip(message)
        if "unexpected_pass" in found:
            pytest.fail(
                f"passes, but is expected to fail: {found['unexpected_pass']}", False
            )
        if outcome == "passed":
            return
        if "expected" in found:
            pytest.xfail(found["expected"])
        program = found.get("program", "")
        pytest.fail(f"{outcome}: {message}\n\n{program}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Returns the location and name of the case for reports."""
        return self.path, 0, self.name
