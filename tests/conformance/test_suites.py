# SPDX-License-Identifier: BSD-3-Clause
"""The suites: names, programs, and the control."""

from __future__ import annotations

import fnmatch
import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from openreg_conformance import expectations
from openreg_conformance.case import Case
from openreg_conformance.checks.observing import Programs
from openreg_conformance.mechanisms import MECHANISMS
from openreg_conformance.suites import FOUNDATIONS, SUITES, cases
from support.programs import ROOT
from support.versions import TORCH

from .conftest import Command

GENERATED = ("operators", "modules", "optimizers")
WRITTEN = tuple(each for each in SUITES if each not in GENERATED)


def listed(level: str, suites: tuple[str, ...] = WRITTEN) -> list[Case]:
    return list(cases(suites, level))


@pytest.mark.parametrize("level", ["smoke", "sample", "whole"])
def test_names_of_cases_are_unique(level: str) -> None:
    names = [case.name for case in listed(level, SUITES)]
    assert len(set(names)) == len(names)
    assert set(FOUNDATIONS) <= set(names)


def test_levels_hold_each_other() -> None:
    smoke, sample, whole = (
        {case.name for case in listed(level)} for level in ("smoke", "sample", "whole")
    )
    assert smoke < sample <= whole


def test_every_case_has_a_mechanism_a_title_and_a_share() -> None:
    for case in listed("whole", SUITES):
        assert case.mechanism in MECHANISMS
        assert case.title
        assert 0 < case.users <= 1


def test_sparse_cases_are_one_mechanism_that_few_need() -> None:
    found = {case.name: case for case in listed("whole", ("operators",))}
    dense = found["operators/mul/float32/forward"]
    sparse = found["operators/mul/sparse_csr/float32/forward"]
    assert (sparse.mechanism, sparse.subject) == ("sparse", "sparse_csr")
    assert sparse.users < dense.users / 10


# Operators that PyTorch's database has gained since torch 2.13.
ADDED = ("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu",)


def test_every_expectation_for_openreg_is_of_a_case() -> None:
    known = expectations.read(ROOT / "tests" / "sweeps" / "openreg.toml")
    names = [case.name for case in listed("whole", SUITES)]
    for each in known:
        for pattern in each.cases:
            is_added = TORCH < (2, 14) and pattern.split("/")[1] in ADDED
            assert is_added or fnmatch.filter(names, pattern), pattern


def rounded(device: str) -> Tensor:
    return torch.full((2,), 1.0 if device == "cpu" else 1.0000001, device=device)


def wrong(device: str) -> Tensor:
    return torch.full((2,), 1.0 if device == "cpu" else 1.1, device=device)


def drawn(device: str) -> Tensor:
    return torch.rand(2) if device == "cpu" else torch.full((2,), 0.5, device=device)


def drawn_on_the_host(device: str) -> Tensor:
    drawn = torch.rand(2)
    return drawn if device == "cpu" else torch.full((2,), 9.0, device=device)


def of_another_shape(device: str) -> Tensor:
    return drawn(device)[: 1 if device == "cpu" else 2]


@pytest.mark.parametrize(
    ("program", "passes", "has_bits"),
    [
        (rounded, True, False),
        (wrong, False, False),
        (drawn, True, False),
        (drawn_on_the_host, False, False),
        (of_another_shape, False, False),
        (lambda device: torch.ones(2, device=device), True, True),
    ],
)
def test_programs_need_the_bits_of_the_cpu_only_where_they_are_demanded(
    program: Callable[[str], Tensor], passes: bool, has_bits: bool
) -> None:
    programs = Programs("suites.semantics.some")
    programs.program(program)
    (case,) = programs.cases("sample")
    verdict = case.run("openreg")
    assert (verdict.passed == verdict.made) == passes
    assert (not verdict.message and verdict.inexact is None) == has_bits


def test_every_module_of_the_folder_is_a_suite() -> None:
    package = importlib.import_module("openreg_conformance.suites")
    folder = Path(package.__path__[0])
    files = {each.stem for each in folder.iterdir()} - {"__init__", "__pycache__"}
    assert files == set(SUITES)


@pytest.mark.parametrize("case", listed("whole"), ids=lambda case: case.name)
def test_program_of_a_case_needs_nothing_of_the_kit(case: Case) -> None:
    program = case.program("cpu")
    compile(program, case.name, "exec")
    assert "import openreg_conformance" not in program
    assert "from openreg_conformance" not in program
    assert "from ." not in program
    assert "@case" not in program


@pytest.mark.parametrize("suite", ["rng", "autocast", "serialization"])
def test_programs_of_cases_run_by_themselves(suite: str) -> None:
    alone = [
        case for case in listed("smoke", (suite,)) if "accelerator" not in case.name
    ]
    texts = [each.program("openreg") for each in alone]
    joined = "".join(f"exec({text!r}, {{}})\n" for text in texts)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", joined],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_programs_of_observations_run_by_themselves() -> None:
    cases = listed("sample", ("semantics",))
    chosen = [each for each in cases if each.name.count("/") > 1]
    texts = [each.program("openreg") for each in chosen[::20]]
    joined = "".join(f"exec({text!r}, {{}})\n" for text in texts)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-"],
        input=joined,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_cpu_passes_every_suite(command: Command) -> None:
    done = command("run", "--device", "cpu", "--timeout", "240")
    assert done.status == 0, done.output + done.errors
    assert "nothing to fix" in done.output


@pytest.mark.parametrize("tool", ["error_texts", "operator_usage"])
def test_tables_are_those_of_the_workspace(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / f"{tool}.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
