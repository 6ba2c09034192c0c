# SPDX-License-Identifier: BSD-3-Clause
"""A launcher whose devices break the rules: ``python broken_device.py HOW --socket 3``.

Its devices answer the first command with a reply of a wrong size (``size``), with
endless replies and without reading commands (``endless``), with impossible positions of
the pipe (``positions``), or not at all (``silent``).
"""

from __future__ import annotations

import mmap
import select
import socket
import struct
import sys
import time

CAPACITY = 1 << 20  # of a pipe
COMMANDS_WRITTEN, REPLIES_WRITTEN, REPLIES_READ = 0, 256, 320
COMMAND_BYTES = 4096
REPLY_BYTES = COMMAND_BYTES + CAPACITY
REPLY = struct.Struct("<IIQQQ")


def receive(channel: socket.socket) -> tuple[str, list[int]]:
    """Reads a packet and its file."""
    if channel.type == socket.SOCK_SEQPACKET:
        data, files, _, _ = socket.recv_fds(channel, 1 << 16, 1)
    else:  # the length comes first
        length, files, _, _ = socket.recv_fds(channel, 4, 1)
        data = channel.recv(int.from_bytes(length, sys.byteorder), socket.MSG_WAITALL)
    return data.decode(), files


def number_at(memory: mmap.mmap, offset: int) -> int:
    """Reads a position."""
    return int.from_bytes(memory[offset : offset + 8], "little")


def put_number(memory: mmap.mmap, offset: int, value: int) -> None:
    """Writes a position."""
    memory[offset : offset + 8] = value.to_bytes(8, "little")


def serve(how: str, control: socket.socket, channel: socket.socket) -> None:
    """Serves the first lane of a device."""
    _, (file,) = receive(control)
    memory = mmap.mmap(file, 0)
    while number_at(memory, COMMANDS_WRITTEN) == 0:
        time.sleep(0.001)
    if how == "size":
        memory[REPLY_BYTES : REPLY_BYTES + REPLY.size] = REPLY.pack(0, 0, 1 << 60, 0, 0)
        put_number(memory, REPLIES_WRITTEN, REPLY.size)
    elif how == "positions":
        put_number(memory, REPLIES_WRITTEN, 1 << 40)
    elif how == "endless":
        while not select.select([channel], [], [], 0)[0]:  # until the program ends
            put_number(
                memory, REPLIES_WRITTEN, number_at(memory, REPLIES_READ) + CAPACITY
            )


def main() -> None:
    """Serves the first device, until the program ends."""
    channel = socket.socket(fileno=int(sys.argv[-1]))
    receive(channel)
    _, (file,) = receive(channel)
    serve(sys.argv[1], socket.socket(fileno=file), channel)
    while channel.recv(1 << 16):
        pass


if __name__ == "__main__":
    main()
