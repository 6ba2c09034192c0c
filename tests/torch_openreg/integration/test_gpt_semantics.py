# SPDX-License-Identifier: BSD-3-Clause
"""A GPT with tied weights is moved, trained, saved and sharded as on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, TIME, HEADS = 31, 16, 12, 4
STEPS = 4

Numbers = dict[str, Any]
Build = partial[torch.optim.Optimizer]

WAYS: dict[str, dict[str, bool]] = {
    "loop": {"foreach": False, "fused": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
OPTIMIZERS: dict[str, Build] = {
    f"{kind} {way}": partial(build, **options)
    for kind, build in {
        "adamw": partial(torch.optim.AdamW, lr=1e-2),
        "sgd": partial(torch.optim.SGD, lr=1e-2, momentum=0.9),
    }.items()
    for way, options in WAYS.items()
}
each_optimizer = pytest.mark.parametrize("build", OPTIMIZERS.values(), ids=OPTIMIZERS)


class Block(nn.Module):
    """Causal attention and an MLP, each with dropout and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.GELU(),
            nn.Linear(4 * WIDTH, WIDTH),
            nn.Dropout(0.2),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps (batch, time, width) to the same shape."""
        q, k, v = (
            part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        heads = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=0.2 if self.training else 0.0
        )
        x = x + self.merge(heads.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    """Two blocks between an embedding and a head that share a parameter."""

    def __init__(self, recompute: dict[str, bool] | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(TIME, WIDTH))
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        self.recompute = recompute

    def forward(self, text: Tensor) -> Tensor:
        """The mean loss of predicting (batch, time + 1) tokens, except the first."""
        x = F.dropout(self.tokens(text[:, :-1]) + self.positions, 0.1, self.training)
        for block in self.blocks:
            if self.recompute is None:
                x = block(x)
            else:
                x = checkpoint(block, x, **self.recompute)
        logits = self.head(self.norm(x)).flatten(0, 1)
        return F.cross_entropy(logits, text[:, 1:].flatten())


def gpt(**options: Any) -> GPT:
    """Returns a model on the CPU, always with the same weights."""
    torch.manual_seed(0)
    return GPT(**options)


def texts(device: str, step: int = 0) -> Tensor:
    """Returns the model's input in a step."""
    generator = torch.Generator().manual_seed(100 + step)
    drawn = torch.randint(VOCABULARY, (3, TIME + 1), generator=generator)
    return drawn.to(device)


def backward(model: GPT, device: str, step: int) -> Tensor:
    """Computes the gradients of a step, with dropout seeded by the step."""
    torch.manual_seed(step)
    loss = model(texts(device, step))
    loss.backward()
    return loss.detach()


def train(
    model: GPT,
    optimizer: torch.optim.Optimizer,
    device: str,
    steps: Iterator[int] | range = range(STEPS),
) -> Numbers:
    """Trains for some steps and returns the losses and the final state."""
    numbers: Numbers = {}
    for step in steps:
        optimizer.zero_grad()
        numbers[f"loss {step}"] = backward(model, device, step)
        optimizer.step()
    return numbers | remains(model, optimizer)


def remains(model: GPT, optimizer: torch.optim.Optimizer | None = None) -> Numbers:
    """Returns weights with versions and gradients, and the optimizer's state."""
    numbers: Numbers = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        numbers[name] = parameter.detach()
        numbers[f"gradient of {name}"] = parameter.grad
    if optimizer is not None:
        for index, state in optimizer.state_dict()["state"].items():
            numbers |= {f"{key} of {index}": value for key, value in state.items()}
    return numbers


def assert_same(ours: Numbers, cpu: Numbers) -> None:
    """Asserts bitwise equal numbers on any devices."""
    assert ours.keys() == cpu.keys()
    for name, expected in cpu.items():
        value = ours[name]
        if isinstance(expected, Tensor):
            value, expected = value.detach().cpu(), expected.detach().cpu()
            assert value.dtype == expected.dtype, name
            assert value.numpy().tobytes() == expected.numpy().tobytes(), name
        else:
            assert value == expected, name


@each_optimizer
@pytest.mark.parametrize("made", ["before", "after"])
def test_tied_gpt_trains_with_cpu_numbers(device: str, build: Build, made: str) -> None:
    results = []
    for place in (device, "cpu"):
        model = gpt()
        if made == "before":
            optimizer = build(model.parameters())
            model.to(place)
        else:
            model.to(place)
            optimizer = build(model.parameters())
        results.append(train(model, optimizer, place))
        assert model.head.weight is model.tokens.weight
        assert len(list(model.parameters())) == len(optimizer.param_groups[0]["params"])
    assert_same(*results)
    assert results[1]["loss 0"] > results[1]["loss 3"]


@each_optimizer
def test_step_counts_as_one_change_of_each_parameter_as_on_the_cpu(
    device: str, build: Build
) -> None:
    versions = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        seen = []
        for step in range(2):
            backward(model, place, step)
            before = [p._version for p in model.parameters()]
            optimizer.step()
            after = [p._version for p in model.parameters()]
            seen += [b - a for a, b in zip(before, after, strict=True)]
        versions.append(seen)
    assert versions[0] == versions[1]


@each_optimizer
def test_step_between_forward_and_backward_has_the_outcome_of_the_cpu(
    device: str, build: Build
) -> None:
    """An error, except for a fused step, which does not increase the version."""
    outcomes = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        backward(model, place, 0)
        loss = model(texts(place, 1))
        optimizer.step()
        numbers: Numbers = {}
        try:
            loss.backward()
        except RuntimeError as error:
            # PyTorch prints CPUFloatType like this, and other devices' names unchanged.
            text = str(error).replace(f"{device}FloatType", "torch.FloatTensor")
            numbers["error"] = text
        outcomes.append(numbers | remains(model))
    assert_same(*outcomes)
    expects_error = not build.keywords.get("fused")
    assert (
        "modified by an inplace op" in outcomes[1].get("error", "")
    ) == expects_error


@each_optimizer
def test_gradients_accumulate_with_cpu_numbers(device: str, build: Build) -> None:
    results = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        numbers: Numbers = {}
        for step in range(2 * STEPS):
            numbers[f"loss {step}"] = backward(model, place, step)
            if step % 2:
                numbers[f"norm {step}"] = nn.utils.clip_grad_norm_(
                    model.parameters(), 0.5
                )
                optimizer.step()
                optimizer.zero_grad(set_to_none=step % 4 == 1)
        results.append(numbers | remains(model, optimizer))
    assert_same(*results)


@each_optimizer
def test_grad_scaler_scales_and_leaves_out_steps_as_on_the_cpu(
    device: str, build: Build
) -> None:
    results = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        scaler = torch.amp.GradScaler(place, init_scale=2.0**10, growth_interval=2)
        numbers: Numbers = {}
        for step in range(STEPS + 2):
            optimizer.zero_grad()
            torch.manual_seed(step)
            loss = model(texts(place, step))
            scaler.scale(loss * (float("inf") if step == 3 else 1)).backward()
            if step % 2:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            before = model.tokens.weight.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            left_out = torch.equal(model.tokens.weight, before)
            assert left_out == (step == 3)
            numbers |= {f"loss {step}": loss, f"scale {step}": scaler.get_scale()}
        results.append(numbers | remains(model, optimizer))
    assert_same(*results)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_gpt_trains_as_the_one_that_keeps_everything(
    device: str, reentrant: bool
) -> None:
    results = []
    for place, recompute in (
        (device, {"use_reentrant": reentrant}),
        ("cpu", {"use_reentrant": reentrant}),
        (device, None),
    ):
        model = gpt(recompute=recompute).to(place)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        results.append(train(model, optimizer, place))
    assert_same(results[0], results[1])
    assert_same(results[0], results[2])


@each_optimizer
def test_training_continues_from_a_file_on_another_device(
    device: str, build: Build, tmp_path: Path
) -> None:
    whole = gpt()
    expected = train(whole, build(whole.parameters()), "cpu", range(6))
    places = [device, "cpu", f"{device}:1"]
    for turn, place in enumerate(places):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        if turn:
            saved = torch.load(tmp_path / f"{turn}.pt", map_location=place)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            assert model.head.weight is model.tokens.weight
        last = train(model, optimizer, place, range(2 * turn, 2 * turn + 2))
        saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(saved, tmp_path / f"{turn + 1}.pt")
    assert_same(last, {name: expected[name] for name in last})


@each_optimizer
def test_model_moves_between_steps_with_an_optimizer_made_once(
    device: str, build: Build
) -> None:
    results = []
    for places in ([device, f"{device}:1", "cpu", device], ["cpu"] * 4):
        model = gpt()
        optimizer = build(model.parameters())
        numbers: Numbers = {}
        for step, place in enumerate(places):
            model.to(place)  # gradients, too
            optimizer.load_state_dict(optimizer.state_dict())  # moves it, too
            if step:
                optimizer.step()  # once more with the gradients of the last device
            optimizer.zero_grad()
            numbers |= train(model, optimizer, place, range(step, step + 1))
        results.append(numbers)
    assert_same(*results)


@each_optimizer
def test_parameters_are_offloaded_by_their_data_between_steps(
    device: str, build: Build
) -> None:
    results = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        optimizer = build(model.parameters())
        parameters = list(model.parameters())
        numbers: Numbers = {}
        for step in range(STEPS):
            numbers |= train(model, optimizer, place, range(step, step + 1))
            versions = [p._version for p in parameters]
            for p in parameters:
                p.grad = None
                p.data = p.data.cpu().clone()
            assert all(p.device.type == "cpu" for p in parameters)
            for p in parameters:
                p.data = p.data.to(place)
            assert [p._version for p in parameters] == versions
            assert all(p.device.type == place for p in parameters)
        results.append(numbers)
    assert_same(*results)


def free(parameters: list[nn.Parameter]) -> None:
    """Frees the memory of parameters that are still referenced."""
    for parameter in parameters:
        parameter.data.untyped_storage().resize_(0)


def gather(parameters: list[nn.Parameter], shards: list[Tensor]) -> None:
    """Allocates the memory of parameters again, with the values of their shards."""
    for parameter, shard in zip(parameters, shards, strict=True):
        parameter.data.untyped_storage().resize_(shard.nbytes)
        parameter.data.copy_(shard)


@each_optimizer
def test_storage_is_freed_and_refilled_around_each_use_as_fsdp_does(
    device: str, build: Build
) -> None:
    results = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        parameters = list(model.parameters())
        optimizer = build(parameters)
        shards = [p.detach().clone() for p in parameters]
        numbers: Numbers = {}

        free(parameters)
        for step in range(STEPS):
            gather(parameters, shards)
            torch.manual_seed(step)
            loss = model(texts(place, step))
            free(parameters)
            assert all(p.untyped_storage().nbytes() == 0 for p in parameters)
            gather(parameters, shards)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            for p, shard in zip(parameters, shards, strict=True):
                shard.copy_(p.detach())
            free(parameters)
            numbers[f"loss {step}"] = loss
        gather(parameters, shards)
        results.append(numbers | remains(model, optimizer))
    assert_same(*results)


@pytest.mark.parametrize("swap", ["before backward", "before forward"])
def test_next_use_reads_the_swapped_data(device: str, swap: str) -> None:
    """Saving a parameter for backward keeps the parameter, not a copy of its values."""
    results = []
    for place in (device, "cpu"):
        model = gpt().to(place)
        weight = model.blocks[0].mlp[0].weight
        if swap == "before forward":
            weight.data = weight.data * 2
        torch.manual_seed(0)
        loss = model(texts(place))
        if swap == "before backward":
            weight.data = weight.data * 2
        loss.backward()
        results.append({"loss": loss} | remains(model))
    assert_same(*results)
