# SPDX-License-Identifier: BSD-3-Clause
"""Lightning's Trainer in float32, then in bfloat16 from a checkpoint."""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", module="lightning")  # few workers and batches
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

# [docs: strategy]
from lightning.pytorch import LightningModule, Trainer  # noqa: E402
from lightning.pytorch.plugins import MixedPrecision  # noqa: E402
from lightning.pytorch.strategies import SingleDeviceStrategy  # noqa: E402

from torch_openreg.integrations.lightning import OpenRegAccelerator  # noqa: E402


def trainer_for(device: str, precision: str | None = None, **options) -> Trainer:
    """Returns a Trainer for any device; precision is "16-mixed" or "bf16-mixed"."""
    if device.startswith("openreg"):
        options["strategy"] = SingleDeviceStrategy(
            device, accelerator=OpenRegAccelerator()
        )
    else:
        options |= {"accelerator": device, "devices": 1}
    if precision is not None:
        options["plugins"] = [MixedPrecision(precision, device.partition(":")[0])]
    return Trainer(**options)


# [docs: end]
class Regression(LightningModule):
    """A small network that records its losses."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.losses: list[float] = []

    def training_step(self, batch, index):
        """Returns the loss of a batch."""
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.layers(inputs), targets)
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        """Returns the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


device = sys.argv[1] if len(sys.argv) > 1 else "openreg:0"
torch.set_num_threads(1)
torch.manual_seed(0)
model = Regression()
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1)),
    batch_size=8,
)
quiet = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
with tempfile.TemporaryDirectory() as folder:
    trainer = trainer_for(device, max_epochs=2, **quiet)
    trainer.fit(model, data)
    trainer.save_checkpoint(f"{folder}/two_epochs.ckpt")
    print("losses in float32:", model.losses)

    model = Regression()
    trainer = trainer_for(device, "bf16-mixed", max_epochs=4, **quiet)
    trainer.fit(model, data, ckpt_path=f"{folder}/two_epochs.ckpt")
    print("losses in bfloat16:", model.losses)
print("device:", trainer.strategy.root_device.type)
