# SPDX-License-Identifier: BSD-3-Clause
"""Settings, and the command ``python -m openreg_runtime info``."""

from __future__ import annotations

import os
import re
import sys

import pytest

import openreg_runtime as runtime
from support.programs import Ended, run

WRONG = [
    ("OPENREG_DEVICE_COUNT", "0", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_COUNT", "many", "a whole number from 1 to 64"),
    ("OPENREG_DEVICE_MEMORY", "16GB", "a size from 1MiB to 1TiB"),
    ("OPENREG_LAUNCH_BLOCKING", "yes", "0 or 1"),
    ("OPENREG_ISOLATION", "subprocess", "thread, loopback or process"),
    ("OPENREG_PEER_ACCESS", "2", "0 or 1"),
    ("OPENREG_MEMORY_CHECK", "on", "0 or 1"),
    ("OPENREG_UNINITIALIZED", "zero", "none or nan"),
    ("OPENREG_ALLOW_COPIES", "yes", "0 or 1"),
    ("OPENREG_WAIT_TIMEOUT", "1s", "a whole number of milliseconds"),
    ("OPENREG_FAILURES", "free:first=1", "'free' is not a site: expected malloc"),
    ("OPENREG_FAILURES", "malloc:nth=1", "'nth' is not a key: expected device"),
    ("OPENREG_FAILURES", "copy:error=Timeout", "'Timeout' is not an error"),
    ("OPENREG_FAILURES", "launch:device=2", "device 2 does not exist"),
    ("OPENREG_FAILURES", "malloc:first=0", "calls are counted from 1"),
]


def info(**environment: str) -> Ended:
    command = (sys.executable, "-m", "openreg_runtime", "info")
    return run(*command, environment=os.environ | environment)


def test_info_shows_devices_memory_and_sources() -> None:
    done = info(OPENREG_DEVICE_COUNT="3", OPENREG_DEVICE_MEMORY="512MiB")
    assert done.returncode == 0
    assert done.stdout.count("OpenReg simulated device") == 3
    assert "0.50 GiB, 0.50 GiB free" in done.stdout
    assert re.search(r"OPENREG_DEVICE_COUNT +3 +environment", done.stdout)
    assert re.search(r"OPENREG_LAUNCH_BLOCKING +0 +default", done.stdout)


def test_info_shows_every_setting_with_its_source() -> None:
    values = {
        "OPENREG_PEER_ACCESS": "0",
        "OPENREG_ALLOW_COPIES": "1",
        "OPENREG_WAIT_TIMEOUT": "2500",
        "OPENREG_FAILURES": "malloc:first=3;launch:period=100:delay=50",
    }
    done = info(**values)
    assert done.returncode == 0, done.stderr
    for name, value in values.items():
        assert re.search(rf"{name} +{re.escape(value)} +environment", done.stdout)
    defaults = info().stdout
    for name in values:
        assert re.search(rf"{name} +\S+ +default", defaults)


@pytest.mark.parametrize(("name", "value", "accepted"), WRONG)
def test_info_with_a_wrong_value_prints_the_error_and_exits_1(
    name: str, value: str, accepted: str
) -> None:
    done = info(**{name: value})
    assert done.returncode == 1
    assert done.stdout == ""
    assert f"{name}='{value}' is not valid: expected" in done.stderr
    assert accepted in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "value", "accepted"), WRONG)
def test_wrong_value_fails_every_use_but_not_the_import(
    run_script, name: str, value: str, accepted: str
) -> None:
    done = run_script(
        """
        import openreg_runtime as runtime

        uses = [
            runtime.device_count,
            runtime.settings,
            runtime.synchronize,
            runtime.Stream,
            runtime.Event,
            lambda: runtime.Buffer(1),
            lambda: runtime.Device(0),
            lambda: runtime.set_device(0),
        ]
        for use in uses:
            try:
                use()
            except runtime.OpenRegError as error:
                print(error.name, error)
        """,
        **{name: value},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 8, done.stderr
    for line in lines:
        assert line.startswith("orErrorInvalidValue")
        assert f"{name}='{value}'" in line
        assert accepted in line


def test_settings_name_value_source_and_meaning() -> None:
    settings = {setting.name: setting for setting in runtime.settings()}
    assert set(settings) == {
        "OPENREG_DEVICE_COUNT",
        "OPENREG_DEVICE_MEMORY",
        "OPENREG_LAUNCH_BLOCKING",
        "OPENREG_ISOLATION",
        "OPENREG_DEVICE_LAUNCHER",
        "OPENREG_DEVICE_LOG",
        "OPENREG_PEER_ACCESS",
        "OPENREG_MEMORY_CHECK",
        "OPENREG_UNINITIALIZED",
        "OPENREG_ALLOW_COPIES",
        "OPENREG_WAIT_TIMEOUT",
        "OPENREG_FAILURES",
        "OPENREG_SCHEDULE",
        "OPENREG_DISABLE",
        "OPENREG_DEVICE",
        "OPENREG_PROFILE",
    }
    for setting in settings.values():
        expected = "environment" if setting.name in os.environ else "default"
        assert setting.source == expected
        assert setting.description


def test_default_memory_of_all_devices_fits_into_the_machine(run_script) -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    source = """
        import openreg_runtime as r
        setting = r.setting("OPENREG_DEVICE_MEMORY")
        print(setting.number, r.Device(0).total_memory, setting.source)
        """

    def memory(**environment: str) -> int:
        done = run_script(source, **environment)
        number, total, origin = done.stdout.split()
        assert number == total, done.stderr
        assert origin == ("environment" if environment.get(name) else "default")
        return int(number)

    name = "OPENREG_DEVICE_MEMORY"
    for count in (1, 2, 64):
        default = memory(OPENREG_DEVICE_COUNT=str(count))
        assert 2**20 <= default <= 16 * 2**30
        assert count * default <= machine * 3 // 4
    assert memory(OPENREG_DEVICE_COUNT="64", OPENREG_DEVICE_MEMORY="1TiB") == 2**40


def test_setting_is_found_by_name_with_its_number() -> None:
    for setting in runtime.settings():
        assert runtime.setting(setting.name).value == setting.value
    assert runtime.setting("OPENREG_DEVICE_COUNT").number == runtime.device_count()
    with pytest.raises(
        runtime.OpenRegError, match="name 'OPENREG_X' is not the name of a setting"
    ):
        runtime.setting("OPENREG_X")


def test_disable_is_a_list_of_names(run_script) -> None:
    source = 'import openreg_runtime as r; print(r.setting("OPENREG_DISABLE").names)'
    done = run_script(source, OPENREG_DISABLE=" one,,two ,", OPENREG_DEVICE_COUNT="x")
    assert done.stdout == "['one', 'two']\n", done.stderr
    assert run_script(source, OPENREG_DISABLE="none").stdout == "[]\n"


def test_device_is_one_of_two_names(run_script) -> None:
    source = """
        import openreg_runtime as r
        try:
            print(r.setting("OPENREG_DEVICE").value)
        except r.OpenRegError as error:
            print(error)
        """
    assert run_script(source).stdout == "openreg\n"
    done = run_script(source, OPENREG_DEVICE="cuda", OPENREG_DEVICE_COUNT="x")
    assert done.stdout == "cuda\n"
    source = source.replace('setting("OPENREG_DEVICE").value', "is_cuda()")
    assert run_script(source).stdout == "False\n"
    assert run_script(source, OPENREG_DEVICE="cuda").stdout == "True\n"
    wrong = run_script(source, OPENREG_DEVICE="xpu").stdout
    assert "OPENREG_DEVICE='xpu' is not valid: expected openreg or cuda" in wrong


REGISTER = """
import openreg_runtime as runtime
runtime.register_setting("OPENREG_MINE", "5", "number", "for a test")
"""


def test_registered_setting_is_listed_with_its_value(run_script) -> None:
    source = f"""{REGISTER}
runtime.register_setting("OPENREG_MINE", "5", "number", "for a test")
(last,) = [s for s in runtime.settings() if s.name == "OPENREG_MINE"]
print(last.value, last.number, last.source, last.description, sep="; ")
"""
    assert run_script(source).stdout == "5; 5; default; for a test\n"
    done = run_script(source, OPENREG_MINE="70")
    assert done.stdout == "70; 70; environment; for a test\n"


def test_wrong_value_of_a_registered_setting_fails_calls_that_return_settings(
    run_script,
) -> None:
    source = f"""{REGISTER}
print(runtime.setting("OPENREG_PEER_ACCESS").number, runtime.device_count())
for use in (runtime.settings, lambda: runtime.setting("OPENREG_MINE")):
    try:
        use()
    except runtime.OpenRegError as error:
        print(error)
"""
    first, *errors = run_script(source, OPENREG_MINE="few").stdout.splitlines()
    assert first == "1 2"
    assert len(errors) == 2
    text = "environment variable OPENREG_MINE='few' is not valid: expected a whole"
    assert all(text in error for error in errors)


def test_setting_cannot_take_the_name_of_another() -> None:
    with pytest.raises(
        runtime.OpenRegError, match="is already the name of another setting"
    ):
        runtime.register_setting("OPENREG_DEVICE_COUNT", "2", "number", "mine")
    with pytest.raises(ValueError, match="kind is 'text', expected"):
        runtime.register_setting("OPENREG_TEXT", "", "text", "mine")  # type: ignore[arg-type]


PACKAGE = """
import openreg_runtime
openreg_runtime.register_setting("OPENREG_ABOVE", "0", "switch", "of a package above")
"""


@pytest.fixture
def package_above(tmp_path, monkeypatch):
    """Installs a package that registers a setting; it can be replaced."""
    metadata = tmp_path / "above-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: above\n")
    (metadata / "entry_points.txt").write_text("[openreg.settings]\nabove = above\n")
    module = tmp_path / "above.py"
    module.write_text(PACKAGE)
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), *([path] if path else [])])
    )
    return module


def test_info_shows_the_settings_of_packages_above(package_above) -> None:
    assert re.search("OPENREG_ABOVE +0 +default +of a package above", info().stdout)
    done = info(OPENREG_ABOVE="maybe")
    assert done.returncode == 1
    assert "OPENREG_ABOVE='maybe' is not valid: expected 0 or 1" in done.stderr


def test_info_names_a_package_above_that_cannot_be_imported(package_above) -> None:
    package_above.write_text("raise KeyError('broken')")
    done = info()
    assert done.returncode == 1
    assert done.stderr == "the settings of above: 'broken'\n"


def test_info_warns_of_unknown_variables(package_above) -> None:
    done = info(OPENREG_DEVICE_CUONT="4", OPENREG_ABOVE="1")
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stdout.splitlines() if "warning" in line]
    assert warnings == ["warning: no installed package reads OPENREG_DEVICE_CUONT"]


def test_launch_blocking_raises_where_the_kernel_is_launched(run_script) -> None:
    done = run_script(
        """
        import threading
        import openreg_runtime as runtime

        stream = runtime.Stream()
        ran = []
        stream.launch(lambda: ran.append(threading.get_ident()))
        assert ran == [threading.get_ident()]
        try:
            stream.launch(lambda: 1 / 0)
        except runtime.OpenRegError as error:
            print(error)
        stream.synchronize()
        """,
        OPENREG_LAUNCH_BLOCKING="1",
    )
    assert done.returncode == 0, done.stderr
    assert "ZeroDivisionError: division by zero" in done.stdout
