# SPDX-License-Identifier: BSD-3-Clause
"""Finds the line of the user's program that made a call."""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

import torch_openreg

if TYPE_CHECKING:
    from types import FrameType

# Folders and files of frames between the user's line and the device.
_LIBRARIES: tuple[str, ...] = (
    f"{Path(torch.__file__).parent}{os.sep}",
    f"{Path(torch_openreg.__file__).parent}{os.sep}",
    contextlib.__file__,
)

_collection = threading.RLock()


def add_library(folder: Path) -> None:
    """Makes the code of a folder count as a library, not as the user's program."""
    global _LIBRARIES
    _LIBRARIES = (*_LIBRARIES, f"{folder}{os.sep}")


class Place(NamedTuple):
    """A program line, whose text is read when it is printed."""

    file: str
    number: int

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.number).strip()
        return f"{self.file}:{self.number}: {text}" if text else f"{self[0]}:{self[1]}"


def user_place(thread: int) -> Place | None:
    """Returns the innermost line outside of torch, or None.

    A thread without such a line, for example of autograd, works for ``thread``: its
    line is returned then.

    Args:
        thread: The identifier of the user's thread.
    """
    here = sys._getframe(1)
    place = _innermost(here)
    if place is None and thread != threading.get_ident():
        place = _innermost(_frame_of(thread))
    return place


def user_line(thread: int) -> str:
    """Returns :func:`user_place` as ``file:number: text``."""
    return str(user_place(thread) or "unknown line")


def _frame_of(thread: int) -> FrameType | None:
    # Before Python 3.12.1, this may collect garbage while it holds an interpreter lock.
    # A destructor may call this function again, and would wait for that lock.
    with _collection:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)
        finally:
            if collects:
                gc.enable()


def caller_place(frame: FrameType) -> Place | None:
    """Returns the line of a frame, or None if it belongs to a library."""
    file = frame.f_code.co_filename
    if file.startswith(_LIBRARIES) or file.startswith("<frozen"):
        return None
    # Only the module can load the text of a file in an archive.
    linecache.lazycache(file, frame.f_globals)
    return Place(file, frame.f_lineno)


def _innermost(frame: FrameType | None) -> Place | None:
    while frame is not None:
        place = caller_place(frame)
        if place is not None:
            return place
        frame = frame.f_back
    return None
