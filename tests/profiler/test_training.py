# SPDX-License-Identifier: BSD-3-Clause
"""torch.profiler around the training of a small GPT."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd import DeviceType
from torch.profiler import (
    ExecutionTraceObserver,
    ProfilerActivity,
    profile,
    schedule,
    tensorboard_trace_handler,
)

import openreg_runtime
from profiler.conftest import BOTH, Trace

TraceOf = Callable[[profile], Trace]
WIDTH, HEADS, LENGTH, WORDS = 32, 2, 16, 40


class Block(nn.Module):
    """Attention and a multilayer perceptron, with residual connections."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2) for part in parts
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    """Two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.words(tokens) + self.places(places)))


class Training:
    """Steps of AdamW on random tokens."""

    def __init__(self, **options: bool) -> None:
        torch.manual_seed(0)
        self.model = Gpt().to("openreg")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), **options)
        self.tokens = torch.randint(WORDS, (4, LENGTH))

    def step(self) -> torch.Tensor:
        tokens = self.tokens.to("openreg")
        logits = self.model(tokens)
        loss = nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}], ids=str)
def test_every_kernel_is_linked_to_its_operator(
    trace_of: TraceOf, options: dict[str, bool]
) -> None:
    training = Training(**options)
    training.step()
    with profile(activities=BOTH) as result:
        training.step()
    trace = trace_of(result)
    operators = {
        event["args"]["External id"]: event["name"] for event in trace.of("cpu_op")
    }
    assert len(trace.work) > 70
    unlinked = [
        event["name"]
        for event in trace.work
        if event["args"].get("External id") not in operators
    ]
    assert unlinked == []
    # All device time belongs to operators: their rows sum up to the kernels' time.
    averages = result.key_averages()
    by_operator = sum(
        row.self_device_time_total
        for row in averages
        if row.device_type == DeviceType.CPU
    )
    assert by_operator == pytest.approx(
        sum(event["dur"] for event in trace.work), rel=0.01
    )
    names = set(trace.names())
    assert {"addmm_kernel", "native_layer_norm_kernel", "embedding_kernel"} <= names
    assert {"native_layer_norm_backward_kernel", "gelu_backward_kernel"} <= names
    if options.get("fused"):
        assert "_fused_adamw__kernel" in names
    if options.get("foreach"):
        assert "_foreach_addcdiv__kernel" in names


def test_forward_and_backward_are_linked(trace_of: TraceOf) -> None:
    training = Training()
    training.step()
    with profile(activities=BOTH) as result:
        training.step()
    trace = trace_of(result)
    arrows = [event for event in trace.events if event.get("cat") == "fwdbwd"]
    assert len(arrows) > 40
    starts = {event["id"]: event for event in arrows if event["ph"] == "s"}
    ends = {event["id"]: event for event in arrows if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert all(ends[number]["tid"] != starts[number]["tid"] for number in starts)


def test_results_are_the_same_bit_by_bit() -> None:
    without = Training()
    losses = [without.step() for _ in range(3)]
    profiled = Training()
    with profile(activities=BOTH, record_shapes=True, profile_memory=True):
        again = [profiled.step() for _ in range(3)]
    assert torch.stack(losses).cpu().equal(torch.stack(again).cpu())
    for one, other in zip(
        without.model.parameters(), profiled.model.parameters(), strict=True
    ):
        assert one.detach().cpu().equal(other.detach().cpu())


def test_profiling_again_shows_the_same_kernels(trace_of: TraceOf) -> None:
    training = Training()
    training.step()
    found = []
    for _ in range(3):
        with profile(activities=BOTH) as result:
            training.step()
        kernels = trace_of(result).of("kernel")
        found.append(sorted(event["name"] for event in kernels))
        training.step()  # nobody looks
    assert found[0] == found[1] == found[2]


# PyTorch warns once if a program requests events during a cycle.
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_schedule_hands_over_each_cycle_and_leaves_nothing(tmp_path: Path) -> None:
    training = Training()
    training.step()
    counts = []

    def count(result: profile) -> None:
        events = [
            event
            for event in result.events()
            if event.device_type == DeviceType.PrivateUse1
        ]
        counts.append(
            len([event for event in events if event.name.endswith("_kernel")])
        )

    torch.openreg.synchronize()
    gc.collect()
    before = openreg_runtime.resource_usage()
    with profile(
        activities=BOTH,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=3),
        on_trace_ready=count,
    ) as result:
        for _ in range(12):
            training.step()
            result.step()
    torch.openreg.synchronize()
    assert len(counts) == 3
    assert len(set(counts)) == 1
    after = openreg_runtime.resource_usage()
    assert (after.streams, after.events) == (before.streams, before.events)
    with openreg_runtime.activity.record() as recording:  # is released again
        pass
    assert [each for each in recording.take() if each.kind == "kernel"] == []


def test_itt_marks_the_ranges_of_a_step_on_the_device() -> None:
    assert torch.profiler.itt.is_available()
    x = torch.arange(6.0).view(2, 3)
    gradients = []
    for device in ("cpu", "openreg"):
        leaf = x.to(device).detach().requires_grad_()
        with torch.autograd.profiler.emit_itt():
            torch.profiler.itt.range_push("step")
            leaf.exp().sum().backward()
            torch.profiler.itt.mark("end")
            torch.profiler.itt.range_pop()
        assert leaf.grad is not None
        gradients.append(leaf.grad.cpu())
    assert torch.equal(*gradients)


def test_steps_are_ranges_on_the_device(tmp_path: Path) -> None:
    training = Training()
    with profile(
        activities=BOTH,
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(tmp_path)),
    ) as result:
        for _ in range(3):
            training.step()
            result.step()
    (file,) = tmp_path.glob("*.pt.trace.json")
    trace = Trace(file.read_text(encoding="utf-8"))
    steps = [
        event
        for event in trace.of("gpu_user_annotation")
        if event["name"].startswith("ProfilerStep#")
    ]
    assert [event["name"] for event in steps] == ["ProfilerStep#1", "ProfilerStep#2"]
    for step in steps:
        inside = [
            event
            for event in trace.work
            if step["ts"] <= event["ts"] <= step["ts"] + step["dur"]
        ]
        assert len(inside) > 70


def test_memory_timeline_shows_device_memory(tmp_path: Path) -> None:
    training = Training()
    training.step()
    with profile(
        activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True
    ) as result:
        training.step()
    path = tmp_path / "memory.json"
    with pytest.warns(FutureWarning, match="export_memory_timeline"):
        result.export_memory_timeline(str(path), device="openreg:0")
    times, sizes = json.loads(path.read_text(encoding="utf-8"))
    assert len(times) == len(sizes) > 100
    parameters = sum(each.nbytes for each in training.model.parameters())
    assert max(sum(row) for row in sizes) > parameters


def test_flops_and_shapes_are_those_of_the_cpu() -> None:
    x = torch.rand(20, 30, device="openreg")
    found = {}
    for device in ("openreg", "cpu"):
        y = x.to(device)
        with profile(activities=BOTH, with_flops=True, record_shapes=True) as result:
            y @ y.t()
        (row,) = (
            each
            for each in result.key_averages(group_by_input_shape=True)
            if each.key == "aten::mm" and each.device_type == DeviceType.CPU
        )
        found[device] = (row.flops, row.input_shapes)
    assert found["openreg"] == found["cpu"]
    assert found["cpu"][0] == 2 * 20 * 30 * 20


def test_execution_trace_has_the_operators(tmp_path: Path) -> None:
    training = Training()
    training.step()
    path = tmp_path / "et.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    with profile(activities=BOTH, execution_trace_observer=observer):
        training.step()
    nodes = json.loads(path.read_text(encoding="utf-8"))["nodes"]
    names = {node["name"] for node in nodes}
    assert {"aten::addmm", "aten::gelu_backward"} <= names


def test_profile_of_only_the_device(trace_of: TraceOf) -> None:
    training = Training()
    training.step()
    with profile(activities=[ProfilerActivity.OPENREG]) as result:
        training.step()
    assert len(trace_of(result).work) > 70
