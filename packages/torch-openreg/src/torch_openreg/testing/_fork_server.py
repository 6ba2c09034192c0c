# SPDX-License-Identifier: BSD-3-Clause
"""Forks processes from a server that has imported PyTorch, which takes seconds.

The server is a process spawned by multiprocessing, and its children end like it:
through exit handlers and interpreter shutdown. It does not use a device, so each child
can. It reaps a child only on request, so that the process number is not reused before.
It ends with the process that started it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any

_FORK = b"fork"
_READY = b"ready"
_SECONDS = 300  # for a reply; a new server imports first
_LONGEST = 64  # bytes of a message
_KEPT = 2  # OMP_NUM_THREADS differs between one rank and several
_OF_EACH_TEST = "PYTEST_CURRENT_TEST"  # not read by any import

_servers: list[ForkServer] = []  # ordered by use


class ForkedProcess:
    """A child of a server, with the attributes of a multiprocessing process.

    Attributes:
        pid: Its process number.
        exitcode: Its status after a wait; negative for a signal. None if its server
            ended before.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.exitcode: int | None = None

    def kill(self) -> None:
        """Kills it."""
        if self.exitcode is None and not self._server.is_closed:
            with suppress(ProcessLookupError):  # it has ended with its server
                os.kill(self.pid, signal.SIGKILL)

    def join(self) -> None:
        """Waits for its end."""
        if self.exitcode is not None or self._server.is_closed:
            return
        with suppress(EOFError, OSError):  # it ends with its server
            self.exitcode = int(self._server.ask(str(self.pid).encode()))


def fork_server() -> ForkServer:
    """Returns a server for this process and its environment; starts one if necessary.

    Modules that read environment variables on import have read the present values.
    """
    here = (os.getpid(), {**os.environ, _OF_EACH_TEST: ""})
    for server in _servers:
        if server.made_for[0] != os.getpid():
            server.close()
    kept = [each for each in _servers if not each.is_closed]
    found = [each for each in kept if each.made_for == here]
    latest = found[0] if found else ForkServer(here)
    _servers[:] = [*(each for each in kept if each is not latest), latest]
    for old in _servers[:-_KEPT]:
        old.close()
    return latest


@atexit.register  # before multiprocessing waits for its processes
def _close_all() -> None:
    for server in _servers:
        server.close()


class ForkServer:
    """A server, from the view of the process that started it.

    Attributes:
        made_for: The process and its environment.
    """

    def __init__(self, made_for: tuple[int, dict[str, str]]) -> None:
        self.made_for = made_for
        self._lock = threading.Lock()
        self._socket, other = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self._socket.settimeout(_SECONDS)
        with other:
            multiprocessing.get_context("spawn").Process(
                target=_serve, args=(other,), name="fork server"
            ).start()
        self.ask(_READY)

    def fork(
        self, target: Callable[..., None], connection: Connection, *arguments: Any
    ) -> ForkedProcess:
        """Runs ``target(connection, *arguments)`` in a forked child.

        The child has the environment, the working directory, the search path and the
        output of this process.
        """
        here = dict(os.environ), Path.cwd(), sys.path
        request = pickle.dumps((here, target, arguments))
        with os.fdopen(os.memfd_create("request"), "w+b") as file:
            file.write(request)
            file.seek(0)
            pid = self.ask(_FORK, file.fileno(), connection.fileno(), 1, 2)
        return ForkedProcess(self, int(pid))

    def ask(self, message: bytes, *files: int) -> bytes:
        """Sends a message with open files and returns the reply."""
        try:
            with self._lock:
                socket.send_fds(self._socket, [message], files)
                reply = self._socket.recv(_LONGEST)
            if not reply:
                raise EOFError("the fork server has ended")
        except BaseException:
            self.close()  # a late reply would be taken for the next message's reply
            raise
        return reply

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() == -1

    def close(self) -> None:
        """Ends the server and its children.

        In a forked process, closes only the inherited connection.
        """
        if self.made_for[0] == os.getpid() and not self.is_closed:
            with suppress(OSError):  # the server has ended
                # Shuts the socket down, because forked processes may keep it open.
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _serve(server: socket.socket) -> None:
    """Forks for each request, and returns in the child after its function."""
    # Ctrl-C is handled by the tests, which end the children.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    importlib.import_module("openreg_distributed")
    # A collection in a child would write to shared memory pages, and so copy them.
    gc.freeze()
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    try:
        ended = os.pidfd_open(parent.pid)
    except ProcessLookupError:
        return
    while wait_for([server, ended]) == [server]:
        message, files, *_ = socket.recv_fds(server, _LONGEST, 4)
        if not message:
            return
        if message == _READY:
            server.send(_READY)
            continue
        if message != _FORK:
            _, status = os.waitpid(int(message), 0)
            server.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        # Otherwise each child would print the main module's buffered output.
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGINT, interrupt)
            os.close(ended)
            server.close()
            _become(*files)
            return
        for file in files:
            os.close(file)
        server.send(str(child).encode())


def _become(request: int, connection: int, out: int, err: int) -> None:
    """Runs in the child."""
    with os.fdopen(request, "rb") as file:
        (environment, folder, sys.path[:]), target, arguments = pickle.load(file)
    os.chdir(folder)
    for number, output in enumerate((out, err), start=1):
        os.dup2(output, number)
        os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    target(Connection(connection, readable=False), *arguments)
