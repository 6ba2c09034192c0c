# SPDX-License-Identifier: BSD-3-Clause
"""accelerate: a training loop in bfloat16 that is stopped and resumed."""

from __future__ import annotations

import os
import sys
import tempfile

import torch
from accelerate import Accelerator
from torch import Tensor, nn

# [docs: setting]
device = sys.argv[1] if len(sys.argv) > 1 else "openreg:0"
os.environ["ACCELERATE_TORCH_DEVICE"] = device  # or in the shell
os.environ["ACCELERATE_MIXED_PRECISION"] = "bf16"
# [docs: end]
torch.set_num_threads(1)  # the same summation order on both devices


# [docs: state]
class DeviceRandomState:
    """Device RNG states, for ``Accelerator.register_for_checkpointing``.

    Args:
        device: A device of the accelerator, such as ``Accelerator.device``.
    """

    def __init__(self, device: torch.device) -> None:
        self.module = torch.get_device_module(device)

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Returns the states of all devices."""
        return {"states": self.module.get_rng_state_all()}

    def load_state_dict(self, state: dict[str, list[Tensor]]) -> None:
        """Restores the states of all devices."""
        self.module.set_rng_state_all(state["states"])


# [docs: end]
accelerator = Accelerator()
torch.manual_seed(0)
inputs, targets = torch.randn(16, 4), torch.randn(16, 1)
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(inputs, targets),
    batch_size=4,
    generator=torch.Generator(),  # not the default generator
)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
if accelerator.device.type != "cpu":  # accelerate saves the CPU state
    accelerator.register_for_checkpointing(DeviceRandomState(accelerator.device))


def epoch() -> list[float]:
    """Trains on all batches; returns the losses."""
    losses = []
    for batch, target in data:
        loss = nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


torch.manual_seed(1)  # seeds the CPU and the device
with tempfile.TemporaryDirectory() as folder:
    print("first epoch:", epoch())
    accelerator.save_state(folder)
    second = epoch()
    print("second epoch:", second)
    accelerator.load_state(folder)
    print("the resumed epoch is the same:", epoch() == second)
    # prints: the resumed epoch is the same: True
with accelerator.autocast():
    print("computes in:", model[0](inputs.to(accelerator.device)).dtype)
    # prints: computes in: torch.bfloat16
print("device:", accelerator.device.type)
