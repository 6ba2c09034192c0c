# SPDX-License-Identifier: BSD-3-Clause
"""Compiles a model ahead of time, into a package for each device.

python packages.py FOLDER
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import torch_openreg  # noqa: F401  (before the device's name is used)


class Model(nn.Module):
    """Kernels that check values, and operator calls, with constants of both."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 12)
        self.layers = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 5))
        self.register_buffer("scale", torch.arange(5.0))
        self.register_buffer("on_host", torch.tensor(0.3))

    def forward(self, rows: Tensor, divisors: Tensor) -> Any:
        values = self.layers(self.table(rows))
        scaled = (values * self.scale).softmax(-1)
        ordered = values.sort(-1)[0]
        return (
            scaled * self.on_host,
            ordered,
            torch.linalg.det(values.t() @ values + torch.eye(5, device=rows.device)),
            rows // divisors,
        )


def make_model(seed: int) -> Model:
    """Creates a model on the CPU, with the same numbers everywhere."""
    torch.manual_seed(seed)
    return Model().eval()


def to_device(model: Model, device: str) -> Model:
    """Moves a model to a device, except for its part on the host."""
    on_host = model.on_host
    model.to(device)
    model.on_host = on_host
    return model


def arguments(batch: int, device: str) -> tuple[Tensor, Tensor]:
    """Makes rows and divisors."""
    torch.manual_seed(batch)
    rows = torch.randint(20, (batch,))
    return rows.to(device), torch.randint(1, 5, (batch,)).to(device)


def main(folder: Path) -> None:
    """Compiles the model for both devices."""
    batch = torch.export.Dim("batch", min=2, max=64)
    for device in ("cpu", "openreg"):
        program = torch.export.export(
            to_device(make_model(0), device),
            arguments(4, device),
            dynamic_shapes=({0: batch}, {0: batch}),
        )
        torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / f"{device}.pt2")
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
