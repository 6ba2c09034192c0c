# SPDX-License-Identifier: BSD-3-Clause
"""Fork, exit, and host access to device memory."""

from __future__ import annotations

import re
import time

import pytest

from support.isolation import marked

# The steps before the host accesses the block of 1000 bytes on device 1.
MOMENTS = {
    "before_a_kernel": "",
    "during_a_kernel": """
        started = threading.Event()
        def hold():
            started.set()
            threading.Event().wait()
        runtime.Stream(1).launch(hold)
        started.wait()
    """,
    "after_a_kernel": """
        stream = runtime.Stream(1)
        stream.launch(ctypes.memset, block.kernel_address, 1, block.size)
        stream.synchronize()
    """,
}
PREPARE = """
        import ctypes, faulthandler, os, sys, threading
        import openreg_runtime as runtime
        block = runtime.Buffer(1000, device=1)
"""


def check_fault(done, line: str) -> None:
    """Checks the message, and that faulthandler named the reading line."""
    assert done.returncode == -11, done.stderr
    message = r"device openreg:1 \(offset 24 in the block of 1000 bytes at 0x\w+\)"
    assert re.search(message, done.stderr), done.stderr
    stack = done.stderr.partition("Current thread")[2]  # other threads run first
    number = re.search(r'script.py", line (\d+)', stack)
    assert number, done.stderr
    script = done.args[1]
    with open(script) as file:  # noqa: PTH123 - a plain path from a command line
        assert file.read().splitlines()[int(number[1]) - 1].strip() == line


@pytest.mark.parametrize("moment", marked(MOMENTS, {"after_a_kernel": "kernels"}))
def test_host_access_faults_with_block_and_line(run_script, moment: str) -> None:
    line = "print(ctypes.string_at(block.address + 24, 4))"
    done = run_script(f"{PREPARE}{MOMENTS[moment]}\n        {line}\n")
    check_fault(done, line)
    assert done.stdout == ""


def test_host_access_in_another_thread_faults(run_script) -> None:
    line = "ctypes.string_at(block.address + 24, 4)"
    done = run_script(
        f"""{PREPARE}
        def read():
            {line}

        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        """
    )
    check_fault(done, line)


def test_host_write_faults(run_script) -> None:
    line = "ctypes.memset(block.address + 24, 0, 4)"
    check_fault(run_script(f"{PREPARE}\n        {line}\n"), line)


@pytest.mark.parametrize("order", ["before the import", "after the first use"])
def test_faulthandler_prints_whenever_it_was_enabled(run_script, order: str) -> None:
    line = "ctypes.string_at(block.address + 24, 4)"
    done = run_script(
        f"""
        import faulthandler, sys
        if "{order}" == "before the import":
            faulthandler.enable()
        else:
            stderr, sys.stderr = sys.stderr, None  # so the import cannot enable it
        {PREPARE}
        if "{order}" == "after the first use":
            assert not faulthandler.is_enabled()
            sys.stderr = stderr
            faulthandler.enable()
        {line}
        """
    )
    check_fault(done, line)


def test_faulthandler_that_was_enabled_keeps_its_file(run_script, tmp_path) -> None:
    done = run_script(
        f"""
        import faulthandler
        file = open("trace.txt", "w")
        faulthandler.enable(file)
        {PREPARE}
        ctypes.string_at(block.address, 4)
        """
    )
    assert done.returncode == -11
    assert "the host dereferenced" in done.stderr
    assert "script.py" not in done.stderr
    assert "script.py" in (tmp_path / "trace.txt").read_text()


def test_import_without_standard_error_works(run_script) -> None:
    done = run_script(
        """
        import io, sys
        sys.stderr = io.StringIO()
        import openreg_runtime
        sys.stderr = None
        import importlib
        importlib.reload(openreg_runtime)
        print("imported")
        """
    )
    assert done.stdout == "imported\n"


@pytest.mark.differs_in_process("memory check")
def test_kernel_that_touches_freed_memory_faults_with_the_memory_check(
    run_script,
) -> None:
    done = run_script(
        f"""{PREPARE}
        address = block.kernel_address
        del block
        stream = runtime.Stream(1)
        stream.launch(ctypes.memset, address + 24, 1, 4)
        stream.synchronize()
        """,
        OPENREG_MEMORY_CHECK="1",
    )
    assert done.returncode == -11, done.stderr
    assert "a kernel reached" in done.stderr
    message = r"offset 24 in the block of 1000 bytes at 0x\w+, which was freed"
    assert re.search(message, done.stderr), done.stderr


def test_other_signals_pass(run_script) -> None:
    done = run_script(
        f"""{PREPARE}
        import signal
        signal.raise_signal(signal.SIGSEGV)
        """
    )
    assert done.returncode == -11
    assert "dereferenced" not in done.stderr


def test_forked_child_gets_a_clear_error(run_script) -> None:
    done = run_script(
        """
        import os, sys
        import openreg_runtime as runtime
        from openreg_runtime import failures

        device = runtime.Device(0)
        block = runtime.Buffer(16)
        pinned = runtime.PinnedBuffer(16)
        stream = runtime.Stream()
        child = os.fork()
        if child == 0:
            uses = [
                lambda: runtime.Buffer(1),
                stream.synchronize,
                runtime.Event,
                device.reset,
                runtime.resource_usage,
                block.ipc_handle,
                lambda: failures.inject_failure("malloc").__enter__(),
                lambda: runtime.pinned(bytearray(1)).__enter__(),
            ]
            for use in uses:
                try:
                    use()
                except runtime.OpenRegError as error:
                    print(error.name, error)
            del block, pinned, stream
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        block.fill(1)
        """
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    for line in lines:
        assert line.startswith("orErrorInitialization")
        assert "start the process with spawn" in line


def test_fork_before_use_works(run_script) -> None:
    done = run_script(
        """
        import os
        import openreg_runtime as runtime

        assert runtime.device_count() == 2
        child = os.fork()
        runtime.Buffer(16).fill(1)
        if child != 0:
            assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert done.returncode == 0, done.stderr


EXITS = {
    "work_is_pending": """
        for i in range(1000):
            stream.launch(lambda: sum(range(1000)))
            block.copy_from(pinned, stream)
    """,
    "a_kernel_never_returns": """
        started = threading.Event()
        def hold(_):
            started.set()
            threading.Event().wait()
        stream.launch(hold, block)
        stream.launch(print, block, "never")
        started.wait()
    """,
    "a_kernel_is_computing": """
        started = threading.Event()
        def compute():
            started.set()
            while True:
                pass
        stream.launch(compute)
        started.wait()
    """,
    "a_thread_waits_for_a_held_stream": """
        started = threading.Event()
        def hold():
            started.set()
            threading.Event().wait()
        stream.launch(hold)
        started.wait()
        threading.Thread(target=stream.synchronize, daemon=True).start()
    """,
    "an_exit_handler_waits": """
        import atexit
        atexit.register(stream.synchronize)
        stream.launch(lambda: None)
    """,
}


@pytest.mark.parametrize("case", EXITS)
def test_process_exits_promptly_when(run_script, case: str) -> None:
    start = time.monotonic()
    done = run_script(
        f"""
        import threading
        import openreg_runtime as runtime

        stream = runtime.Stream()
        block = runtime.Buffer(1024)
        pinned = runtime.PinnedBuffer(1024)
        {EXITS[case]}
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""
    assert time.monotonic() - start < 20


def test_process_exits_while_daemon_threads_use_a_stream(run_script) -> None:
    done = run_script(
        """
        import threading
        import openreg_runtime as runtime

        stream = runtime.Stream()

        def work():
            try:
                while True:
                    stream.launch(lambda: None)
                    stream.synchronize()
            except runtime.OpenRegError as error:
                assert "the interpreter is shutting down" in str(error)

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        stream.synchronize()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_leaks_at_a_normal_exit(run_script) -> None:
    """Nanobind reports objects that are alive at the end on standard error."""
    done = run_script(
        """
        import openreg_runtime as runtime

        stream = runtime.Stream()
        block = runtime.Buffer(1024)
        event = runtime.Event()
        stream.launch(lambda: None)
        block.copy_from(runtime.PinnedBuffer(1024), stream)
        event.record(stream)
        stream.synchronize()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
