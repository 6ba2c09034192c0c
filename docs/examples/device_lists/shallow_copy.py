# SPDX-License-Identifier: BSD-3-Clause
"""A model moved after its optimizer was created."""

# part: Tensors and memory
# place: c10/core/TensorImpl.h: has_compatible_shallow_copy_type
# asks: BackendComponent::CPUBit, BackendComponent::CUDABit, BackendComponent::MPSBit,
# means: `module.to()` creates new parameters instead of moving the old ones. An
#   optimizer created before the move then trains tensors that the model does not use.
#   `parameter.data = x` raises an error
# noticed: nothing
# way: mechanism shallow_copy

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
weight = model.weight
model.to("openreg")
print(model.weight is weight)
# prints: True
# without it: False
before = model.weight.tolist()
model(torch.ones(1, 2, device="openreg")).backward()
optimizer.step()
print(model.weight.tolist() != before)
# prints: True
