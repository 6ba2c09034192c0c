# SPDX-License-Identifier: BSD-3-Clause
"""Forks processes off one that has imported PyTorch, which takes seconds.

The server is a process that multiprocessing has spawned, and its children end as it
would: through the exit handlers and the end of the interpreter. It uses no device, so
each child can. It reaps a child when it is asked to, and not before, so that the number
of a process is no other's meanwhile. It ends with the process that started it.
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
_SECONDS = 300  # for a reply, which that of a server that starts has to import for
_LONGEST = 64  # bytes of a message
_KEPT = 2  # one rank and several differ in OMP_NUM_THREADS
_OF_EACH_TEST = "PYTEST_CURRENT_TEST"  # which nothing reads as it is imported

_servers: list[ForkServer] = []  # the latest last


class ForkedProcess:
    """A child of a server, with the attributes of one of multiprocessing.

    Attributes:
        pid: Its number.
        exitcode: Its status once it has been waited for; negative for a signal. None
            if its server has ended before.
    """

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.exitcode: int | None = None

    def kill(self) -> None:
        """Ends it."""
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
    """Returns a server for this process and its environment, which may have to start.

    What reads variables of the environment while it is imported has read those of now.
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
    """A server, as the process sees it that started it.

    Attributes:
        made_for: That process, and its environment.
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
        """Runs ``target(connection, *arguments)`` in a child.

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
        """Sends a message, with open files, and returns the reply to it."""
        try:
            with self._lock:
                socket.send_fds(self._socket, [message], files)
                reply = self._socket.recv(_LONGEST)
            if not reply:
                raise EOFError("the fork server has ended")
        except BaseException:
            self.close()  # a reply to come would be taken for that of the next message
            raise
        return reply

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() == -1

    def close(self) -> None:
        """Lets the server end, and its children with it.

        In a process that was forked, it closes what that has inherited.
        """
        if self.made_for[0] == os.getpid() and not self.is_closed:
            with suppress(OSError):  # the server has ended
                # It ends although what this process has forked keeps the socket, too.
                self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _serve(server: socket.socket) -> None:
    """Forks for each request, and returns in the child when its function has."""
    # Ctrl-C is for the tests, which end the children.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    importlib.import_module("openreg_distributed")
    # A collection in a child would write to, and so copy, what all of them share.
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
        # Each child would write what the main module has printed.
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
