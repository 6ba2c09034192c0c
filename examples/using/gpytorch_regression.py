# SPDX-License-Identifier: BSD-3-Clause
"""gpytorch: fitting a Gaussian process and predicting with it."""

from __future__ import annotations

import sys

import gpytorch
import torch

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)


class Process(gpytorch.models.ExactGP):
    """A Gaussian process with a constant mean and a radial basis function kernel."""

    def __init__(self, inputs, targets, likelihood) -> None:
        super().__init__(inputs, targets, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        """Returns the prior at x (points, 1)."""
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


torch.manual_seed(0)
inputs = torch.linspace(0, 1, 40).unsqueeze(1)
targets = (torch.sin(inputs * 6).squeeze(1) + 0.1 * torch.randn(40)).to(device)
inputs = inputs.to(device)
likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
process = Process(inputs, targets, likelihood).to(device)
optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
log_likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
losses = []
for _ in range(10):
    optimizer.zero_grad()
    loss = -log_likelihood(process(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("losses:", losses)
process.eval()
likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(process(inputs[:3] + 0.01))
print("mean:", prediction.mean.tolist())
print("variance:", prediction.variance.tolist())
print("device:", prediction.mean.device.type)
