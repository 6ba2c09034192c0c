# SPDX-License-Identifier: BSD-3-Clause
"""Runs the check of each step in docs/bring_up.md before and after the step.

The section of a step has one bash block, the check, and two text blocks: the output of
the check after the step, and its error before the step.
"""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from support.backends import NAME, SKELETON, Environment
from support.programs import ROOT, Ended, run

PAGE = ROOT / "docs" / "bring_up.md"
STEPS = 10

# Replaces a test file of PyTorch's sources and follows its conventions.
TEST_TORCH = """
import torch
from torch.testing._internal.common_device_type import (
    instantiate_device_type_tests,
    onlyCUDA,
)
from torch.testing._internal.common_utils import TestCase

class TestTorch(TestCase):
    @onlyCUDA
    def test_stream(self, device):
        self.assertEqual(torch.Stream(device).device, torch.device(device))
    def test_graph(self, device):
        raise NotImplementedError

class TestCUDAGraphs(TestCase):
    def test_capture(self, device):
        raise NotImplementedError

instantiate_device_type_tests(TestTorch, globals())
instantiate_device_type_tests(TestCUDAGraphs, globals(), except_for="cpu")
"""


@dataclass
class Step:
    """A section of the page: its number, its check, and the output of the check."""

    number: int
    text: str
    check: str
    prints: str
    error: str


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def steps() -> list[Step]:
    found = []
    for heading, text in sections().items():
        if number := re.match(r"Step (\d+): ", heading):
            (check,) = blocks(text, "bash")
            prints, error = blocks(text, "text")
            found.append(Step(int(number[1]), text, check, prints, error.rstrip("\n")))
    return found


def update(folder: Path, step: int, rename: ModuleType) -> None:
    """Updates a folder to a step; unchanged files keep their modification time."""
    new = folder.with_name("new")
    shutil.rmtree(new, ignore_errors=True)
    rename.write(NAME, new, step)
    wanted = {path.relative_to(new) for path in new.rglob("*") if path.is_file()}
    for path in wanted:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != (new / path).read_bytes():
            shutil.copy(new / path, target)


def said(ended: Ended) -> str:
    """Returns the exception of a failed program, or the signal that ended it."""
    if ended.returncode in (-signal.SIGSEGV, 128 + signal.SIGSEGV):
        return "Segmentation fault"
    traceback = ended.stderr.rstrip("\n").splitlines()
    # The exception follows the last line of the traceback.
    last = max(
        (i for i, line in enumerate(traceback) if re.match(r'  File "|    ', line)),
        default=-1,
    )
    return "\n".join(traceback[last + 1 :])


@dataclass
class Built:
    """Results of the checks by step, before and after the step, and of the tests."""

    before: dict[int, Ended]
    after: dict[int, Ended]
    tests: Ended
    file: Ended
    file_without_configuration: Ended


@pytest.fixture(scope="module")
def built(
    environment: Environment,
    rename: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Built]:
    folder = tmp_path_factory.mktemp("steps") / "backend"
    folder.mkdir()

    def shell(command: str) -> Ended:
        return run(
            *("bash", "-c", command),
            environment=environment.variables,
            folder=folder,
            seconds=300,
        )

    before, after = {}, {}
    uninstall = ("-m", "pip", "uninstall", "--yes", f"torch-{NAME}")
    environment.run(*uninstall, folder=folder)
    for step in steps():
        before[step.number] = shell(step.check)
        update(folder, step.number, rename)
        environment.install(folder)
        after[step.number] = shell(step.check)
    (tests,) = blocks(sections()["Run PyTorch's own tests"], "bash")
    (file,) = blocks(sections()["PyTorch's test files"], "bash")
    upstream = folder.parent / "pytorch" / "test" / "test_torch.py"
    upstream.parent.mkdir(parents=True)
    upstream.write_text(TEST_TORCH, encoding="utf-8")
    without = file.replace("-p configuration", "")
    assert without != file
    yield Built(before, after, *map(shell, (tests, file, without)))
    environment.run(*uninstall, folder=folder)


EACH = pytest.mark.parametrize("step", steps(), ids=lambda step: f"step_{step.number}")


@EACH
@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_check_prints_the_documented_output(built: Built, step: Step) -> None:
    ended = built.after[step.number]
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == step.prints


@EACH
@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_check_fails_without_the_step_as_documented(built: Built, step: Step) -> None:
    ended = built.before[step.number]
    assert ended.returncode != 0
    if step.error.endswith(" ..."):  # the page omits the rest
        assert said(ended).startswith(step.error.removesuffix(" ..."))
    else:
        assert said(ended) == step.error


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_tests_of_pytorch_pass_after_the_last_step(built: Built) -> None:
    assert built.tests.returncode == 0, built.tests.stdout + built.tests.stderr
    assert " passed" in built.tests.stdout


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_configuration_holds_for_test_files_of_pytorch(built: Built) -> None:
    assert built.file.returncode == 0, built.file.stdout + built.file.stderr
    assert "1 passed in" in built.file.stdout
    # Without it, one test is skipped, and two tests that the device cannot pass fail.
    assert built.file_without_configuration.returncode == 1
    assert "2 failed, 1 skipped in" in built.file_without_configuration.stdout


def test_page_has_each_step_once_and_in_order(rename: ModuleType) -> None:
    assert [step.number for step in steps()] == list(range(1, STEPS + 1))
    assert rename.LAST == STEPS


def test_each_step_quotes_the_skeleton_and_all_files_are_quoted() -> None:
    quoted = set()
    for step in steps():
        paths = re.findall(
            r"^<!-- quote: \.\./examples/minimal_backend/(\S+)",
            step.text,
            re.MULTILINE,
        )
        assert paths, step.number
        quoted |= set(paths)
    sources = {
        path.relative_to(SKELETON).as_posix()
        for folder, pattern in (("csrc", "*.cpp"), ("src", "*.py"))
        for path in (SKELETON / folder).rglob(pattern)
    }
    assert sources <= quoted
