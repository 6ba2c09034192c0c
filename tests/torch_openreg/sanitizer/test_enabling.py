# SPDX-License-Identifier: BSD-3-Clause
"""Enabling the sanitizer: blocks, threads, the environment, and its duration."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest
import torch
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
)

from support.programs import Program

from .programs import new, read_after_write

Output = Callable[..., str]


def test_enabling_twice_is_enabling_once(
    main: torch.Stream, side: torch.Stream
) -> None:
    for _ in range(2):
        sanitizer.enable()
        sanitizer.enable()
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
        sanitizer.disable()
        assert not sanitizer.is_enabled()
        sanitizer.disable()
        read_after_write(main, side)


def test_blocks_in_blocks_end_with_the_last(
    main: torch.Stream, side: torch.Stream
) -> None:
    with sanitizer.enabled():
        x = new(4)
        with sanitizer.enabled():
            pass
        with pytest.raises(UnsynchronizedAccessError), side:
            x.zero_()
    sanitizer.enable()
    with sanitizer.enabled():
        sanitizer.disable()
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
    read_after_write(main, side)


def test_block_leaves_the_sanitizer_as_it_is_then(
    main: torch.Stream, side: torch.Stream
) -> None:
    sanitizer.enable()
    with sanitizer.enabled():
        sanitizer.disable()
    assert not sanitizer.is_enabled()
    assert _get_current_dispatch_mode() is None
    with sanitizer.enabled():
        sanitizer.enable()
    try:
        assert sanitizer.is_enabled()
        with pytest.raises(UnsynchronizedAccessError):
            read_after_write(main, side)
    finally:
        sanitizer.disable()


def test_another_thread_can_disable_the_sanitizer(
    main: torch.Stream, side: torch.Stream
) -> None:
    sanitizer.enable()
    thread = threading.Thread(target=sanitizer.disable)
    thread.start()
    thread.join()
    assert not sanitizer.is_enabled()
    read_after_write(main, side)
    sanitizer.disable()
    assert _get_current_dispatch_mode() is None


def test_block_ends_with_an_exception_of_the_program(
    main: torch.Stream, side: torch.Stream
) -> None:
    def fail() -> None:
        new(3).sum()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), sanitizer.enabled():
        fail()
    read_after_write(main, side)


def test_failed_operator_is_the_programs_error(main: torch.Stream) -> None:
    with sanitizer.enabled():
        with pytest.raises(RuntimeError, match="size"):
            new(3) + new(4)
        assert new(3).tolist() == [1.0] * 3


def test_disabling_below_another_mode_is_an_error() -> None:
    class Other(TorchDispatchMode):  # type: ignore[no-untyped-call]
        pass

    sanitizer.enable()
    try:
        with Other(), pytest.raises(RuntimeError, match="Other"):
            sanitizer.disable()
        assert sanitizer.is_enabled()
    finally:
        sanitizer.disable()


def test_work_before_it_was_enabled_is_unknown(
    main: torch.Stream, side: torch.Stream
) -> None:
    x = new(4)
    with sanitizer.enabled(), side:
        x.zero_()


def test_nothing_is_installed_until_it_is_enabled(output: Output) -> None:
    source = """
import sys
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode
x = torch.ones(3, device="openreg")
print("torch.cuda._sanitizer" in sys.modules, _get_current_dispatch_mode())
print(sum(len(registry.callback_list) for name, registry
          in vars(torch.openreg._gpu_trace).items() if name.endswith("Callbacks")))
"""
    assert output(source).split() == ["False", "None", "0"]


USE = """
import torch
x = torch.ones(3, device="openreg")
with torch.Stream("openreg"):
    x.zero_()
"""


def test_environment_enables_it(interpreter: Program) -> None:
    result = interpreter(USE, OPENREG_SANITIZER="1")
    assert result.returncode == 1
    error = "torch_openreg.openreg.sanitizer._errors.UnsynchronizedAccessError"
    assert re.search(f"^{re.escape(error)}: possible data race", result.stderr, re.M)
    assert "<string>:5" in result.stderr
    for off in ({}, {"OPENREG_SANITIZER": "0"}):
        assert interpreter(USE, **off).returncode == 0


def test_wrong_value_of_the_variable_is_named(interpreter: Program) -> None:
    result = interpreter(USE, OPENREG_SANITIZER="yes")
    assert result.returncode == 1
    text = "environment variable OPENREG_SANITIZER='yes' is not valid: expected 0 or 1"
    assert text in result.stderr


def test_missing_mechanism_is_named(interpreter: Program) -> None:
    source = """
import torch
try:
    torch.openreg.sanitizer.enable()
except RuntimeError as error:
    print(error)
print(torch.openreg.sanitizer.is_enabled())
"""
    result = interpreter(source, OPENREG_DISABLE="gpu_trace")
    assert result.stdout.splitlines() == [
        "the sanitizer needs the mechanism gpu_trace, which OPENREG_DISABLE leaves out",
        "False",
    ]


def test_forked_child_is_not_checked(output: Output) -> None:
    source = """
import os, torch
x = torch.ones(3, device="openreg").to("cpu", non_blocking=True)
child = os.fork()
if not child:
    torch.ones(4).sum()
    print(torch.openreg.sanitizer.is_enabled(), flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert output(source, OPENREG_SANITIZER="1") == "False\n0"


@pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "del x, y, thread"])
def test_process_ends_with_work_pending(interpreter: Program, ending: str) -> None:
    source = f"""
import threading, torch
x = torch.ones(300, 300, device="openreg", requires_grad=True)
y = torch.ones(1 << 18).pin_memory()
for _ in range(30):
    y.to("openreg", non_blocking=True)
    (x @ x).sum().backward()
thread = threading.Thread(target=lambda x=x: [(x @ x).sum() for _ in range(20)])
thread.start()
print("pending", flush=True)
{ending}
"""
    result = interpreter(source, OPENREG_SANITIZER="1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "pending\n", "")
