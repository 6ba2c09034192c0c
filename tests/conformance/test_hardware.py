# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's hardware classification of tests."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from torch.testing._internal import common_utils

from openreg_conformance import hardware, junit
from support.versions import TORCH, since


@pytest.mark.parametrize(
    ("device", "name"),
    [("cpu", "CPU"), ("acme", "ACCELERATOR"), ("cuda:1", "ACCELERATOR")],
)
def test_cases_are_classified_by_the_device(device: str, name: str) -> None:
    assert hardware.classification(device) == name


def test_junit_has_the_classification(report: dict[str, Any]) -> None:
    root = ElementTree.fromstring(junit.document(report))
    found = {(each.get("name"), each.get("value")) for each in root.iter("property")}
    assert found == {("hw_classification", "ACCELERATOR")}


@pytest.mark.skipif(TORCH >= (2, 14), reason="torch >= 2.14")
def test_earlier_versions_have_no_class() -> None:
    assert hardware.class_of("ACCELERATOR") is None


@since(2, 14)
@pytest.mark.parametrize("name", ["ACCELERATOR", "CPU"])
def test_pytorch_selects_cases_by_their_class(name: str) -> None:
    chosen: list[str] = []
    common_utils.filter_by_hw_classification(
        ["a case"],
        {common_utils.HardwareClassification[name]},
        get_class=lambda _: hardware.class_of(name),
        on_match=chosen.append,
    )
    assert chosen == ["a case"]
