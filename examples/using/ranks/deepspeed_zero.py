# SPDX-License-Identifier: BSD-3-Clause
"""DeepSpeed ZeRO on ranks, with stage 2 and stage 3.

Run it as ``torchrun --nproc-per-node 2 deepspeed_zero.py [openreg | cpu]``.
"""

from __future__ import annotations

import logging
import os
import sys

import torch
from torch import nn

device = sys.argv[1] if len(sys.argv) > 1 else "openreg"
torch.set_num_threads(1)  # the same summation order on both devices
# [docs: enable]
if device == "openreg":
    from torch_openreg.integrations import deepspeed as openreg_deepspeed

    openreg_deepspeed.enable()
else:
    os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed  # noqa: E402

# [docs: end]
deepspeed.utils.logger.setLevel(logging.ERROR)
deepspeed.init_distributed()
rank = torch.distributed.get_rank()


def trained(stage: int) -> list[float]:
    """Trains with this ZeRO stage; returns the losses of all ranks."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    engine, *_ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "torch_adam": True}},
            "zero_optimization": {"stage": stage},
            "steps_per_print": 1000,
        },
    )
    inputs, targets = torch.randn(8, 2, 4, 4), torch.randn(8, 2, 4, 1)
    losses = []
    for batch, target in zip(inputs[:, rank], targets[:, rank], strict=True):
        loss = nn.functional.mse_loss(
            engine(batch.to(engine.device)), target.to(engine.device)
        )
        engine.backward(loss)
        engine.step()
        both = [torch.empty_like(loss) for _ in range(2)]
        torch.distributed.all_gather(both, loss.detach())
        losses += [one.item() for one in both]
    engine.destroy()
    return losses


results = {stage: trained(stage) for stage in (2, 3)}
if rank == 0:
    for stage, losses in results.items():
        print(f"losses of stage {stage}:", losses)
    print("device:", deepspeed.get_accelerator().device_name())
torch.distributed.destroy_process_group()
