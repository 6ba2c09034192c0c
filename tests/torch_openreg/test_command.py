# SPDX-License-Identifier: BSD-3-Clause
"""python -m torch_openreg: its output, and that its self-check can fail."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.metadata import version

import pytest
import torch

import openreg_runtime
from support.programs import Ended, Program, run, variables
from torch_openreg import _check


@pytest.fixture
def command() -> Program:
    """Runs the command with arguments; keyword arguments are its environment."""

    def start(*arguments: str, **environment: str) -> Ended:
        command = (sys.executable, "-m", "torch_openreg", *arguments)
        return run(*command, environment=variables(**environment))

    return start


def sections(output: str) -> dict[str, list[list[str]]]:
    """Returns the rows of each section as their cells."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for line in output.splitlines():
        if line.startswith("  "):
            found[title].append(re.split(r"\s{2,}", line.strip()))
        else:
            title = line
            found[title] = []
    return found


def test_status_shows_versions_devices_settings_and_checks(command: Program) -> None:
    result = command(OPENREG_DEVICE_MEMORY="1GiB", OPENREG_DEVICE_COUNT="3")
    assert result.returncode == 0, result.stderr
    found = sections(result.stdout)
    packages = dict(found["versions"])
    assert packages["torch-openreg"] == version("torch-openreg")
    assert packages["torch"] == version("torch")
    assert [row[0] for row in found["devices"]] == ["0", "1", "2"]
    assert found["devices"][2][2].startswith("1.00 GiB")
    settings = {name: (value, source) for name, value, source, _ in found["settings"]}
    assert settings["OPENREG_DEVICE_MEMORY"] == ("1GiB", "environment")
    assert settings["OPENREG_LAUNCH_BLOCKING"] == ("0", "default")
    assert settings["OPENREG_DISABLE"] == ("none", "default")
    assert settings["OPENREG_INLINE_BYTES"] == ("65536", "default")
    assert settings["OPENREG_SANITIZER"] == ("0", "default")
    states = [mechanism.state for mechanism in torch.openreg.mechanisms()]
    on, planned = states.count("on"), states.count("planned")
    assert found["mechanisms"] == [[f"{on} on, {planned} planned, off: none"]]
    assert found["self-check"] == [[f"{name}: ok"] for name in _check._CHECKS]


def test_status_works_without_autoload_of_torch(command: Program) -> None:
    result = command("status", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert result.returncode == 0, result.stderr
    settings = {row[0]: row[1:3] for row in sections(result.stdout)["settings"]}
    assert settings["TORCH_DEVICE_BACKEND_AUTOLOAD"] == ["0", "environment"]


def test_mechanism_that_is_left_out_is_told_and_fails_its_check(
    command: Program,
) -> None:
    result = command(OPENREG_DISABLE="autocast,gpu_trace")
    assert result.returncode == 1
    found = sections(result.stdout)
    assert found["mechanisms"][0][0].endswith("off: gpu_trace, autocast")
    (failed,) = [row[0] for row in found["self-check"] if not row[0].endswith(": ok")]
    assert failed == (
        "autocast: failed: Autocast on openreg is left out: OPENREG_DISABLE names "
        "autocast"
    )


def test_every_check_fails_on_a_device_that_fails(command: Program) -> None:
    result = command(OPENREG_FAILURES="launch:period=1;copy:period=1")
    assert result.returncode == 1
    states = dict(
        row[0].split(": ", 1) for row in sections(result.stdout)["self-check"]
    )
    assert states.keys() == _check._CHECKS.keys()
    for name in ("copies", "operators", "gradients", "random numbers", "autocast"):
        assert "injected failure: " in states[name]


@pytest.mark.parametrize(
    ("name", "function", "wrong"),
    [
        ("copies", "torch.Tensor.cpu", "lambda x: real(x) + 1"),
        ("operators", "torch.softmax", "lambda x, d: real(x, d) * x.is_openreg"),
        ("gradients", "torch.Tensor.sum", "lambda x: real(x) * x.is_openreg"),
        ("random numbers", "torch.rand", "lambda *s, **k: real(*s, **k) + len(k)"),
        ("streams and events", "torch.Tensor.__mul__", "lambda x, y: real(x, y) + 1"),
        ("memory", "torch.accelerator.memory_allocated", "lambda device: 7"),
        ("autocast", "torch.mm", "lambda x, y: real(x, y).float()"),
    ],
)
def test_check_sees_a_wrong_result(
    name: str, function: str, wrong: str, output: Callable[..., str]
) -> None:
    source = f"""
    import torch
    from torch_openreg import _check
    real = {function}
    {function} = {wrong}
    print(*(name for name, error in _check.run() if error), sep=",")
    """
    assert name in output(source).split(",")


def test_every_check_has_a_wrong_result_here() -> None:
    (parameters,) = test_check_sees_a_wrong_result.pytestmark
    assert [row[0] for row in parameters.args[1]] == list(_check._CHECKS)


def test_mechanisms_are_listed_as_the_module_lists_them(command: Program) -> None:
    result = command("mechanisms", OPENREG_DISABLE="rnn")
    assert result.returncode == 0, result.stderr
    expected = []
    for m in torch.openreg.mechanisms():
        state = "off" if m.name == "rnn" else m.state
        expected += [f"{m.name} ({state}): {m.summary}", f"  without it: {m.without}"]
        if state != "planned":
            expected.append(f"  code: {m.source}")
    assert result.stdout.splitlines() == expected


def test_wrong_setting_is_an_error_that_names_it(command: Program) -> None:
    result = command(OPENREG_DEVICE_COUNT="many")
    assert result.returncode == 1
    assert "OPENREG_DEVICE_COUNT" in result.stderr
    assert "Traceback" not in result.stderr


def test_info_of_the_runtime_shows_the_settings_of_all_packages() -> None:
    result = run(
        sys.executable, "-m", "openreg_runtime", "info", environment=variables()
    )
    shown = {
        row[0] for row in sections(result.stdout.replace("\n\n", "\n"))["settings"]
    }
    # openreg-cuda, which may be installed, has a setting that this process lacks.
    loaded = {setting.name for setting in openreg_runtime.settings()}
    assert shown - {"OPENREG_CUDA_REPORT"} == loaded - {"OPENREG_CUDA_REPORT"}
    assert {"OPENREG_DISABLE", "OPENREG_INLINE_BYTES", "OPENREG_SANITIZER"} < shown


def test_unknown_mechanism_is_an_error(command: Program) -> None:
    result = command(OPENREG_DISABLE="gaurd")
    assert result.returncode == 1
    assert "OPENREG_DISABLE='gaurd' is not valid" in result.stderr


def test_unknown_command_is_refused_with_those_there_are(command: Program) -> None:
    result = command("statsu")
    assert result.returncode == 2
    assert re.search(r"invalid choice: 'statsu'.*status.*mechanisms", result.stderr)
