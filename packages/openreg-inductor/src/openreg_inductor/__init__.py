# SPDX-License-Identifier: BSD-3-Clause
"""``torch.compile`` with Inductor for OpenReg devices.

``register()`` registers it in PyTorch; torch-openreg calls it on import. The rest of
the package is loaded when a program imports ``torch._dynamo`` or ``torch._inductor``.
"""

from __future__ import annotations

from importlib import metadata

from openreg_inductor import _libraries

_libraries.select(__path__, metadata.version("torch"))  # before torch is loaded

from openreg_inductor._registration import register  # noqa: E402

__all__ = ["register"]
