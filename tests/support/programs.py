# SPDX-License-Identifier: BSD-3-Clause
"""Programs in separate processes, their device processes, and modules."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 50  # for a program
NO_AUTOLOAD = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

# OPENREG_DEVICE_LAUNCHER of programs that do not import openreg_runtime.
LAUNCHER = f"{sys.executable} -m openreg_runtime.device"

# First lines of a program that lists the processes of its devices.
IMPORT = f"""
import sys
sys.path.append({str(ROOT / "tests")!r})
from support.programs import children_of, descendants_of, process_of
"""

Ended = subprocess.CompletedProcess[str]
Program = Callable[..., Ended]
Load = Callable[[str], ModuleType]

# For programs that run with all operators enqueued, and with small ones inline.
both_ways = pytest.mark.parametrize("inline_bytes", ["0", "65536"])


def variables(**added: str) -> dict[str, str]:
    """Returns an environment without variables of the device or pytest, plus changes.

    Programs use the same isolation mode as the tests.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name == "OPENREG_ISOLATION"
        or not name.startswith(("OPENREG_", "PYTEST_", "TORCH_"))
    }
    return inherited | added


def changed(environment: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the environment with changed variables; ``None`` removes a variable."""
    merged = {**os.environ, **environment}
    return {name: value for name, value in merged.items() if value is not None}


def written(folder: Path, source: str) -> Path:
    """Writes a script into a folder."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(source).lstrip("\n"))
    return path


def run(
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    seconds: float = SECONDS,
) -> Ended:
    """Runs a command to its end; returns what it printed and its status.

    Args:
        command: A program and its arguments.
        environment: All variables; by default this process's environment.
        folder: The working directory; by default that of this process.
        seconds: Time after which the command is ended and the test fails.
    """
    return subprocess.run(
        [str(each) for each in command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@pytest.fixture
def run_python() -> Program:
    """Runs source in a new interpreter without autoloading of the device.

    Keyword arguments are environment variables.
    """
    return lambda source, **environment: run(
        *(sys.executable, "-c", textwrap.dedent(source)),
        environment=os.environ | NO_AUTOLOAD | environment,
    )


@pytest.fixture
def fork_python(fork: Program) -> Program:
    """Runs source as ``run_python`` does, and as ``fork``."""
    return lambda source, **environment: fork(
        source=textwrap.dedent(source),
        environment=os.environ | NO_AUTOLOAD | environment,
    )


@pytest.fixture
def run_script(tmp_path: Path) -> Program:
    """Runs source as a file, with options of Python, in a separate process.

    Keyword arguments are environment variables; ``None`` removes one. The script is
    kept as ``script.py`` in the test's folder, so that tracebacks can name its lines.
    """
    return lambda source, *options, **environment: run(
        *(sys.executable, *options, written(tmp_path, source)),
        environment=changed(environment),
        folder=tmp_path,
    )


@pytest.fixture
def fork_script(fork: Program, tmp_path: Path) -> Program:
    """Runs source as ``run_script`` does, without options, and as ``fork``."""
    return lambda source, **environment: fork(
        path=written(tmp_path, source),
        folder=tmp_path,
        environment=changed(environment),
    )


# A process that has imported torch but no device, and forks for each line of its input,
# because importing torch takes seconds and the tests run hundreds of programs. It
# replies with the exit status. The child sets up the state of a new interpreter, except
# for variables that Python or torch read at startup.
_FORK_SERVER = """
import gc, json, os, signal, sys, types
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
gc.freeze()  # a garbage collection in a child would copy shared pages
replies = os.fdopen(os.dup(1), "w")
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if child == 0:
        break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(status, file=replies, flush=True)
else:
    sys.exit()
asked = json.loads(line)
path = asked["path"]
signal.alarm(asked["seconds"])  # ends hanging programs
for number, name in enumerate((os.devnull, *asked["output"])):
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if number else 0)
    os.dup2(file, number)
    os.close(file)
os.environ.clear()
os.environ.update(asked["environment"])
if asked["folder"]:
    os.chdir(asked["folder"])
sys.argv = [path or "-c"]
sys.path[0] = os.path.dirname(path)
if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
    torch._import_device_backends()
code = compile(asked["source"], path or "<string>", "exec")
# Kept until the interpreter ends, like a program's __main__.
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__dict__["__builtins__"] = __builtins__
if path:
    main.__file__ = path
exec(code, main.__dict__)
"""


@pytest.fixture(scope="session")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Runs a file, or source as with ``python -c``, in a separate process.

    The function takes ``path`` or ``source``, the whole ``environment`` and optionally
    a working directory ``folder``. The process has imported PyTorch, and loads the
    device before the program begins, so variables that Python or PyTorch read at
    startup have no effect.
    """
    programs = tmp_path_factory.mktemp("programs")
    output = programs / "out", programs / "err"

    with subprocess.Popen(
        [sys.executable, "-c", _FORK_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        requests, replies = server.stdin, server.stdout
        assert requests is not None
        assert replies is not None

        def start(
            *,
            environment: Mapping[str, str],
            path: Path | None = None,
            source: str = "",
            folder: Path | None = None,
        ) -> Ended:
            request = {
                "path": str(path or ""),
                "source": path.read_text("utf-8") if path else source,
                "environment": dict(environment),
                "folder": str(folder or ""),
                "output": [str(file) for file in output],
                "seconds": SECONDS,
            }
            for file in output:
                file.write_text("")
            requests.write(json.dumps(request) + "\n")
            requests.flush()
            reply = replies.readline()
            assert reply, "the process that forks has ended"
            command, status = [str(path or "-c")], int(reply)
            printed, told = (file.read_text("utf-8") for file in output)
            if status == -signal.SIGALRM:
                raise subprocess.TimeoutExpired(command, SECONDS, printed, told)
            return subprocess.CompletedProcess(command, status, printed, told)

        yield start


@pytest.fixture
def load_program(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a program of the repository, such as ``examples/x.py``, as a module."""

    def load(path: str) -> ModuleType:
        monkeypatch.syspath_prepend(ROOT / Path(path).parent)  # like Python
        name = Path(path).stem
        spec = importlib.util.spec_from_file_location(name, ROOT / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def load_tool(load_program: Load) -> Load:
    """Loads a script of tools/ by its name."""
    return lambda name: load_program(f"tools/{name}.py")


def _read_text(path: Path) -> str:
    """Reads a file of ``/proc``; empty if the process or thread has just ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_running(pid: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
    state = _read_text(Path(f"/proc/{pid}/stat")).rpartition(") ")[2][:1]
    return state not in ("", "Z", "X")


def all_end(pids: Iterable[int], seconds: float = 10) -> bool:
    """Returns whether processes end within a time."""
    left = [*pids]
    deadline = time.monotonic() + seconds
    while (left := [*filter(is_running, left)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not left


def children_of(pid: int) -> list[int]:
    """Returns the child processes of a process that have not been reaped."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in _read_text(file).split()]


def descendants_of(pid: int) -> Iterator[int]:
    """Yields all descendants of a process."""
    for child in children_of(pid):
        yield child
        yield from descendants_of(child)


def shared_memory() -> set[str]:
    """Lists ``/dev/shm`` without the files of multiprocessing and PyTorch.

    Other tests and programs create and remove these files.
    """
    others = ("sem.", "psm_", "torch_", "pym-")
    names = {each.name for each in Path("/dev/shm").iterdir()}
    return {name for name in names if not name.startswith(others)}


def process_of(device: int, program: int | None = None) -> int:
    """Returns the device process of this program or of a new one."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in descendants_of(program or os.getpid()):
            if _read_text(Path(f"/proc/{pid}/comm")) == f"openreg-{device}\n":
                return pid
        time.sleep(0.001)
    raise AssertionError(f"device {device} has no process")
