# SPDX-License-Identifier: BSD-3-Clause
"""torchrun restarts ranks after one was killed, and the training continues."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import nn

from support.programs import ROOT, run, variables

EXAMPLE = ROOT / "examples" / "distributed" / "elastic.py"


def losses_without_a_restart(steps: int) -> list[float]:
    """Returns the losses of the example in one CPU process with all batches."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        both = [model(torch.full((8, 4), value)) - 1 for value in (1.0, 2.0)]
        loss = torch.cat(both).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.slow
@pytest.mark.differs_in_process("occl", run=False)
@pytest.mark.timeout(200)
def test_training_continues_from_the_checkpoint(tmp_path):
    command = "torch.distributed.run --standalone --nproc-per-node 2 --max-restarts 1"
    done = run(
        *(sys.executable, "-m", *command.split(), EXAMPLE, tmp_path / "checkpoints"),
        environment=variables(TORCH_FR_DUMP_TEMP_FILE=f"{tmp_path}/rank_"),
        seconds=180,
    )
    assert done.returncode == 0, done.stderr
    loss = losses_without_a_restart(10)[-1]
    assert done.stdout == f"restarts: 1, from step 6, loss {loss:.5f}\n"
    assert "(exitcode: -9) local_rank: 1" in done.stderr
