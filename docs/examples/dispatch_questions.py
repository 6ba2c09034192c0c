# SPDX-License-Identifier: BSD-3-Clause
"""Dispatcher queries for tests and scripts."""

import torch
from torch import _C

# Does the operator have a kernel registered for this key? A fallback does not count.
for name in ("aten::native_layer_norm", "aten::equal"):
    print(name, _C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"))
# prints: aten::native_layer_norm True
# prints: aten::equal False

# Does the key resolve to any kernel, including a composite kernel or a fallback?
print(_C._dispatch_has_computed_kernel_for_dispatch_key("aten::equal", "PrivateUse1"))
# prints: True

# Which operators have a kernel registered for the key?
names = _C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
print(len(names) > 300, "aten::empty.memory_format" in names)
# prints: True True

# Does the key have a fallback for all operators?
for key in (_C.DispatchKey.PrivateUse1, _C.DispatchKey.PrivateUse2):
    print(key.name, _C._dispatch_has_backend_fallback(key))
# prints: PrivateUse1 True
# prints: PrivateUse2 False

# Does the operator skip the key? Raises an error if only the fallback falls through.
is_fallthrough = _C._dispatch_kernel_for_dispatch_key_is_fallthrough
print(is_fallthrough("aten::reshape", _C.DispatchKey.Conjugate))
# prints: True

# Which kernels have no operator? A misspelled name causes no error, but is listed here.
library = torch.library.Library("demo", "IMPL")
library.impl("no_such_operator", torch.abs, "PrivateUse1")
print([line.split()[1] for line in _C._dispatch_find_dangling_impls()])
# prints: ['demo::no_such_operator']
