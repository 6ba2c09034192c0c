# SPDX-License-Identifier: BSD-3-Clause
"""Enqueued operators: the host does not wait, and the order is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import openreg_runtime as runtime
from support.latches import Latches
from support.paths import paths


def attend(x: Tensor) -> Tensor:
    heads = x.view(2, 4, 3, 2).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


WORK: dict[str, Callable[[Tensor], Any]] = {
    "pointwise": lambda x: x + 2 * x,
    "in place": lambda x: x.clone().mul_(x).add_(1),
    "product": lambda x: x.view(8, 6) @ x.view(6, 8),
    "reduction": lambda x: (x.sum(), x.view(6, 8).mean(1), x.var()),
    "several results": lambda x: x.view(8, 6).max(1),
    "list of results": lambda x: torch._foreach_add([x, x.view(6, 8)], 1),
    "no typed kernel": lambda x: torch.native_channel_shuffle(x.view(2, 4, 6), 2),
    "convolution": lambda x: F.conv1d(x.view(2, 2, 12), x.view(4, 2, 6), padding=2),
    "attention": attend,
    "indices": lambda x: x[torch.tensor([3, 1, 1]).to(x.device)],
    "embedding": lambda x: F.embedding(torch.arange(4).to(x.device), x.view(8, 6)),
    "concatenation": lambda x: torch.cat([x, x.neg()]),
    "conversion": lambda x: x.to(torch.float64).to(torch.int32),
    "strided copy": lambda x: x.view(6, 8).t().contiguous(),
    "range": lambda x: torch.arange(0, 2.5, 0.5, device=x.device) * x[:5],
    "identity": lambda x: torch.eye(3, 16, device=x.device) * x.view(3, 16),
    "power of no factor": lambda x: torch.linalg.matrix_power(x[:4].view(2, 2), 0),
    "kth value": lambda x: x.view(6, 8).kthvalue(2),
    "linspace": lambda x: torch.linspace(0, 1, 48, device=x.device) + x,
    "out=": lambda x: torch.add(x, 1, out=torch.empty_like(x)),
    "triangle": lambda x: torch.tril(x.view(6, 8)),
    "scalar of the host": lambda x: x * torch.tensor(3.0),
}


@pytest.mark.parametrize("name", WORK)
def test_operator_is_enqueued_once_its_results_are_known(
    name: str, device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    work = WORK[name]
    first = torch.arange(1.0, 49.0) / 7
    work(first.to(device))  # caches the metadata of its results
    second = (first - 3).to(device)
    expected = work(first - 3)
    # Indices come from the host, whose copies wait.
    held = None if name in ("indices", "embedding") else latch()
    result: Any = None

    def run() -> None:
        nonlocal result
        result = work(second)

    counts = paths(run)
    if held is not None:
        assert set(counts) == {"enqueued"} or name == "conversion"
        assert not torch.accelerator.current_stream().query()
        held.release()
    same(result, expected)


def test_result_of_a_pointwise_operator_is_known_for_every_shape(
    device: str, latch: Latches
) -> None:
    x = torch.ones(7, 11, device=device)
    (x[0] + x[0]).exp_()  # the kernels have this dtype
    held = latch()
    y = (x + x[:1]).exp_()
    held.release()
    assert torch.equal(y.cpu(), torch.full((7, 11), 2.0).exp_())


def test_tensors_of_new_sizes_are_filled_without_waiting(
    device: str, latch: Latches
) -> None:
    torch.ones(3, device=device).zero_()
    torch.empty(3, device=device).uniform_()
    held = latch()
    x = torch.ones(5, 7, device=device)
    torch.empty(2, 2, 2, device=device).uniform_()
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert torch.equal(x.cpu(), torch.ones(5, 7))


def test_operators_run_in_the_order_of_the_program(device: str, latch: Latches) -> None:
    x = torch.zeros(4, device=device)
    for hold in (False, True):  # the first time, every kernel is new
        held = latch() if hold else None
        x.zero_()
        for i in range(1, 200):
            x.add_(i).mul_(0.5)
            y = x * 2
        if held is not None:
            held.release()
        expected = torch.zeros(4)
        for i in range(1, 200):
            expected.add_(i).mul_(0.5)
        assert torch.equal(y.cpu(), expected * 2)


def test_memory_that_the_host_frees_is_reused_in_stream_order(
    device: str, latch: Latches
) -> None:
    x = torch.ones(1000, device=device)
    total = torch.zeros(1000, device=device)
    total += (x + 1) * 0
    held = latch()
    before = torch.accelerator.memory_allocated()
    for i in range(50):
        total += (x + i) * 2  # temporary tensors are freed before their kernels run
    assert torch.accelerator.memory_allocated() == before
    held.release()
    assert torch.equal(
        total.cpu(), torch.full((1000,), sum((1 + i) * 2.0 for i in range(50)))
    )


def test_number_of_the_host_is_read_by_the_call(device: str, latch: Latches) -> None:
    x = torch.ones(3, device=device)
    number = torch.tensor(2.0)
    x * number
    held = latch()
    y = x * number
    number.fill_(5)
    held.release()
    assert y.tolist() == [2, 2, 2]


def test_failure_surfaces_when_the_host_waits_and_names_the_operator(
    device: str, latch: Latches
) -> None:
    weight = torch.ones(4, 2, device=device)
    good, bad = (torch.tensor(i, device=device) for i in ([0, 3], [0, 9]))
    F.embedding(good, weight)
    held = latch()
    F.embedding(bad, weight)  # no error yet
    held.release()
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        torch.accelerator.synchronize()
    assert F.embedding(good, weight).tolist() == [
        [1, 1],
        [1, 1],
    ]  # the device still works


def test_wrong_shapes_are_an_error_of_the_call(device: str, latch: Latches) -> None:
    x, y = torch.ones(3, device=device), torch.ones(4, device=device)
    x + x
    held = latch()
    with pytest.raises(RuntimeError, match="must match the size"):
        x + y
    held.release()


def test_wrong_numbers_are_an_error_of_the_call(device: str, latch: Latches) -> None:
    x = torch.ones(3, device=device).normal_(0, 1)
    held = latch()
    threading.Timer(0.05, held.release).start()
    with pytest.raises(RuntimeError, match="std >= 0"):
        x.normal_(0, -1)


def test_kernel_that_calls_operators_gets_their_results(device: str) -> None:
    x = torch.ones(100_000, device=device)
    (x * 2).sum()
    results: list[Tensor] = []

    def kernel() -> None:
        counts = paths(lambda: results.append((x * 2).sum()))
        results.append(torch.tensor(counts["enqueued"]))

    runtime.Device(0).default_stream.launch(kernel)
    torch.accelerator.synchronize()
    assert [each.item() for each in results] == [200_000, 0]


def test_operators_after_large_ones_are_enqueued_too(device: str) -> None:
    x = torch.ones(1 << 20, device=device)
    y = torch.ones(8, device=device)
    x * 2
    for _ in range(100):
        y * 2
    torch.accelerator.synchronize()
    assert paths(lambda: y * 2) == {"structured": 1}
    for _ in range(3):
        x * 2
    torch.accelerator.synchronize()
    assert paths(lambda: y * 2) == {"enqueued": 1}


def test_training_step_does_not_wait(device: str, latch: Latches) -> None:
    def build(where: str) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.LayerNorm(8),
            nn.GELU(),
            nn.Linear(8, 3),
        ).to(where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        x, y = torch.randn(5, 2, 8, 8), torch.arange(5) % 3
        x, y = x.to(where), y.to(where)

        def step() -> Tensor:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    step, step_on_cpu = build(device), build("cpu")
    losses = [step(), step()]
    torch.accelerator.synchronize()
    held = latch()
    counts = paths(lambda: losses.append(step()))
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert set(counts) == {"enqueued"}
    assert [each.item() for each in losses] == [step_on_cpu().item() for _ in range(3)]


def test_operators_of_a_side_stream_do_not_wait_for_the_default_one(
    device: str, latch: Latches
) -> None:
    x = torch.ones(100, device=device)
    held = latch()
    side = torch.Stream(device)
    with side:
        y = x * 3
    side.synchronize()
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert y.sum().item() == 300


def test_launch_blocking_keeps_the_type_of_an_error(run_python: Any) -> None:
    source = """
        import torch, openreg_aten
        w = torch.ones(1000, 1000, device="privateuseone")
        try:
            torch.nn.functional.embedding(torch.tensor([1000]).to(w.device), w)
        except IndexError as error:
            print(error)
    """
    result = run_python(source, OPENREG_LAUNCH_BLOCKING="1")
    assert "out of range" in result.stdout, result.stderr


def test_wrong_setting_is_a_clear_error(run_python: Any) -> None:
    source = """
        import torch, openreg_aten
        x = torch.ones(2, device="privateuseone")
        x + x
    """
    result = run_python(source, OPENREG_INLINE_BYTES="many")
    assert result.returncode == 1
    text = "environment variable OPENREG_INLINE_BYTES='many' is not valid: expected"
    assert text in result.stderr


def test_setting_is_in_the_table_of_the_runtime(run_python: Any) -> None:
    source = """
        import openreg_aten, openreg_runtime
        setting = openreg_runtime.setting("OPENREG_INLINE_BYTES")
        print(setting.number, setting.source)
    """
    assert run_python(source).stdout.split() == ["65536", "default"]
    result = run_python(source, OPENREG_INLINE_BYTES="123")
    assert result.stdout.split() == ["123", "environment"]
