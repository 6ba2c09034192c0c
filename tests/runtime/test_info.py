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
    ("OPENREG_ISOLATION", "process", "thread"),
    ("OPENREG_PEER_ACCESS", "2", "0 or 1"),
    ("OPENREG_MEMORY_CHECK", "on", "0 or 1"),
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
    assert re.search(r"OPENREG_ISOLATION +thread +default", done.stdout)


def test_info_shows_every_setting_with_its_source() -> None:
    values = {
        "OPENREG_PEER_ACCESS": "0",
        "OPENREG_MEMORY_CHECK": "1",
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
        "OPENREG_PEER_ACCESS",
        "OPENREG_MEMORY_CHECK",
        "OPENREG_ALLOW_COPIES",
        "OPENREG_WAIT_TIMEOUT",
        "OPENREG_FAILURES",
    }
    for setting in settings.values():
        expected = "environment" if setting.name in os.environ else "default"
        assert setting.source == expected
        assert setting.description


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
