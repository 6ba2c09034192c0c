# SPDX-License-Identifier: BSD-3-Clause
"""The dispatch keys of a call, from its tensors and from the thread."""

import torch
from torch import _C

x = torch.ones(2, device="openreg")
print(*str(_C._dispatch_keys(x)).split(", "), sep="\n")
# prints: DispatchKeySet(PrivateUse1
# prints: ADInplaceOrView
# prints: AutogradPrivateUse1
# prints: AutocastPrivateUse1)
print(_C._dispatch_keys(x.cfloat().conj()).has(_C.DispatchKey.Conjugate))
# prints: True
with torch.inference_mode():
    print(_C._dispatch_keys(torch.ones(2, device="openreg")))
# prints: DispatchKeySet(PrivateUse1, AutocastPrivateUse1)


def excluded() -> list[str]:
    """Lists the keys of a device tensor that this thread excludes."""
    keys = _C.DispatchKey.AutogradFunctionality, _C.DispatchKey.AutocastPrivateUse1
    return [key.name for key in keys if _C._dispatch_tls_is_dispatch_key_excluded(key)]


print(excluded())
# prints: ['AutocastPrivateUse1']
with torch.autocast("openreg"):
    print(excluded())
# prints: []
with _C._AutoDispatchBelowAutograd():
    print(excluded())
# prints: ['AutogradFunctionality', 'AutocastPrivateUse1']
