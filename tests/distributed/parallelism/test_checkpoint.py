# SPDX-License-Identifier: BSD-3-Clause
"""torch.distributed.checkpoint: two ranks save, four load and continue training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.functional import mse_loss

from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

Trained = tuple[list[float], dict[str, torch.Tensor]]


class Trainer:
    """A sharded model with its optimizer; all ranks have the same batch."""

    def __init__(self, device: str, seed: int) -> None:
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 4))
        mesh = init_device_mesh(device, (dist.get_world_size(),))
        fully_shard(net[0], mesh=mesh)
        self.net = fully_shard(net, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=0.05)
        generator = torch.Generator().manual_seed(7)
        parts = (torch.randn(8, n, generator=generator) for n in (8, 4))
        self.given, self.wanted = (part.to(device) for part in parts)

    def train(self, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = mse_loss(self.net(self.given), self.wanted)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses

    def state(self) -> dict[str, object]:
        model, optimizer = get_state_dict(self.net, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load(self, folder: str) -> None:
        self.train(1)  # a different state, also of the optimizer
        state = self.state()
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(
            self.net,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def whole(self) -> dict[str, torch.Tensor]:
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return get_model_state_dict(self.net, options=options)


def save(rank: int, device: str, folder: str) -> Trained:
    trainer = Trainer(device, seed=0)
    trainer.train(3)
    dcp.save(trainer.state(), checkpoint_id=folder)
    whole = trainer.whole()
    return trainer.train(3), whole


def save_while_training(rank: int, device: str, folder: str) -> Trained:
    trainer = Trainer(device, seed=0)
    trainer.train(3)
    whole = trainer.whole()
    # A separate group, because two threads must not share a backend.
    own = dist.new_group(backend="gloo") if device == "cpu" else None
    saving = dcp.async_save(trainer.state(), checkpoint_id=folder, process_group=own)
    losses = trainer.train(3)  # the checkpoint has the earlier state
    saving.result()
    return losses, whole


def load(rank: int, device: str, folder: str) -> Trained:
    trainer = Trainer(device, seed=1)
    trainer.load(folder)
    parameter = next(trainer.net.parameters())
    assert isinstance(parameter, DTensor)
    assert parameter.to_local().device.type == device
    whole = trainer.whole()
    return trainer.train(3), whole


@pytest.mark.timeout(150)
@pytest.mark.parametrize("how", [save, save_while_training])
def test_four_ranks_go_on_where_two_have_saved(how, tmp_path):
    saved, trained = {}, {}
    for device in ("cpu", "openreg"):
        folder = str(tmp_path / device)
        saved[device] = run_ranks(how, 2, device, folder)
        assert Path(folder, ".metadata").exists()
        trained[device] = run_ranks(load, 4, device, folder)
    for (losses, _), (wanted, _) in zip(*saved.values(), strict=True):
        assert losses == pytest.approx(wanted, rel=1e-6)
        assert losses[-1] < losses[0]
    losses, whole = saved["openreg"][0]
    for rank, (found, state) in enumerate(trained["openreg"]):
        assert found == pytest.approx(losses, rel=1e-6), rank
        if rank == 0:  # only rank 0 has the whole state
            assert state.keys() == whole.keys()
            for name, tensor in state.items():
                assert torch.equal(tensor, whole[name]), name
