# SPDX-License-Identifier: BSD-3-Clause
"""The facts about PyTorch's test classes in docs/bring_up.md hold for this torch."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from support.programs import Program, variables

# Prints the tests for the device of three test classes.
TESTS = """
import torch
from torch.testing._internal.common_device_type import (
    PrivateUse1TestBase, dtypes, instantiate_device_type_tests, ops
)
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

{configuration}

class TestOps(TestCase):
    @ops(op_db, dtypes=[torch.float32])
    def test_op(self, device, dtype, op): ...

class TestFirst(TestCase):
    @dtypes(torch.float32, torch.int32)
    def test_dtypes(self, device, dtype): ...
    def test_plain(self, device): ...

class TestSecond(TestCase):
    def test_plain(self, device): ...

for each in (TestOps, TestFirst, TestSecond):
    instantiate_device_type_tests(each, globals(), only_for={only_for!r})
for name, each in sorted(globals().items()):
    if name.startswith("Test") and name != "TestCase":
        tests = sorted(test for test in dir(each) if test.startswith("test_"))
        print(name, *(test for test in tests if "openreg" in test))
"""


def made(fork: Program, configuration: str, only_for: str, **environment: str) -> str:
    """Returns the names of the device's tests, a line for each class."""
    source = TESTS.format(configuration=configuration, only_for=only_for)
    result = fork(source=source, environment=variables(**environment))
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_configuration_is_replaced_and_its_names_are_those_of_the_database(
    fork: Program,
) -> None:
    configuration = """
    set_test_configs = PrivateUse1TestBase.set_test_configs
    set_test_configs(test_exclusions={"TestSecond": "*"})
    set_test_configs(
        op_allowlist=["add", "div.floor_rounding", "add.Tensor"],
        test_exclusions={"TestFirst": {"test_dtypes": {"dtypes": [torch.float32]}}},
    )
    """
    printed = made(fork, textwrap.dedent(configuration), "openreg").splitlines()
    assert printed == [
        "TestFirstOPENREG test_plain_openreg",
        "TestOpsPRIVATEUSE1 test_op_add_openreg_float32"
        " test_op_div_floor_rounding_openreg_float32",
        "TestSecondOPENREG test_plain_openreg",
    ]


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        ("privateuse1", ["TestOpsPRIVATEUSE1"]),
        ("openreg", []),
        ("privateuse1,openreg", ["TestFirst", "TestOpsPRIVATEUSE1", "TestSecond"]),
    ],
)
def test_device_joins_tests_for_others_under_both_names(
    fork: Program, names: str, classes: list[str]
) -> None:
    setting = {"PYTORCH_TESTING_DEVICE_FOR_CUSTOM": names}
    few = 'PrivateUse1TestBase.set_test_configs(op_allowlist=["add"])'
    lines = [line.split() for line in made(fork, few, "cpu", **setting).splitlines()]
    found = [name.removesuffix("OPENREG") for name, *tests in lines if tests]
    assert found == classes


def test_hardware_classification_is_newer_than_this_torch() -> None:
    folder = Path(torch.__file__).parent / "testing" / "_internal"
    text = (folder / "common_utils.py").read_text(encoding="utf-8")
    assert "hw-classification" not in text
