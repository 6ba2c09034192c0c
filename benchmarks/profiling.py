# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of torch.profiler, as a factor of the time of a training step.

    python benchmarks/profiling.py

A step of a small GPT is timed without a profile, with a profile of the host, and with a
profile of host and device. The three take turns, so other work on the machine affects
all of them. The second factor is the cost of PyTorch's own part of the profiler.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

WIDTH, HEADS, LENGTH, WORDS, LAYERS = 128, 4, 64, 256, 4


class Gpt(nn.Module):
    """PyTorch encoder layers with a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Returns logits (batch, length, words) for tokens (batch, length)."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(
            length, device=tokens.device
        )
        return self.head(self.layers(self.words(tokens), mask=mask, is_causal=True))


def training() -> Callable[[], None]:
    """Returns a function that runs one step and waits for it."""
    torch.manual_seed(0)
    model = Gpt().to("openreg")
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(WORDS, (4, LENGTH), device="openreg")

    def step() -> None:
        logits = model(tokens)
        loss = nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.openreg.synchronize()

    return step


def main() -> None:
    """Prints the milliseconds of a step and the factors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds: int = parser.parse_args().rounds
    host, device = ProfilerActivity.CPU, ProfilerActivity.OPENREG
    ways: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "no profile": nullcontext,
        "host": lambda: profile(activities=[host]),
        "host, device": lambda: profile(activities=[host, device]),
    }
    step = training()
    for _ in range(3):
        step()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, start in ways.items():
            with start():
                begun = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - begun)
    first = statistics.median(times["no profile"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:<12} {median * 1e3:8.2f} ms  {median / first:5.2f}x")


if __name__ == "__main__":
    main()
