# SPDX-License-Identifier: BSD-3-Clause
"""openreg-aten: tensors, operators, gradients and streams on privateuseone."""

import torch

import openreg_aten

device = torch.device("privateuseone")
x = torch.arange(3.0, device=device, requires_grad=True)
(x * x).sum().backward()
print(x.grad)
# prints: tensor([0., 2., 4.], device='privateuseone:0')

with torch.Stream(device) as stream:
    y = x.detach() + 1
stream.synchronize()
print(y.tolist(), torch.accelerator.device_count())
# prints: [1.0, 2.0, 3.0] 2

print(len(openreg_aten.mechanisms()) > 20)
# prints: True

# Mixed precision and the device module need other packages, and the errors name them.
for missing in (
    lambda: torch.autocast("privateuseone"),
    lambda: torch.privateuseone.get_device_name(),
):
    try:
        missing()
    except (RuntimeError, AttributeError) as error:
        print(str(error).partition("==")[0].rpartition(": ")[2])
# prints: pip install openreg-amp
# prints: pip install torch-openreg
