# SPDX-License-Identifier: BSD-3-Clause
"""Predicts a mixture of experts whose time depends on where its tokens go.

The device computes real values, so the router decides as it would on a GPU. Both runs
do the same number of operations.
"""

import torch
from torch import nn

import openreg_predict

EXPERTS, WIDTH, TOKENS = 32, 256, 2048


class Experts(nn.Module):
    """Sends each token to the expert with the highest score."""

    def __init__(self, skew: float) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 1024), nn.GELU(), nn.Linear(1024, WIDTH))
            for _ in range(EXPERTS)
        )
        with torch.no_grad():  # the first experts get more tokens
            self.router.bias -= skew * torch.arange(EXPERTS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the experts that have tokens, one after the other."""
        choice = self.router(x).argmax(-1)
        counts = torch.bincount(choice, minlength=EXPERTS).tolist()
        order = choice.argsort()
        parts = x[order].split(counts)
        done = [
            expert(part)
            for expert, part in zip(self.experts, parts, strict=True)
            if len(part)
        ]
        return torch.empty_like(x).index_copy_(0, order, torch.cat(done))


def main() -> None:
    """Prints the predicted time of both routings."""
    for name, skew in (("even", 0.0), ("skewed", 0.1)):
        torch.manual_seed(0)
        model = Experts(skew).to("openreg")
        x = torch.randn(TOKENS, WIDTH, device="openreg")
        with torch.no_grad(), openreg_predict.record() as run:
            model(x)
        step = run.predict("h100-sxm").step
        used = sum(op.call.name == "gelu" for op in run.ops())
        print(f"{name}: {used} experts, {1e6 * step.value:.0f} us")


if __name__ == "__main__":
    main()
