# SPDX-License-Identifier: BSD-3-Clause
"""Lightning's Trainer on ranks with DDP.

Run it as ``torchrun --nproc-per-node 2 lightning_ddp.py [openreg | cpu]``. Without
torchrun, Lightning starts the second process.
"""

from __future__ import annotations

import logging
import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", module="lightning")  # few workers and batches
logging.getLogger("lightning").setLevel(logging.ERROR)

from lightning.pytorch import LightningModule, Trainer  # noqa: E402


class Regression(LightningModule):
    """A small network that records its losses."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        self.losses: list[float] = []

    def training_step(self, batch, index):
        """Returns the loss of this rank's batch."""
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.layers(inputs), targets)
        self.losses += self.all_gather(loss.detach()).tolist()
        return loss

    def validation_step(self, batch, index):
        """Logs the loss, averaged over ranks."""
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.layers(inputs), targets)
        self.log("validated", loss, sync_dist=True)

    def configure_optimizers(self):
        """Returns the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)
torch.manual_seed(0)
model = Regression()
data = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(32, 4), torch.randn(32, 1)),
    batch_size=4,
)
options = {"accelerator": "cpu", "strategy": "ddp"}
if device == "openreg":
    # [docs: register]
    from torch_openreg.integrations import lightning as openreg_lightning

    openreg_lightning.register()
    options = {"accelerator": "openreg", "strategy": "ddp_openreg"}
    # [docs: end]
trainer = Trainer(
    devices=2,
    max_epochs=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    **options,
)
trainer.fit(model, data, data)
if trainer.is_global_zero:
    print("losses:", model.losses)
    print("validated:", trainer.callback_metrics["validated"].item())
    print("device:", trainer.strategy.root_device.type)
torch.distributed.destroy_process_group()
