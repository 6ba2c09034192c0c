# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plugin: loads itself, has no cost, and its fixtures clean up."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from support.programs import Program, run, variables

Suite = Callable[..., str]


@pytest.fixture
def suite(fork: Program, tmp_path: Path) -> Suite:
    """Runs a test file in a separate process; returns pytest's output."""

    def start(source: str, *options: str) -> str:
        arguments = prepared(tmp_path, source, *options)
        result = fork(
            source=f"import pytest, sys\nsys.exit(pytest.main({arguments}))",
            environment=variables(),
            folder=tmp_path,
        )
        return result.stdout + result.stderr

    return start


@pytest.fixture
def fresh_suite(tmp_path: Path) -> Suite:
    """Runs the file in a new interpreter, where pytest is imported before PyTorch."""

    def start(source: str, *options: str) -> str:
        arguments = prepared(tmp_path, source, *options)
        result = run(
            *(sys.executable, "-m", "pytest", *arguments),
            environment=variables(),
            folder=tmp_path,
        )
        return result.stdout + result.stderr

    return start


def prepared(folder: Path, source: str, *options: str) -> list[str]:
    """Writes the file, and returns the arguments of pytest."""
    (folder / "test_it.py").write_text(textwrap.dedent(source))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return ["-rA", "-p", "no:cacheprovider", *options]


def outcomes(output: str) -> dict[str, str]:
    """Returns the outcome of each test by its name."""
    found = re.findall(
        r"^(PASSED|FAILED|ERROR) test_it.py::(\w+)", output, re.MULTILINE
    )
    return {name: outcome.lower() for outcome, name in found}


def test_plugin_is_an_entry_point_of_the_package() -> None:
    (plugin,) = entry_points(group="pytest11", name="pytest_openreg")
    assert plugin.value == "pytest_openreg"
    assert plugin.dist is not None
    assert plugin.dist.name == "torch-openreg"


def test_suite_that_uses_no_fixture_does_not_import_torch(fresh_suite: Suite) -> None:
    output = fresh_suite(
        """
        import sys
        def test_it(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("pytest_openreg")
            assert "torch" not in sys.modules
            assert "torch_openreg" not in sys.modules
        """
    )
    assert outcomes(output) == {"test_it": "passed"}, output


def test_devices_are_given_and_current(suite: Suite) -> None:
    output = suite(
        """
        import torch
        def test_one(openreg_device):
            assert openreg_device == torch.device("openreg", 0)
            assert torch.accelerator.current_device_index() == 0
        def test_several(openreg_devices):
            assert openreg_devices == [torch.device("openreg", i) for i in range(3)]
        """,
        "--openreg-device-count=3",
    )
    assert outcomes(output) == {"test_one": "passed", "test_several": "passed"}, output


def test_several_devices_need_two(suite: Suite) -> None:
    output = suite("def test_it(openreg_devices): pass", "--openreg-device-count", "1")
    assert "needs 2 devices, but OPENREG_DEVICE_COUNT is 1" in output
    assert outcomes(output) == {"test_it": "error"}


def test_device_and_stream_are_put_back(suite: Suite) -> None:
    output = suite(
        """
        import torch
        def test_changes(openreg_devices):
            torch.accelerator.set_device_index(1)
            torch.accelerator.set_stream(torch.Stream(openreg_devices[1]))
        def test_after():
            assert torch.accelerator.current_device_index() == 0
            for index in range(2):
                stream = torch.accelerator.current_stream(index)
                assert stream == torch.openreg.default_stream(index)
        """
    )
    assert outcomes(output) == {"test_changes": "passed", "test_after": "passed"}


def test_failure_of_pending_work_belongs_to_its_test(suite: Suite) -> None:
    output = suite(
        """
        import torch
        from torch_openreg.testing import inject_failure
        def test_enqueues(openreg_device):
            source = torch.ones(1000, pin_memory=True)
            target = torch.empty(1000, device=openreg_device)
            with inject_failure("launch"), inject_failure("copy"):
                target.copy_(source, non_blocking=True)
        def test_after(openreg_device):
            assert torch.ones(2, device=openreg_device).tolist() == [1, 1]
        """
    )
    results = outcomes(output)
    assert results["test_after"] == "passed", output
    assert re.search("injected failure: (launch|copy) number 1", output)
    assert re.search(r"^ERROR test_it.py::test_enqueues", output, re.MULTILINE)


def test_failures_of_two_streams_leave_the_memory_of_the_device(suite: Suite) -> None:
    output = suite(
        """
        import pytest, torch
        from torch_openreg.testing import inject_failure
        @pytest.fixture(scope="module")
        def kept():
            return torch.full((5,), 3.0, device="openreg")
        def copy(device):
            source = torch.ones(1000, pin_memory=True)
            target = torch.empty(1000, device=device)
            with inject_failure("launch"), inject_failure("copy"):
                target.copy_(source, non_blocking=True)
        def test_enqueues(kept, openreg_device):
            assert kept.tolist() == [3.0] * 5
            copy(openreg_device)
            with torch.Stream(openreg_device):
                copy(openreg_device)
        def test_after(kept, openreg_device):
            assert kept.tolist() == [3.0] * 5
        """
    )
    assert outcomes(output)["test_after"] == "passed", output
    assert re.search(r"^ERROR test_it.py::test_enqueues", output, re.MULTILINE)
    assert "1 error" in output


def test_memory_limit_ends_with_its_test(suite: Suite) -> None:
    output = suite(
        """
        import pytest, torch
        def test_limited(openreg_device, openreg_memory_limit):
            openreg_memory_limit(8 * 2**20)
            openreg_memory_limit(16 * 2**20, 1)
            for device in ("openreg:0", "openreg:1"):
                with pytest.raises(torch.OutOfMemoryError):
                    torch.empty(2**26, device=device)
        def test_after(openreg_devices):
            for device in openreg_devices:
                torch.empty(2**26, device=device)
        """
    )
    assert outcomes(output) == {"test_limited": "passed", "test_after": "passed"}


def test_leak_fails_the_test_that_asks(suite: Suite) -> None:
    output = suite(
        """
        import torch
        kept = []
        def test_leaks(openreg_no_leak):
            kept.append(torch.ones(10, device="openreg"))
        def test_cleans_up(openreg_no_leak):
            torch.ones(10, device="openreg")
        """
    )
    assert "40 bytes: float32[10] by aten::" in output
    assert outcomes(output)["test_cleans_up"] == "passed"
    assert re.search(r"^ERROR test_it.py::test_leaks", output, re.MULTILINE)


FAILS_AND_LEAKS = """
    import pytest, torch
    kept = []
    def test_fails():
        held = torch.ones(1000, device="openreg")
        assert not held.numel()
    def test_leaks({fixture}):
        kept.append(torch.ones(10, device="openreg"))
    """


@pytest.mark.parametrize("fixture", ["openreg_no_leak", "openreg_no_leak_strict"])
def test_leak_does_not_hide_behind_the_traceback_of_a_failure(
    suite: Suite, fixture: str
) -> None:
    output = suite(FAILS_AND_LEAKS.format(fixture=fixture))
    assert "40 bytes: float32[10] by aten::" in output
    assert re.search(r"^ERROR test_it.py::test_leaks", output, re.MULTILINE), output


def test_leak_hides_from_the_strict_fixture_behind_nothing(suite: Suite) -> None:
    output = suite(
        """
        import torch
        cache, kept = [], []
        def test_fills():
            cache.append(torch.ones(1000, device="openreg"))
        def test_empties(openreg_no_leak_strict):
            kept.append(torch.ones(10, device="openreg"))
            cache.clear()
        """
    )
    assert "40 bytes: float32[10] by aten::" in output
    assert re.search(r"^ERROR test_it.py::test_empties", output, re.MULTILINE), output


def test_failed_test_is_not_blamed_for_memory_kept_by_its_traceback(
    suite: Suite,
) -> None:
    output = suite(
        """
        import torch
        def test_fails(openreg_no_leak):
            held = torch.ones(1000, device="openreg")
            assert not held.numel()
        """
    )
    assert outcomes(output) == {"test_fails": "failed"}, output
    assert "bytes are left" not in output


def test_launches_block_by_an_option(suite: Suite) -> None:
    source = """
        import openreg_runtime
        def test_it(openreg_device):
            value, = (s.value for s in openreg_runtime.settings()
                      if s.name == "OPENREG_LAUNCH_BLOCKING")
            assert value == "1"
        """
    assert outcomes(suite(source, "--openreg-launch-blocking")) == {"test_it": "passed"}
    assert outcomes(suite(source)) == {"test_it": "failed"}


def test_options_come_before_a_conftest_that_uses_the_device(
    fresh_suite: Suite, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "import torch; torch.ones(1, device='openreg')"
    )
    output = fresh_suite(
        "def test_it(openreg_devices): assert len(openreg_devices) == 4",
        "--openreg-device-count=4",
    )
    assert outcomes(output) == {"test_it": "passed"}, output


SHOWS_LIMITS = """
    import openreg_runtime
    import torch
    def test_it(openreg_device):
        value = openreg_runtime.setting("OPENREG_CUDA_LIMITS").value
        assert False, f"limits: {value}"
    """


@pytest.mark.parametrize(
    ("ini", "options", "value"),
    [
        ("", [], "1"),
        ("openreg_cuda_limits = false", [], "0"),
        ("", ["--openreg-no-cuda-limits"], "0"),
    ],
)
def test_cuda_limits_are_on_unless_the_suite_disables_them(
    fresh_suite: Suite, tmp_path: Path, ini: str, options: list[str], value: str
) -> None:
    conftest = tmp_path / "pyproject.toml"
    conftest.write_text(f"[tool.pytest.ini_options]\n{ini}\n")
    output = fresh_suite(SHOWS_LIMITS, "-c", str(conftest), *options)
    assert f"limits: {value}" in output


def test_limits_after_an_import_of_torch_are_in_the_header(suite: Suite) -> None:
    output = suite(SHOWS_LIMITS)
    assert "limits: 0" in output
    assert "OPENREG_CUDA_LIMITS=1 has no effect, and 0 applies" in output


def test_limits_after_an_import_of_torch_are_an_error_if_the_suite_asks(
    suite: Suite, tmp_path: Path
) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.pytest.ini_options]\nopenreg_cuda_limits = true\n")
    output = suite(SHOWS_LIMITS, "-c", str(settings))
    assert "OPENREG_CUDA_LIMITS=1 has no effect, and 0 applies" in output
    assert "ERROR: openreg: " in output
    assert "limits: 0" not in output


def test_environment_takes_precedence_over_the_suites_cuda_limits(
    fork: Program, tmp_path: Path
) -> None:
    arguments = prepared(tmp_path, SHOWS_LIMITS)
    result = fork(
        source=f"import pytest, sys\nsys.exit(pytest.main({arguments}))",
        environment=variables(OPENREG_CUDA_LIMITS="0"),
        folder=tmp_path,
    )
    assert "limits: 0" in result.stdout


def test_device_on_which_an_assertion_failed_is_reset_for_the_next_test(
    fresh_suite: Suite,
) -> None:
    output = fresh_suite(
        """
        import torch
        def test_bad(openreg_device):
            torch.ones(3, device=openreg_device)[torch.tensor([9], device="openreg")]
        def test_good(openreg_device):
            assert torch.ones(3, device=openreg_device).sum() == 3
        """
    )
    assert "device-side assert triggered" in output
    assert "ERROR test_it.py::test_bad" in output
    assert "PASSED test_it.py::test_good" in output
    assert "1 error" in output
    assert "2 passed" in output
