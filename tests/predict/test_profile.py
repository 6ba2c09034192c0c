# SPDX-License-Identifier: BSD-3-Clause
"""Described devices as profiles of ``OPENREG_PROFILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from openreg_predict import device_names, load_device
from openreg_predict._devices import description
from openreg_predict._profile import read_profile
from support.programs import run, variables
from torch_openreg._profiles import Profile, built_in, load

NVIDIA = [name for name in device_names() if load_device(name).vendor == "nvidia"]


@pytest.mark.parametrize("name", NVIDIA)
def test_described_device_is_a_profile(name: str) -> None:
    read, device = Profile(**read_profile(name)), load_device(name)
    assert read.name == device.name
    reserved = device.get("ecc_memory") or 0
    assert read.total_memory == device["memory_capacity"] - reserved


def test_error_correction_takes_a_sixteenth_of_memory_without_its_own_bits() -> None:
    with_ecc = {
        name: load_device(name)["memory_capacity"] / size
        for name in NVIDIA
        if (size := load_device(name).get("ecc_memory"))
    }
    assert with_ecc == {"a40": 16, "l4": 16, "p4": 16}


@pytest.mark.parametrize(
    ("name", "access"),
    [("rtx3090", False), ("rtx4090", False), ("a40", None)],
)
def test_peer_access_is_the_one_of_the_description(
    name: str, access: bool | None
) -> None:
    assert read_profile(name)["peer_access"] is access


@pytest.mark.parametrize(("name", "access"), [("rtx4090", "False"), ("a40", "True")])
def test_devices_answer_about_peer_access_as_described(name: str, access: str) -> None:
    source = "import torch; print(torch.openreg.can_device_access_peer(0, 1))"
    environment = variables(OPENREG_PROFILE=name, OPENREG_DEVICE_COUNT="2")
    ended = run(sys.executable, "-c", source, environment=environment)
    assert ended.stdout.strip() == access, ended.stderr


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
    known, read = built_in()[name], Profile(**read_profile(described))
    assert known.capability == read.capability
    assert known.multi_processor_count == read.multi_processor_count
    # A part of the memory is reserved.
    assert 0.9 * read.total_memory < known.total_memory <= read.total_memory


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
