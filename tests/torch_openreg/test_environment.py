# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables: errors name wrong values, and mechanisms can be disabled."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest
import torch

from support.programs import ROOT, Program

Output = Callable[..., str]

PYTHON_MECHANISMS = [
    "autoload",
    "rename",
    "device_module",
    "methods",
    "multiprocessing",
    "fake_tensor",
    "autocast",
    "process_group",
    "symmetric_memory",
    "activity_profiler",
    "device_interface",
    "inductor",
    "dynamo_backend",
    "aoti_runner",
    "aoti_eager",
]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENREG_DEVICE_COUNT", "0"),
        ("OPENREG_DEVICE_COUNT", "many"),
        ("OPENREG_DEVICE_MEMORY", "16GB"),
        ("OPENREG_LAUNCH_BLOCKING", "yes"),
        ("OPENREG_ISOLATION", "subprocess"),
    ],
)
def test_wrong_value_fails_every_use_but_no_import(
    output: Output, variable: str, value: str
) -> None:
    source = """
    import torch
    torch.manual_seed(0)
    print(torch.openreg.is_available(), torch.openreg.device_count())
    uses = [
        torch.openreg.init,
        torch.openreg.current_device,
        lambda: torch.openreg.set_device(0),
        lambda: torch.ones(2, device="openreg"),
        torch.openreg.Stream,
        torch.openreg.get_rng_state,
        torch.openreg.synchronize,
        torch.openreg.mem_get_info,
    ]
    for use in uses:
        try:
            use()
        except RuntimeError as error:
            print(error)
    """
    first, *errors = output(source, **{variable: value}).splitlines()
    assert first == "False 0"
    assert len([line for line in errors if variable in line and value in line]) == 8


def test_unknown_mechanism_is_named_with_the_known_ones(
    interpreter: Program,
) -> None:
    source = 'import torch; torch.ones(1, device="openreg")'
    result = interpreter(source, OPENREG_DISABLE="methods,gaurd")
    assert result.returncode == 1
    assert "gaurd" in result.stderr
    assert "guard" in result.stderr.replace("gaurd", "")


@pytest.mark.parametrize(
    ("name", "use", "error"),
    [
        (
            "rename",
            'torch.device("openreg")',
            "device type at start of device string: openreg",
        ),
        ("device_module", 'torch.ones(1, device="openreg")', "No module named"),
        ("device_module", "torch.openreg", "has no attribute 'openreg'"),
        ("methods", "torch.ones(1).openreg()", "has no attribute 'openreg'"),
        ("methods", "torch.ones(1).is_openreg", "has no attribute 'is_openreg'"),
        ("methods", "torch.nn.Linear(1, 1).openreg()", "has no attribute 'openreg'"),
    ],
)
def test_mechanism_left_out_fails_as_documented(
    interpreter: Program, name: str, use: str, error: str
) -> None:
    result = interpreter(f"import torch\n{use}", OPENREG_DISABLE=name)
    assert error in result.stderr.splitlines()[-1]


def test_device_without_rename_is_privateuseone(output: Output) -> None:
    source = """
    import torch
    x = torch.ones(2, device="privateuseone").privateuseone() + 1
    stream = torch.privateuseone.Stream("privateuseone:1")
    print(x.device, x.is_privateuseone, stream.device, x.tolist())
    with torch.privateuseone.amp.autocast():
        print((torch.ones(2, 2, device=x.device) @ torch.ones(2, 2).to(x.device)).dtype)
    """
    printed = output(source, OPENREG_DISABLE="rename").splitlines()
    assert printed == [
        "privateuseone:0 True privateuseone:1 [2.0, 2.0]",
        "torch.float16",
    ]


def test_mechanisms_lists_all_as_on_or_planned() -> None:
    entries = torch.openreg.mechanisms()
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names)
    assert all(entry.summary and entry.without for entry in entries)

    ours = [entry for entry in entries if entry.state == "on"]
    last = ours[-len(PYTHON_MECHANISMS) :]
    assert [entry.name for entry in last] == PYTHON_MECHANISMS
    assert {"allocator", "fallback", "guard", "hooks"} < {e.name for e in ours}
    packages = ROOT / "packages"
    assert all((packages / entry.source).is_file() for entry in ours)

    planned = entries[len(ours) :]
    assert {entry.state for entry in planned} <= {"planned"}
    assert not any(entry.enabled or entry.source for entry in planned)


def test_mechanisms_shows_disabled_mechanisms(output: Output) -> None:
    source = """
    import torch
    print([m.name for m in torch.openreg.mechanisms() if m.state == "off"])
    """
    printed = output(source, OPENREG_DISABLE="methods,autocast")
    assert printed == "['methods', 'autocast']"


def test_unknown_mechanism_can_not_be_left_out(interpreter: Program) -> None:
    result = interpreter("import torch", OPENREG_DISABLE="aoti")
    assert result.returncode == 1
    assert "OPENREG_DISABLE='aoti' is not valid: expected names" in result.stderr
    assert "'aoti' is not a mechanism" in result.stderr


def test_entry_points_name_the_mechanisms_in_python() -> None:
    group = entry_points(group="openreg.mechanisms")
    assert {entry.name for entry in group} == set(PYTHON_MECHANISMS)
    assert all(find_spec(entry.module) for entry in group)
