# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs in children of a process that has imported torch, and no device.

Importing torch takes seconds, and the tests run hundreds of programs. Each line of the
input asks for one, in JSON: the ``path`` of a file or ``source``, its ``environment``
and ``folder``, the files ``out`` and ``err`` and a limit of ``seconds``. Each line of
the output is an exit status.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"


def serve() -> dict[str, Any]:
    """Forks for each request; returns it in the child."""
    replies = os.fdopen(os.dup(1), "w")
    for line in iter(sys.stdin.readline, ""):
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            return request
        _, status = os.waitpid(child, 0)
        replies.write(f"{os.waitstatus_to_exitcode(status)}\n")
        replies.flush()
    sys.exit()


def become(request: dict[str, Any]) -> None:
    """Makes of this process the one that Python would have started."""
    signal.alarm(request["seconds"])  # ends what hangs
    for name, number in (("out", 1), ("err", 2)):
        file = os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(request["environment"])
    if request["folder"]:
        os.chdir(request["folder"])
    path = request["path"]
    sys.argv = [path or "-c"]
    sys.path[0] = os.path.dirname(path) if path else ""  # noqa: PTH120


os.environ[AUTOLOAD] = "0"
import torch  # noqa: E402

# A collection in a child would write to, and so copy, what all of them share.
gc.freeze()
asked = serve()
become(asked)
if os.environ.get(AUTOLOAD, "1") == "1":
    torch._import_device_backends()
source = Path(asked["path"]).read_bytes() if asked["path"] else asked["source"]
code = compile(source, asked["path"] or "<string>", "exec", dont_inherit=True)
# It is there until the interpreter ends, as that of a program.
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__dict__["__builtins__"] = __builtins__
if asked["path"]:
    main.__file__ = asked["path"]
exec(code, main.__dict__)
