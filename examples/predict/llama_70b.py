# SPDX-License-Identifier: BSD-3-Clause
"""Predicts the training of a Llama with 70 billion parameters on 1 to 64 devices.

It is a dry run: this process computes nothing, and represents the first of all ranks.

    python llama_70b.py --ranks 8 64 --layers 80
"""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint

import openreg_predict

WIDTH, HEADS, KEYS, HIDDEN, WORDS = 8192, 64, 8, 28672, 128256
SIZE = WIDTH // HEADS


class Block(nn.Module):
    """Attention with grouped keys, and a gated layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * KEYS) * SIZE, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the block; positions are left out."""
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, -1, SIZE).transpose(1, 2)
        q, k, v = parts.split([HEADS, KEYS, KEYS], 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """A Llama that keeps only the inputs of its blocks for the backward pass."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Returns the scores of the next words."""
        x = self.embedding(words)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))


def build(layers: int, ranks: int) -> nn.Module:
    """Makes a sharded model without ever having all of it on one device."""
    with torch.device("meta"):
        model = Llama(layers)
    dist.init_process_group("openreg:fake", rank=0, world_size=ranks, store=FakeStore())
    mesh = dist.init_device_mesh("openreg", (ranks,))
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    return model.to_empty(device="openreg")


def train(layers: int, ranks: int, length: int) -> openreg_predict.Record:
    """Records three steps."""
    with openreg_predict.record(dry=True) as run:
        model = build(layers, ranks)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        words = torch.zeros(1, length, dtype=torch.int64, device="openreg")
        for _ in range(3):
            scores = model(words).float()
            F.cross_entropy(scores.flatten(0, 1), words.flatten()).backward()
            optimizer.step()
            optimizer.zero_grad()
    dist.destroy_process_group()
    return run


def main() -> None:
    """Prints the step time and the memory of each number of devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="h100-sxm")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 8, 16, 32, 64])
    parser.add_argument("--layers", type=int, default=80)
    parser.add_argument("--length", type=int, default=4096)
    options = parser.parse_args()
    for ranks in options.ranks:
        begun = time.perf_counter()
        run = train(options.layers, ranks, options.length)
        prediction = run.predict(options.device, find_steps=True)
        memory, step = prediction.memory[0], prediction.step
        verdict = "fits" if memory.fits else "does not fit"
        print(
            f"{ranks} devices: {step.value:.2f} s a step "
            f"({step.low:.2f} to {step.high:.2f}), {memory.total / 2**30:.1f} GiB, "
            f"{verdict}; predicted in {time.perf_counter() - begun:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
