# SPDX-License-Identifier: BSD-3-Clause
"""Training with two streams is reported only where an order is missing."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.openreg import sanitizer
from torch.openreg.sanitizer import UnsynchronizedAccessError, UseAfterFreeError

from .programs import DEVICE


def train(side: torch.Stream, *, record: bool, wait: bool) -> list[float]:
    """Prepares batches on a side stream and trains on the default one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    main = torch.accelerator.current_stream()
    losses = []
    for _ in range(6):
        batch = torch.randn(32, 8).pin_memory()
        # Uses probabilities, so that kernels do not fail on values that another one
        # overwrote.
        target = torch.rand(32, 4).softmax(1).pin_memory()
        with side:
            x = batch.to(DEVICE, non_blocking=True)
            y = target.to(DEVICE, non_blocking=True)
            x = (x - x.mean(0)) / x.std(0)
        if wait:
            main.wait_stream(side)
        if record:
            x.record_stream(main)
            y.record_stream(main)
        optimizer.zero_grad()
        with torch.autocast("openreg", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def test_training_with_two_streams_is_not_reported(side: torch.Stream) -> None:
    with sanitizer.enabled():
        losses = train(side, record=True, wait=True)
    assert losses == train(side, record=True, wait=True)


def test_training_without_record_stream_is_reported(side: torch.Stream) -> None:
    with pytest.raises(UseAfterFreeError, match="record_stream"), sanitizer.enabled():
        train(side, record=False, wait=True)


def test_training_without_a_wait_is_reported(side: torch.Stream) -> None:
    with pytest.raises(UnsynchronizedAccessError), sanitizer.enabled():
        train(side, record=True, wait=False)
