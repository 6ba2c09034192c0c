# SPDX-License-Identifier: BSD-3-Clause
"""The launcher of device processes: ``python -m openreg_runtime.device``.

A program with ``OPENREG_ISOLATION=process`` starts one launcher. It loads the
executor's libraries once, without ``torch``, and forks a process for each device, which
takes milliseconds. As their parent it is notified when one ends or is stopped, and
reports that. When the program ends, for any reason, all device processes end.

The packets on its socket are lines of text. On a stream socket, which some systems have
instead of packet sockets, the number of bytes precedes each packet:

    to it    parent PID / range BEGIN END / runtime PATH / library PATH / start SYMBOL
             start NUMBER DEVICE OWN SIZE, with a socket
             kill NUMBER
    from it  killed NUMBER SIGNAL, ended NUMBER STATUS, stopped NUMBER SIGNAL
             failed NUMBER 0, and the reason in the next line
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path

PACKET_BYTES = 1 << 16
LENGTH = struct.Struct("=I")  # of a packet on a stream socket
MOST_FILES = 1 << 20  # if the system has no limit
PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
OOM_SCORE_ADJ = 500


class MemoryView(ctypes.Structure):
    """``orMemoryView`` of the C API."""

    _fields_ = (
        ("begin", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("distance", ctypes.c_ssize_t),
    )


@dataclass
class Program:
    """The program's data from the first packet."""

    parent: int = 0
    begin: int = 0
    end: int = 0
    runtime: str = ""
    libraries: list[str] = field(default_factory=list)
    start: str = ""
    log: str = ""

    @classmethod
    def parse(cls, text: str) -> Program:
        """Reads the first packet.

        Raises:
            ValueError: If a line is unknown.
        """
        program = cls()
        for line in text.splitlines():
            key, _, value = line.partition(" ")
            match key:
                case "parent":
                    program.parent = int(value)
                case "range":
                    begin, end = value.split()
                    program.begin, program.end = int(begin), int(end)
                case "runtime":
                    program.runtime = value
                case "library":
                    program.libraries.append(value)
                case "start":
                    program.start = value
                case "log":
                    program.log = value
                case _:
                    raise ValueError(f"line {line!r} is not known")
        return program


class Launcher:
    """Forks, watches and ends device processes.

    Args:
        channel: The socket to the program.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.framed = channel.type == socket.SOCK_STREAM
        self.program = Program.parse(self._receive()[0].decode())
        # Without a file for its parent, the launcher looks for it once a second.
        self.starter = os.getppid()
        self.parent = -1
        if sys.platform == "linux":
            self.parent = os.pidfd_open(self.program.parent)
        self.numbers: dict[int, int] = {}  # by process
        self.failure = ""
        self.libraries: list[ctypes.CDLL] = []
        try:
            if self.program.log:
                self._write_to(self.program.log)
            for path in [*self.program.libraries, self.program.runtime]:
                self.libraries.append(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
        except OSError as error:
            self.failure = str(error)

    @staticmethod
    def _write_to(path: str) -> None:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)

    def _receive(self) -> tuple[bytes, list[int]]:
        size = LENGTH.size if self.framed else PACKET_BYTES
        try:
            data, files, _, _ = socket.recv_fds(self.channel, size, 1)
            if self.framed and data:
                data += self._receive_rest(LENGTH.size - len(data))
                data = self._receive_rest(*LENGTH.unpack(data))
        except ConnectionResetError:  # it ended with unread reports
            return b"", []
        for file in files:
            os.set_inheritable(file, False)
        return data, files

    def _receive_rest(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self.channel.recv(size - len(data))):
            data += more
        return data

    def _send(self, text: str) -> None:
        try:
            data = text.encode()
            self.channel.sendall(LENGTH.pack(len(data)) * self.framed + data)
        except OSError:
            # The program has ended; the next poll reports it.
            return

    def run(self) -> None:
        """Serves until the program ends."""
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        with wake, woken:
            signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGCHLD, lambda *_: None)
            try:
                self._serve(wake)
            finally:
                signal.set_wakeup_fd(-1)  # before the file is closed

    def _serve(self, wake: socket.socket) -> None:
        poll = select.poll()
        for file in (self.channel.fileno(), self.parent, wake.fileno()):
            if file >= 0:
                poll.register(file, select.POLLIN)
        while True:
            ready = {file for file, _ in poll.poll(None if self.parent >= 0 else 1000)}
            if self.parent in ready:
                return
            if self.parent < 0 and os.getppid() != self.starter:
                return
            if wake.fileno() in ready:
                wake.recv(PACKET_BYTES)
                self._report()
            if self.channel.fileno() in ready:
                data, files = self._receive()
                if not data:
                    return
                self._do(data.decode(), files)

    def stop(self) -> None:
        """Kills every device process."""
        for process in self.numbers:
            os.kill(process, signal.SIGKILL)
        for process in self.numbers:
            os.waitpid(process, 0)

    def _report(self) -> None:
        while self.numbers:
            process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if process == 0:
                return
            number = self.numbers[process]
            if os.WIFSTOPPED(status):
                self._send(f"stopped {number} {os.WSTOPSIG(status)}")
                continue
            del self.numbers[process]
            if os.WIFSIGNALED(status):
                self._send(f"killed {number} {os.WTERMSIG(status)}")
            else:
                self._send(f"ended {number} {os.WEXITSTATUS(status)}")

    def _do(self, text: str, files: list[int]) -> None:
        verb, *words = text.split()
        numbers = [int(word) for word in words]
        if verb == "start":
            number, device, own, size = numbers
            if not files:  # the system drops files beyond this process's limit
                self._send(f"failed {number} 0\n{os.strerror(errno.EMFILE)}")
                return
            self._start(number, device, own, size, files[0])
        elif verb == "kill":
            for process, number in self.numbers.items():
                if number == numbers[0]:
                    os.kill(process, signal.SIGKILL)

    def _start(self, number: int, device: int, own: int, size: int, file: int) -> None:
        if self.failure:
            os.close(file)
            self._send(f"failed {number} 0\n{self.failure}")
            return
        launcher = os.getpid()
        try:
            process = os.fork()
        except OSError as error:
            os.close(file)
            self._send(f"failed {number} 0\n{error}")
            return
        if process == 0:
            status = 1
            try:
                self._become_device(launcher, device, own, size, file)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(file)
        self.numbers[process] = number

    def _become_device(
        self, launcher: int, device: int, own: int, size: int, file: int
    ) -> None:
        if sys.platform == "linux":  # elsewhere, the end of the socket ends it
            libc = ctypes.CDLL(None)
            # This process has one thread, so the signal comes when it ends.
            libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            libc.prctl(PR_SET_NAME, f"openreg-{device}".encode(), 0, 0, 0)
        if os.getppid() != launcher:
            return
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.channel.close()
        if sys.platform == "linux":
            os.close(self.parent)
            self._be_ended_first()
        *_, runtime = self.libraries
        start = None
        if self.program.start:
            start = ctypes.cast(
                getattr(self.libraries[-2], self.program.start), ctypes.c_void_p
            )
        view = MemoryView(self.program.begin, self.program.end, own, size, 0)
        runtime.orServeDevice.argtypes = (
            ctypes.c_int,
            ctypes.POINTER(MemoryView),
            ctypes.c_void_p,
        )
        error = runtime.orServeDevice(file, ctypes.byref(view), start)
        if error:
            runtime.orGetErrorMessage.restype = ctypes.c_char_p
            text = runtime.orGetErrorMessage().decode(errors="replace")
            sys.stderr.write(f"openreg: device {device}: {text}\n")
            os._exit(1)

    @staticmethod
    def _be_ended_first() -> None:
        """Makes an out-of-memory system kill this process before the program."""
        file = Path("/proc/self/oom_score_adj")
        # Containers may set more already, and then forbid less.
        if int(file.read_text()) < OOM_SCORE_ADJ:
            file.write_text(str(OOM_SCORE_ADJ))


def main() -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--socket", type=int, required=True, help="the socket to the program"
    )
    channel = socket.socket(fileno=parser.parse_args().socket)
    channel.set_inheritable(False)
    # Closes files that the program has open for other programs.
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(channel.fileno() + 1, limit if limit > 0 else MOST_FILES)
    launcher = Launcher(channel)
    try:
        launcher.run()
    finally:
        launcher.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
