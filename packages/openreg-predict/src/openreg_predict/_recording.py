# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of a block of a program."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from openreg_predict._record import Record


@contextmanager
def record(*, dry: bool = False) -> Iterator[Record]:
    """Records what the block does on the device.

    The record has no times and depends on no device, so that it can be costed for any
    number of them. Compiled functions run as they are written while the block runs.

    Args:
        dry: Whether to compute nothing: device tensors and large host tensors then have
            no data. Models may be larger than the memory of this
            machine. Values that the host reads are assumed, and listed.

    Yields:
        The record; it is complete at the end of the block.

    Raises:
        RuntimeError: If another recording is active, or ``OPENREG_DISABLE`` names
            ``gpu_trace`` or ``device_module``.
        ModuleNotFoundError: If ``torch-openreg`` is not installed.
    """
    import torch_openreg  # noqa: F401  the device
    from openreg_predict import _hooks
    from openreg_predict._recorder import Recorder, RecordingMode

    if _hooks.is_active():
        raise RuntimeError("openreg_predict.record(): another recording is active")
    result = Record(dry=dry)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", ".*there are global hooks on modules")
        if dry:
            from openreg_predict._dry import DryRun

            run = stack.enter_context(DryRun(result)).run
            recorder = Recorder(result, run)
        else:
            recorder = Recorder(result)
        stack.enter_context(_hooks.all_hooks(recorder))
        stack.enter_context(RecordingMode(recorder))
        try:
            yield result
        finally:
            recorder.note_gradients()
