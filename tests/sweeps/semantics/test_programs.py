# SPDX-License-Identifier: BSD-3-Clause
"""The programs of the suite semantics of openreg-conformance, on openreg."""

from __future__ import annotations

import pytest

from openreg_conformance.case import Case
from openreg_conformance.suites import cases
from openreg_conformance.worker import judge

from .agreement import DEVICE

DIFFERS = {"semantics/autograd/sparse_gradients_accumulate": "sparse gradients"}


def marked(case: Case) -> object:
    """Returns a case as a parameter, with its difference in process mode."""
    name = DIFFERS.get(case.name)
    marks = [pytest.mark.differs_in_process(name)] if name else []
    return pytest.param(case, id=case.name.removeprefix("semantics/"), marks=marks)


@pytest.mark.parametrize("case", [*map(marked, cases(["semantics"], "whole"))])
def test_program_agrees_with_the_cpu(case: Case) -> None:
    found = judge(case, DEVICE, exact=True)
    assert found["outcome"] == "passed", found["message"]
