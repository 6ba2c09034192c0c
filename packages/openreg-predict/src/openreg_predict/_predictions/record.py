# SPDX-License-Identifier: BSD-3-Clause
"""Records that predict, and the recording of a block of a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch.distributed as dist

from openreg_predict._devices.description import DescribedDevice
from openreg_predict._predictions.predict import predict_record
from openreg_predict._records.record import RecordedRun
from openreg_predict._reports.prediction import Comparison, Prediction


class Record(RecordedRun):
    """A run that can be costed for any device."""

    def predict(
        self, device: DescribedDevice | str | Path, **options: Any
    ) -> Prediction:
        """Predicts time and memory on a device.

        Args:
            device: A device, the name of one, or the path of its YAML file.
            **options: See :func:`openreg_predict.predict_record`.
        """
        return predict_record(self, device, **options)

    def compare(
        self, devices: Iterable[DescribedDevice | str | Path], **options: Any
    ) -> Comparison:
        """Predicts time and memory on several devices.

        Args:
            devices: Devices, names or paths.
            **options: See :func:`openreg_predict.predict_record`.
        """
        return Comparison([self.predict(each, **options) for each in devices])


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
    from openreg_predict._records import hooks
    from openreg_predict._records.attention import one_kernel_attention
    from openreg_predict._records.recorder import Recorder, RecordingMode

    if hooks.active() is not None:
        raise RuntimeError("openreg_predict.record(): another recording is active")
    result = Record(dry=dry, rank=int(os.environ.get("RANK", "0")))
    with ExitStack() as stack:
        if dry:
            from openreg_predict._records.dry import DryRun

            run = stack.enter_context(DryRun(result)).run
            recorder = Recorder(result, run)
        else:
            recorder = Recorder(result)
        attention = one_kernel_attention(
            recorder.device_type, None if dry else recorder
        )
        stack.enter_context(attention)
        stack.enter_context(hooks.all_hooks(recorder))
        stack.enter_context(RecordingMode(recorder))
        try:
            yield result
        finally:
            if dist.is_available() and dist.is_initialized():
                result.rank = dist.get_rank()
            recorder.note_gradients()
            recorder.end()
