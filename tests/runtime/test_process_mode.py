# SPDX-License-Identifier: BSD-3-Clause
"""Devices in separate processes: memory, failures, and cleanup."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

import libopenreg
from support.programs import IMPORT, LAUNCHER, Program, all_end

PROCESS = {"OPENREG_ISOLATION": "process"}

PREPARE = (
    IMPORT
    + """
import os, random, signal, subprocess, sys, threading, time
from pathlib import Path
import openreg_runtime as runtime

def error_of(work):
    start = time.monotonic()
    try:
        while time.monotonic() < start + 10:
            work()
    except runtime.OpenRegError as error:
        assert time.monotonic() < start + 2, "late"
        return str(error)

def read(buffer):
    memory = bytearray(buffer.size)
    buffer.copy_to(memory)
    return bytes(memory)

def write(data, device):
    buffer = runtime.Buffer(len(data), device)
    buffer.copy_from(data)
    return buffer
"""
)


def output(run_python: Program, program: str, **env: str) -> str:
    """Runs a program with devices in processes; returns what it printed."""
    done = run_python(PREPARE + program, **PROCESS, **env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def is_for_linux() -> bool:
    """Returns whether the library has the files for Linux, the only ones with memfd."""
    if sys.platform != "linux":
        return False
    library = libopenreg.find("lib/libopenreg.so.*")
    return b"\0memfd_create\0" in library.read_bytes()


def test_bytes_come_back_from_every_device(run_python: Program) -> None:
    program = """
for size in [1, 7, 4096, 1 << 20, (1 << 20) + 3, 5_000_001]:
    data = random.Random(size).randbytes(size)
    first = write(data, 0)
    second = runtime.Buffer(size, 1)
    second.copy_from(first)
    assert read(second) == data, size
    second.fill(9)
    assert read(second) == bytes([9]) * size
    assert read(first) == data
    first.copy_from(second)
    assert read(first) == bytes([9]) * size
"""
    assert output(run_python, program) == ""


def test_streams_and_threads_use_a_device_at_the_same_time(run_python: Program) -> None:
    program = """
failures = []
def work(number):
    stream = runtime.Stream(number % 2)
    buffer = runtime.Buffer(300_000, number % 2)
    source = random.Random(number)
    for _ in range(30):
        data = source.randbytes(300_000)
        buffer.copy_from(data, stream)
        memory = bytearray(buffer.size)
        buffer.copy_to(memory, stream)
        stream.synchronize()
        if memory != data:
            failures.append(number)
threads = [threading.Thread(target=work, args=[i]) for i in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failures)
"""
    assert output(run_python, program) == "[]\n"


def test_copies_keep_the_order_of_their_stream(run_python: Program) -> None:
    program = """
stream = runtime.Stream(0)
pinned = [runtime.PinnedBuffer(4096) for _ in range(300)]
for number, memory in enumerate(pinned):
    memoryview(memory)[:] = bytes([number % 256]) * 4096
buffer = runtime.Buffer(4096, 0)
results = [runtime.PinnedBuffer(4096) for _ in pinned]
for source, result in zip(pinned, results):
    buffer.copy_from(source, stream)
    buffer.copy_to(result, stream)
stream.synchronize()
print(all(bytes(a) == bytes(b) for a, b in zip(pinned, results)))
"""
    assert output(run_python, program) == "True\n"


def test_program_has_no_device_memory(run_python: Program) -> None:
    program = """
buffer = write(b"x" * (1 << 20), 0)
maps = Path("/proc/self/maps").read_text()
files = subprocess.check_output(["ls", "-l", f"/proc/{os.getpid()}/fd"], text=True)
print("openreg-device" in maps, "memfd:openreg " in maps)
print("openreg-device" in files or "memfd:openreg " in files)
"""
    assert output(run_python, program) == "False False\nFalse\n"


def test_host_access_faults_with_the_block(run_python: Program) -> None:
    done = run_python(
        PREPARE
        + "import ctypes\nbuffer = runtime.Buffer(1000, 1)\n"
        + "ctypes.string_at(buffer.address + 24, 1)\n",
        **PROCESS,
    )
    assert done.returncode == -11
    assert "device openreg:1 (offset 24 in the block of 1000 bytes" in done.stderr


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("buffer.kernel_address", "is in the device process's memory"),
        ("buffer.ipc_handle()", "runs in a separate process"),
    ],
)
def test_calls_that_need_mapped_device_memory_are_not_supported(
    run_python: Program, use: str, expected: str
) -> None:
    program = f"""
buffer = runtime.Buffer(8, 0)
print(error_of(lambda: {use}))
"""
    assert expected in output(run_python, program)


def test_memory_check_is_refused(run_python: Program) -> None:
    done = run_python(
        PREPARE + "runtime.Buffer(8, 0)",
        **PROCESS,
        OPENREG_MEMORY_CHECK="1",
    )
    assert "OPENREG_MEMORY_CHECK='1' is not valid" in done.stderr
    assert "0 with OPENREG_ISOLATION=process" in done.stderr


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        ("SIGKILL", "was ended by signal 9 (SIGKILL)"),
        ("SIGSEGV", "was ended by signal 11 (SIGSEGV)"),
        ("SIGSTOP", "was stopped by signal 19 (SIGSTOP)"),
    ],
)
def test_lost_device_is_reset_and_others_go_on(
    run_python: Program, signal: str, words: str
) -> None:
    program = f"""
data = random.randbytes(100_000)
for moment in range(5):
    lost, other = write(data, 0), write(data, 1)
    stream = runtime.Stream(0)
    end = (process_of(0), signal.{signal})
    threading.Timer(random.random() / 50, os.kill, end).start()
    while not (text := error_of(lambda: lost.copy_to(bytearray(100_000), stream))):
        pass  # until the signal has been sent
    assert "device 0 was lost" in text and {words!r} in text, text
    assert error_of(lambda: read(lost)) is not None
    assert read(other) == data
    del lost, stream
    runtime.Device(0).reset()
    assert read(write(data, 0)) == data
    runtime.Device(1).reset()
deadline = time.monotonic() + 1
while len(list(descendants_of(os.getpid()))) > 2 and time.monotonic() < deadline:
    time.sleep(0.01)
print(len(list(descendants_of(os.getpid()))))
"""
    assert output(run_python, program) == "2\n"  # the launcher and device 0


def test_loss_of_a_device_fails_no_copy_of_another(run_python: Program) -> None:
    program = """
size = 8 << 20
for end in ("kill", "reset"):
    lost, other = write(b"x" * size, 0), runtime.Buffer(size, 1)
    other.fill(3)
    stream = runtime.Stream(1)
    for _ in range(30):
        other.copy_from(lost, stream)
    if end == "kill":
        os.kill(process_of(0), signal.SIGKILL)
        error_of(lambda: read(lost))
    del lost
    runtime.Device(0).reset()
    try:
        stream.synchronize()
    except runtime.OpenRegError as error:
        assert "device 1" not in str(error), error
    pieces = read(other)
    assert set(pieces) <= set(b"x\\3"), set(pieces)
    assert read(write(b"fine", 1)) == b"fine"
"""
    assert output(run_python, program) == ""


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_copy_within_another_device_may_overlap(
    run_python: Program, isolation: str
) -> None:
    program = """
size, shift = 5_500_000, 500_000
data = random.randbytes(size)
libopenreg = ctypes.CDLL(runtime._C.__file__)  # the libraries it is linked to
copy = libopenreg.orMemcpyAsync
copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                 ctypes.c_void_p]
DEVICE_TO_DEVICE = 3
for to, start in [(shift, 0), (0, shift)]:
    buffer, stream = write(data, 1), runtime.Stream(0)
    address = buffer.address
    assert copy(address + to, address + start, size - shift, DEVICE_TO_DEVICE,
                stream.handle) == 0
    stream.synchronize()
    expected = bytearray(data)
    expected[to : to + size - shift] = data[start : start + size - shift]
    assert read(buffer) == expected, to
"""
    done = run_python(PREPARE + "import ctypes" + program, OPENREG_ISOLATION=isolation)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("how", "size", "words"),
    [
        ("size", 1, f"it sent a reply of {1 << 60} bytes"),
        # 2 MiB: more than a lane holds
        ("endless", 2 << 20, "it sent more replies than the host can hold"),
        ("positions", 1, "the shared memory of a lane is corrupted"),
    ],
)
def test_device_that_breaks_the_rules_is_lost(
    run_python: Program, how: str, size: int, words: str
) -> None:
    launcher = f"{sys.executable} {Path(__file__).with_name('broken_device.py')} {how}"
    program = f"""
try:
    write(bytes({size}), 0)
except runtime.OpenRegError as error:
    print(error)
"""
    text = output(run_python, program, OPENREG_DEVICE_LAUNCHER=launcher)
    assert f"device 0 was lost: {words} while it ran a copy" in text


def test_device_that_does_not_answer_is_lost_in_time(run_python: Program) -> None:
    launcher = f"{sys.executable} {Path(__file__).with_name('broken_device.py')} silent"
    program = """
start = time.monotonic()
try:
    write(b"x", 0)
except runtime.OpenRegError as error:
    print(error)
assert 9 < time.monotonic() - start < 40
"""
    text = output(
        run_python,
        program,
        OPENREG_DEVICE_LAUNCHER=launcher,
        OPENREG_WAIT_TIMEOUT="500",
    )
    assert "device 0 was lost: it did not answer within 10000 ms" in text
    assert "while it ran a copy" in text


def test_time_while_the_program_was_stopped_does_not_count_as_silence(
    run_python: Program,
) -> None:
    program = """
buffer = write(b"here", 0)
device, program = process_of(0), os.getpid()
(launcher,) = children_of(program)
os.kill(launcher, signal.SIGSTOP)  # it would report the next one
os.kill(device, signal.SIGSTOP)
for thread in Path(f"/proc/{device}/task").iterdir():
    while (thread / "stat").read_text().rpartition(") ")[2][0] != "T":
        time.sleep(0.001)
continues = f"kill -CONT {program}; sleep 0.5; kill -CONT {device} {launcher}"
stops = f"sleep 0.2; kill -STOP {program}; sleep 10.5; {continues}"
stopper = subprocess.Popen(["sh", "-c", stops])
print(read(buffer))
stopper.wait()
"""
    assert output(run_python, program, OPENREG_WAIT_TIMEOUT="100") == "b'here'\n"


def test_device_that_is_lost_during_a_large_copy_was_in_it(run_python: Program) -> None:
    program = """
data = bytes(100 << 20)
buffer = write(data, 0)
threading.Timer(0.1, os.kill, (process_of(0), signal.SIGKILL)).start()
print(error_of(lambda: buffer.copy_from(data)))
"""
    text = output(run_python, program)
    assert "ended by signal 9 (SIGKILL) while it ran a copy" in text


def test_system_without_memory_ends_a_device_before_the_program(
    run_python: Program,
) -> None:
    program = """
own = Path("/proc/self/oom_score_adj")
score = int(own.read_text())
own.write_text(str(max(score, {least})))  # anyone may raise it
buffer = write(b"x", 0)
print(max(score, {least}), Path(f"/proc/{{process_of(0)}}/oom_score_adj").read_text())
"""
    for least in (0, 900):
        own, device = map(int, output(run_python, program.format(least=least)).split())
        assert device == max(own, 500)


def test_copy_of_many_rows_is_one_command(run_python: Program) -> None:
    program = """
rows = 5_000_000
libopenreg = ctypes.CDLL(runtime._C.__file__)  # the libraries it is linked to
host, buffer = bytes(range(200)) * (rows // 200), write(bytes(2 * rows), 0)
copy = libopenreg.orMemcpy2D
copy.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t,
                 ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
HOST_TO_DEVICE = 1
assert copy(buffer.address, 2, host, 1, 1, rows, HOST_TO_DEVICE) == 0
data = read(buffer)
print(data[::2] == host, any(data[1::2]))
"""
    assert output(run_python, "import ctypes" + program) == "True False\n"


def test_fill_of_a_lost_device_does_not_fail_the_streams(run_python: Program) -> None:
    program = """
lost, stream = write(b"x" * 1000, 0), runtime.Stream(1)
runtime.Device(1).enable_peer_access(0)
gate = threading.Event()
stream.launch_host(gate.wait)
lost.fill(3, stream)
os.kill(process_of(0), signal.SIGKILL)
error_of(lambda: read(lost))
gate.set()
try:
    stream.synchronize()
except runtime.OpenRegError as error:
    assert "device 0" in str(error), error
assert read(write(b"fine", 1)) == b"fine"
"""
    assert output(run_python, program) == ""


def test_end_of_the_launcher_ends_every_device(run_python: Program) -> None:
    program = """
first, second = write(b"1", 0), write(b"2", 1)
pids = list(descendants_of(os.getpid()))
os.kill(pids[0], signal.SIGKILL)
for buffer in first, second:
    assert "the launcher of device processes ended" in error_of(lambda: read(buffer))
del first, second, buffer
for device in 0, 1:
    runtime.Device(device).reset()
    assert read(write(b"3", device)) == b"3"
print(*pids)
"""
    assert all_end(map(int, output(run_python, program).split()), seconds=1)


END = {
    "exit": "sys.exit()",
    "kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "exec": "os.execv('/bin/true', ['true'])",
    "fork": """
if os.fork() == 0:
    os.close(1); os.close(2)
    time.sleep(3)
""",
    "fork and kill": """
if os.fork() == 0:
    os.close(1); os.close(2)
    time.sleep(3)
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
""",
}


@pytest.mark.parametrize("end", END)
def test_no_process_outlives_the_program(run_python: Program, end: str) -> None:
    program = """
buffers = [write(b"x", device) for device in (0, 1)]
print(*descendants_of(os.getpid()), flush=True)
"""
    done = run_python(PREPARE + program + END[end], **PROCESS)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 3, done.stderr
    assert all_end(pids, seconds=1)


def test_devices_outlive_the_thread_that_started_them(run_python: Program) -> None:
    program = """
made = []
thread = threading.Thread(target=lambda: made.append(write(b"x", 0)))
thread.start()
thread.join()
time.sleep(0.2)
print(read(made[0]))
"""
    assert output(run_python, program) == "b'x'\n"


def test_interrupt_of_the_terminal_ends_no_device(run_python: Program) -> None:
    program = """
buffer = write(b"x", 0)
os.setpgid(0, 0)  # so that it does not interrupt the tests
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.killpg(0, signal.SIGINT)
time.sleep(0.1)
print(read(buffer))
"""
    assert output(run_python, program) == "b'x'\n"


def test_info_shows_the_processes_of_devices(run_python: Program) -> None:
    program = """
buffers = [write(b"x", device) for device in (0, 1)]
os.kill(process_of(1), signal.SIGSTOP)
error_of(lambda: read(buffers[1]))
command = [sys.executable, "-m", "openreg_runtime", "info"]
info = subprocess.check_output(command, text=True)
place = info.index(f"  {os.getpid()}  ")
program, launcher, first, second = info[place:].splitlines()[:4]
assert launcher.split()[1] == "launcher", launcher
assert first.split()[:3] == [str(process_of(0)), "openreg-0", "idle,"], first
assert second.split()[:3] == [str(process_of(1)), "openreg-1", "stopped,"], second
"""
    assert output(run_python, program) == ""


@pytest.mark.xfail(
    not is_for_linux(),
    reason="POSIX has no function for this: forbid_inspection() in platform/sharing.h",
    strict=True,
)
def test_other_processes_of_the_user_cannot_read_the_memory(
    run_python: Program,
) -> None:
    program = """
import ctypes

class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

class Data(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("effective", "permitted", "inheritable")]

# A superuser may read any process, so this one gives up that right first.
libc = ctypes.CDLL(None, use_errno=True)
header, data = Header(0x20080522, 0), (Data * 2)()
assert libc.capget(ctypes.byref(header), data) == 0
CAP_SYS_PTRACE = 19
for field in ("effective", "permitted", "inheritable"):
    setattr(data[0], field, getattr(data[0], field) & ~(1 << CAP_SYS_PTRACE))
PR_CAPBSET_DROP = 24
libc.prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0)  # for programs it starts
assert libc.capset(ctypes.byref(header), data) == 0
buffer = write(b"secret" * 1000, 0)
child = subprocess.Popen(["sleep", "5"])
Path(f"/proc/{child.pid}/mem").open("rb").close()  # another one can be read
child.kill()
for name in ["mem"]:
    try:
        Path(f"/proc/{process_of(0)}/{name}").open("rb").read(1)
    except PermissionError as error:
        print(name, error.strerror)
"""
    expected = "mem Permission denied\n"
    assert output(run_python, program) == expected


def test_wrong_launcher_is_named(run_python: Program) -> None:
    program = 'print(error_of(lambda: write(b"x", 0)))'
    text = output(run_python, program, OPENREG_DEVICE_LAUNCHER="/missing/program")
    assert f"/missing/program, does not start: {os.strerror(errno.ENOENT)}" in text


def test_log_that_cannot_be_written_is_named(run_python: Program) -> None:
    program = 'print(error_of(lambda: write(b"x", 0)))'
    text = output(run_python, program, OPENREG_DEVICE_LOG="/missing/folder/log")
    assert "it did not start: [Errno 2]" in text
    assert "/missing/folder/log" in text


def test_log_contains_the_output_of_devices(
    run_python: Program, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    program = """
buffer = write(b"x", 0)
print(os.readlink(f"/proc/{process_of(0)}/fd/2"))
"""
    text = output(run_python, program, OPENREG_DEVICE_LOG=str(log))
    assert text == f"{log}\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_launcher_that_ends_loses_the_device(run_python: Program) -> None:
    program = 'print(error_of(lambda: write(b"x", 0)))'
    text = output(run_python, program, OPENREG_DEVICE_LAUNCHER="/bin/false")
    assert "the launcher of device processes ended with status 1" in text


def test_module_is_a_launcher(run_python: Program) -> None:
    program = 'print(read(write(b"x", 0)))'
    text = output(run_python, program, OPENREG_DEVICE_LAUNCHER=LAUNCHER)
    assert text == "b'x'\n"


def test_launcher_that_ends_may_hear_of_a_device_that_does(run_python: Program) -> None:
    program = """
import socket
from openreg_runtime.device import Launcher
mine, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
mine.send(f"parent {os.getpid()}".encode())
launcher = Launcher(channel)
mine.close()
launcher.run()
os.kill(os.getpid(), signal.SIGCHLD)
launcher.stop()
"""
    assert output(run_python, program) == ""


def test_launcher_without_free_descriptors_reports_it(run_python: Program) -> None:
    program = """
import socket
from openreg_runtime.device import Launcher
mine, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
mine.send(f"parent {os.getpid()}".encode())
launcher = Launcher(channel)
mine.send(b"start 7 0 0 4096")
mine.shutdown(socket.SHUT_WR)
launcher.run()
print(mine.recv(100))
"""
    assert output(run_python, program) == "b'failed 7 0\\nToo many open files'\n"
