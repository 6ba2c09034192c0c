# SPDX-License-Identifier: BSD-3-Clause
"""``OPENREG_PROFILE`` makes the devices describe themselves as GPUs of a model."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import torch_openreg
from support.programs import Program
from torch_openreg._profiles import built_in

FACTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(torch_openreg.__file__).with_name("built_in_profiles.toml").read_text()
)
SOURCES = FACTS.pop("sources")


def answer(interpreter: Program, source: str, **environment: str) -> str:
    ended = interpreter(f"import torch\n{source}", **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("name", built_in())
def test_device_describes_itself_as_the_gpu(interpreter: Program, name: str) -> None:
    source = """
device = torch.openreg.get_device_properties("openreg:1")
print(device.name, (device.major, device.minor), device.multi_processor_count)
print(torch.openreg.get_device_name(), torch.openreg.get_device_capability())
print(device.total_memory, torch.openreg.mem_get_info()[1])
"""
    gpu = built_in()[name]
    assert answer(interpreter, source, OPENREG_PROFILE=name).splitlines() == [
        f"{gpu.name} {gpu.capability} {gpu.multi_processor_count}",
        f"{gpu.name} {gpu.capability}",
        f"{gpu.total_memory} {gpu.total_memory}",
    ]


def test_each_fact_has_a_source() -> None:
    used = set()
    for name, facts in FACTS.items():
        sources = facts["sources"]
        assert sources.keys() == facts.keys() - {"sources"}, name
        used |= set(sources.values())
    assert used == SOURCES.keys()


@pytest.mark.parametrize("name", FACTS)
def test_reported_memory_is_what_error_correction_and_the_driver_leave(
    name: str,
) -> None:
    facts = FACTS[name]
    left = facts["memory"] - facts["ecc_memory"]
    assert 0.95 * left < facts["total_memory"] < left


PEERS = """
import openreg_runtime
print(torch.openreg.can_device_access_peer(0, "openreg:1"))
try:
    openreg_runtime.Device(0).enable_peer_access(1)
    print("enabled")
except openreg_runtime.OpenRegError as error:
    print(error)
"""


REFUSED = "cannot access the memory of device 1 (OPENREG_PEER_ACCESS is 0)"

# A module of another package, which reads profiles. Its argument is the peer access.
READER = """
def read(value):
    return {
        "name": "Board",
        "capability": (8, 6),
        "total_memory": 1 << 30,
        "multi_processor_count": 82,
        "l2_cache_size": 6 << 20,
        "peer_access": {"yes": True, "no": False}.get(value),
    }
"""


@pytest.fixture
def readers(tmp_path: Path) -> str:
    """Returns a folder for PYTHONPATH with a package that reads profiles."""
    (tmp_path / "boards.py").write_text(READER)
    described = tmp_path / "boards-1.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: boards\n")
    (described / "entry_points.txt").write_text("[openreg.profiles]\nb = boards:read\n")
    return str(tmp_path)


@pytest.mark.parametrize("name", [*FACTS, "none"])
def test_profile_sets_peer_access_unless_the_host_decides_it(
    interpreter: Program, name: str
) -> None:
    source = 'import os; print(os.environ.get("OPENREG_PEER_ACCESS"))'
    access = FACTS.get(name, {}).get("peer_access")
    done = answer(interpreter, source, OPENREG_PROFILE=name)
    assert done == {True: "1", False: "0", None: "None"}[access]


@pytest.mark.parametrize("name", ["yes", "host"])
def test_boards_access_each_other(
    fresh_interpreter: Program, readers: str, name: str
) -> None:
    done = answer(fresh_interpreter, PEERS, OPENREG_PROFILE=name, PYTHONPATH=readers)
    assert done.split() == ["True", "enabled"]


def test_boards_without_peer_access_refuse_it(
    fresh_interpreter: Program, readers: str
) -> None:
    done = answer(fresh_interpreter, PEERS, OPENREG_PROFILE="no", PYTHONPATH=readers)
    assert done.startswith("False")
    assert REFUSED in done


def test_peer_access_setting_wins(
    interpreter: Program, fresh_interpreter: Program, readers: str
) -> None:
    done = answer(interpreter, PEERS, OPENREG_PROFILE="h100", OPENREG_PEER_ACCESS="0")
    assert done.startswith("False")
    assert REFUSED in done
    done = answer(
        fresh_interpreter,
        PEERS,
        OPENREG_PROFILE="no",
        OPENREG_PEER_ACCESS="1",
        PYTHONPATH=readers,
    )
    assert done.split() == ["True", "enabled"]


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("none", "True True False"),
        ("p100", "True False False"),
        ("t4", "True False False"),
        ("a100", "True True True"),
        ("h100", "True True True"),
    ],
)
def test_questions_about_dtypes_have_the_answers_of_the_gpu(
    interpreter: Program, name: str, answers: str
) -> None:
    source = """
print(
    torch.openreg.is_bf16_supported(),
    torch.openreg.is_bf16_supported(including_emulation=False),
    torch.openreg.is_tf32_supported(),
)
"""
    assert answer(interpreter, source, OPENREG_PROFILE=name) == answers


# Prints what each product of bfloat16 matrices does.
PRODUCTS = """
x = torch.ones(4, 4, dtype=torch.bfloat16, device="openreg")
layer = torch.nn.Linear(4, 4, device="openreg").bfloat16()
products = [
    lambda: x @ x,
    lambda: torch.mm(x, x, out=torch.empty_like(x)),
    lambda: torch.addmm(x, x, x),
    lambda: torch.addmm(x, x, x, out=torch.empty_like(x)),
    lambda: x.clone().addmm_(x, x),
    lambda: torch.bmm(x[None], x[None]),
    lambda: torch.baddbmm(x[None], x[None], x[None]),
    lambda: layer(x),
]
for product in products:
    try:
        product()
        print("computed")
    except RuntimeError as error:
        print(str(error).partition("(")[0])
"""


def test_bfloat16_products_fail_on_a_gpu_without_them(interpreter: Program) -> None:
    call = "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `"
    one, many = f"{call}cublasGemmEx", f"{call}cublasGemmStridedBatchedEx"
    done = answer(interpreter, PRODUCTS, OPENREG_PROFILE="p100").splitlines()
    assert done == [one] * 5 + [many] * 2 + [one]


@pytest.mark.parametrize("name", ["none", "v100", "t4", "a100"])
def test_bfloat16_products_are_computed_or_emulated_elsewhere(
    interpreter: Program, name: str
) -> None:
    done = answer(interpreter, PRODUCTS, OPENREG_PROFILE=name).splitlines()
    assert done == ["computed"] * 8


def test_gpu_without_bfloat16_products_computes_all_else(interpreter: Program) -> None:
    source = """
x = torch.rand(8, 8)
y = x.to("openreg")
for dtype in torch.float32, torch.float16:
    print((y.to(dtype) @ y.to(dtype)).cpu().equal(x.to(dtype) @ x.to(dtype)))
print((y.bfloat16() + 1).cpu().equal(x.bfloat16() + 1))
print((y.bfloat16()[:0] @ y.bfloat16()).shape)
"""
    done = answer(
        interpreter, source, OPENREG_PROFILE="p100", OPENREG_HALF_IN_FLOAT32="0"
    )
    assert done.splitlines() == ["True", "True", "True", "torch.Size([0, 8])"]


@pytest.mark.parametrize(
    ("name", "fails"), [("t4", True), ("a100", True), ("l4", False), ("h100", False)]
)
def test_scaled_product_needs_float8_units(
    interpreter: Program, name: str, fails: bool
) -> None:
    source = """
x = torch.ones(16, 16, device="openreg").to(torch.float8_e4m3fn)
one = torch.ones((), device="openreg")
try:
    print(torch._scaled_mm(x, x.t(), one, one, out_dtype=torch.float32)[0, 0].item())
except RuntimeError as error:
    print(str(error)[:54])
"""
    done = answer(interpreter, source, OPENREG_PROFILE=name)
    refused = "torch._scaled_mm is only supported on CUDA devices wit"
    assert done == (refused if fails else "16.0")


def test_memory_runs_out_as_on_the_gpu(interpreter: Program) -> None:
    source = """
def allocate():
    try:
        return torch.empty(15 << 30, dtype=torch.uint8, device="openreg").shape
    except torch.OutOfMemoryError as error:
        return "14.56 GiB" in str(error)
print(allocate())
"""
    assert answer(interpreter, source, OPENREG_PROFILE="t4") == "True"
    assert "torch.Size" in answer(interpreter, source, OPENREG_PROFILE="l4")


def test_device_memory_wins(interpreter: Program) -> None:
    source = "print(torch.openreg.mem_get_info()[1])"
    done = answer(
        interpreter, source, OPENREG_PROFILE="t4", OPENREG_DEVICE_MEMORY="1GiB"
    )
    assert done == str(1 << 30)


@pytest.mark.parametrize("name", ["a100", "none"])
def test_child_process_may_have_another_profile(
    interpreter: Program, name: str
) -> None:
    source = """
import json, os
print(json.dumps({k: v for k, v in os.environ.items() if "OPENREG" in k}))
"""
    inherited = json.loads(answer(interpreter, source, OPENREG_PROFILE="t4"))
    source = "print(torch.openreg.mem_get_info()[1])"
    child = answer(interpreter, source, **(inherited | {"OPENREG_PROFILE": name}))
    assert child == answer(interpreter, source, OPENREG_PROFILE=name)
    if name != "none":
        assert child == str(built_in()[name].total_memory)


def test_unknown_name_is_refused_with_the_known_ones(interpreter: Program) -> None:
    ended = interpreter("import torch", OPENREG_PROFILE="t5")
    assert ended.returncode != 0
    assert "OPENREG_PROFILE='t5' is not valid: expected none" in ended.stderr
    assert "p100, v100, t4, a100, l4, h100" in ended.stderr
