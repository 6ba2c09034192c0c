# SPDX-License-Identifier: BSD-3-Clause
"""The choice of an attention kernel."""

# part: Layers and functions
# place: ATen/native/transformers/attention.h
# asks: _fused_sdp_choice_stub
# means: `scaled_dot_product_attention` calls the stub that the device has registered.
#   Without one it uses the unfused formula
# noticed: nothing
# way: mechanism attention

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Calls(TorchDispatchMode):
    """Prints the attention operators that PyTorch calls."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "attention" in str(func):
            print(func)
        return func(*args, **(kwargs or {}))


x = torch.ones(1, 2, 16, 8, device="openreg")
with Calls():
    torch.nn.functional.scaled_dot_product_attention(x, x, x)
print("done")
# prints: aten._scaled_dot_product_flash_attention_for_cpu.default
# prints: done
# without it: done
