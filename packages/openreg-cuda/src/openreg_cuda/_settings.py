# SPDX-License-Identifier: BSD-3-Clause
"""The package's switch, which the runtime reads and checks."""

from __future__ import annotations

import openreg_runtime
from openreg_cuda._loading import REPORT

openreg_runtime.register_setting(
    REPORT,
    "0",
    "switch",
    "1 reports calls of torch.cuda that have a form for every device",
)


def reports() -> bool:
    """Returns whether the process reports its calls of ``torch.cuda``.

    Raises:
        OpenRegError: If the value is invalid.
    """
    return openreg_runtime.setting(REPORT).number == 1
