# SPDX-License-Identifier: BSD-3-Clause
"""The kernel of an operator for each dispatch key, and the file that registers it."""

import torch

KEYS = ("PrivateUse1", "ADInplaceOrView", "AutogradPrivateUse1", "AutocastPrivateUse1")


def show(name: str) -> None:
    """Prints the rows of the dispatch table that concern the device."""
    print(name)
    for line in torch._C._dispatch_dump_table(name).splitlines():
        key, _, kernel = line.partition(": ")
        if key in KEYS:
            place, _, kind = kernel.rpartition(" [")
            file = place.rpartition(" ")[2].rpartition("/")[2].partition(":")[0]
            falls_through = kernel.startswith("fallthrough")
            print(f"  {key}: {'fallthrough' if falls_through else file} [{kind}")


show("aten::bincount")
# prints: aten::bincount
# prints:   PrivateUse1: fallback.cpp [backend fallback]
# prints:   ADInplaceOrView: fallthrough [backend fallback]
# prints:   AutogradPrivateUse1: VariableType_7.cpp [autograd kernel]
# prints:   AutocastPrivateUse1: fallthrough [backend fallback]

show("aten::native_layer_norm")
# prints: aten::native_layer_norm
# prints:   PrivateUse1: typed.cpp [kernel]
# prints:   ADInplaceOrView: fallthrough [backend fallback]
# prints:   AutogradPrivateUse1: VariableType_6.cpp [autograd kernel]
# prints:   AutocastPrivateUse1: autocast.cpp [kernel]

show("aten::square")
# prints: aten::square
# prints:   PrivateUse1: RegisterCompositeImplicitAutograd_0.cpp [math kernel]
# prints:   ADInplaceOrView: fallthrough [backend fallback]
# prints:   AutogradPrivateUse1: RegisterCompositeImplicitAutograd_0.cpp [math kernel]
# prints:   AutocastPrivateUse1: fallthrough [backend fallback]
