# SPDX-License-Identifier: BSD-3-Clause
"""FlexAttention takes tensors of the device where it takes those of the CPU.

Dynamo traces these functions, so they are replaced, and their code is not changed.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import flex_attention

from openreg_inductor import _patches


def register() -> None:
    """Changes the functions that ask for the type of the device.

    If torch has others than 2.13.0, they refuse the device by themselves.
    """
    if not _patches.knows_attention():
        return
    device = torch._C._get_privateuse1_backend_name()
    module: Any = flex_attention
    validate, apply_options = module._validate_device, module._apply_kernel_options

    @functools.wraps(validate)
    def _validate_device(query: Tensor, key: Tensor, value: Tensor) -> None:
        if query.device.type != device:
            validate(query, key, value)
        elif query.requires_grad or key.requires_grad or value.requires_grad:
            raise NotImplementedError(
                "FlexAttention does not support backward on CPU. Please set the input "
                "requires_grad to False or use another device."
            )

    @functools.wraps(apply_options)
    def _apply_kernel_options(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        return_lse: bool,
        kernel_options: Any,
        return_aux: Any = None,
    ) -> Any:
        options = apply_options(
            query, key, value, return_lse, kernel_options, return_aux
        )
        if query.device.type == device:
            if options["OUTPUT_MAX"]:
                raise NotImplementedError(
                    "Returning max scores is not supported on CPU/MPS."
                )
            wanted = return_lse if return_aux is None else return_aux.lse
            options["OUTPUT_LOGSUMEXP"] = options["OUTPUT_LOGSUMEXP"] and wanted
        return options

    module._validate_device = _validate_device
    module._apply_kernel_options = _apply_kernel_options
