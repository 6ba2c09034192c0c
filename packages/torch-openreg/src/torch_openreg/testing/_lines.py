# SPDX-License-Identifier: BSD-3-Clause
"""Finds the line of the user's program from which a call came."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import traceback
from pathlib import Path

import torch

import torch_openreg

# Folders and files whose frames lie between the user's line and the device.
_LIBRARIES = (
    f"{Path(torch.__file__).parent}{os.sep}",
    f"{Path(torch_openreg.__file__).parent}{os.sep}",
    contextlib.__file__,
)


def user_line(thread: int) -> str:
    """Returns the innermost line outside of torch, as ``file:number: text``.

    A thread without such a line, as autograd's, works for ``thread``, whose line is
    given then.

    Args:
        thread: Identifier of the thread that runs the user's program.
    """
    for start in (sys._getframe(1), sys._current_frames().get(thread)):
        for frame, number in traceback.walk_stack(start) if start else ():
            file = frame.f_code.co_filename
            if not file.startswith(_LIBRARIES) and not file.startswith("<frozen"):
                text = linecache.getline(file, number, frame.f_globals).strip()
                return f"{file}:{number}: {text}" if text else f"{file}:{number}"
    return "unknown line"
