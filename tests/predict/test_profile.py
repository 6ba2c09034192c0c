# SPDX-License-Identifier: BSD-3-Clause
"""Described devices as profiles of ``OPENREG_PROFILE``."""

from __future__ import annotations

from pathlib import Path

import pytest

from openreg_predict import device_names, load_device
from openreg_predict._devices import description
from openreg_predict._profile import read_profile
from torch_openreg._profiles import BUILT_IN, Profile, load

NVIDIA = [name for name in device_names() if load_device(name).vendor == "nvidia"]


@pytest.mark.parametrize("name", NVIDIA)
def test_described_device_is_a_profile(name: str) -> None:
    read = Profile(**read_profile(name))
    assert read.name == load_device(name).name
    assert read.total_memory == load_device(name)["memory_capacity"]


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("p100-pcie", (6, 0)),
        ("p4", (6, 1)),
        ("v100-pcie", (7, 0)),
        ("t4", (7, 5)),
        ("a100-sxm-40", (8, 0)),
        ("a40", (8, 6)),
        ("rtx3090", (8, 6)),
        ("rtx4090", (8, 9)),
        ("h200-sxm", (9, 0)),
    ],
)
def test_capability_follows_from_the_generation(
    name: str, capability: tuple[int, int]
) -> None:
    assert read_profile(name)["capability"] == capability


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("p100", "p100-pcie"),
        ("t4", "t4"),
        ("a100", "a100-sxm-40"),
        ("l4", "l4"),
        ("h100", "h100-sxm"),
    ],
)
def test_built_in_profile_agrees_with_the_described_device(
    name: str, described: str
) -> None:
    built_in, read = BUILT_IN[name], Profile(**read_profile(described))
    assert built_in.capability == read.capability
    assert built_in.multi_processor_count == read.multi_processor_count
    # A part of the memory is reserved.
    assert 0.9 * read.total_memory < built_in.total_memory <= read.total_memory


def test_file_is_read(tmp_path: Path) -> None:
    text = (description.FOLDER / "l4.yaml").read_text()
    file = tmp_path / "mine.yaml"
    file.write_text(text.replace("name: NVIDIA L4", "name: My GPU"))
    assert load(str(file)).name == "My GPU"


def test_device_without_a_compute_capability_is_refused() -> None:
    with pytest.raises(ValueError, match="'cdna3', which has no compute capability"):
        load("mi300x")


def test_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"expected none, one of p100, v100, t4.*h200-sxm"
    ):
        load("t5")
