# SPDX-License-Identifier: BSD-3-Clause
"""Lightning's Trainer, as a program for GPUs has it: ACCELERATOR DEVICES PRECISION."""

from __future__ import annotations

import logging
import sys

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(LightningModule):
    """A small network with fixed weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        """Returns the loss of a batch, which is on the device of the weights."""
        inputs, targets = batch
        assert inputs.device == next(self.parameters()).device
        loss = nn.functional.cross_entropy(self.layers(inputs), targets)
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Returns the optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main(accelerator: str, devices: str, precision: str) -> None:
    """Trains, and prints the sums of the weights of rank 0, and its loss."""
    random = torch.Generator().manual_seed(1)
    inputs = torch.randn(32, 8, generator=random)
    targets = torch.randint(0, 3, (32,), generator=random)
    loader = DataLoader(
        TensorDataset(inputs, targets), 4, pin_memory=accelerator == "gpu"
    )
    trainer = Trainer(
        accelerator=accelerator,
        devices=int(devices),
        strategy="ddp" if int(devices) > 1 else "auto",
        precision=precision,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    model = Classifier()
    trainer.fit(model, loader)
    if trainer.is_global_zero:
        assert trainer.world_size == int(devices)
        expected = "cuda" if accelerator == "gpu" else "cpu"
        assert trainer.strategy.root_device.type == expected
        weights = [weight.detach().cpu() for weight in model.state_dict().values()]
        print("weights", [weight.double().sum().item() for weight in weights])
        print("loss", trainer.callback_metrics["loss"].item())


if __name__ == "__main__":
    main(*sys.argv[1:])
