# SPDX-License-Identifier: BSD-3-Clause
"""FakeTensorMode says of the device's results what they look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing._internal.opinfo.core import OpInfo

from openreg_conformance.checks.fake import check_call, check_fake
from openreg_conformance.checks.mirrors import mirror
from openreg_conformance.checks.sweep import SWEPT, sampled, sweep_name
from openreg_conformance.checks.tally import Tally, quiet

pytestmark = pytest.mark.timeout(600, method="thread")

aten = torch.ops.aten
LAST = torch.channels_last
HALF = torch.bfloat16


@pytest.mark.parametrize("op", SWEPT, ids=sweep_name)
def test_fake_metadata_are_those_of_real_results(
    op: OpInfo, whole: bool, tally: Tally
) -> None:
    # Foreach operators have long lists of tensors, and no layouts of their own.
    count = 1 if op.name.startswith("_foreach") else 3
    with quiet():
        for i, sample in sampled(op, whole=whole, count=count):
            check_fake(tally, f"sample {i}", op, sample)


def convolve(x: Tensor, weight: Tensor) -> Any:
    sizes = [1, 1], [1, 1], [1, 1], False, [0, 0], 1
    y = aten.convolution(x, weight, None, *sizes)
    masks = [True, True, True]
    back = aten.convolution_backward(torch.ones_like(y), x, weight, [8], *sizes, masks)
    return y, back


def normalize(training: bool) -> Callable[..., Any]:
    def call(x: Tensor, *statistics: Tensor) -> Any:
        return aten._native_batch_norm_legit(x, *statistics, training, 0.1, 1e-5)

    return call


def bag(mode: int) -> Callable[..., Any]:
    return lambda *tensors: aten._embedding_bag(*tensors, False, mode)


def statistics(dtype: torch.dtype) -> list[Tensor]:
    return [torch.ones(4, dtype=dtype) for _ in range(4)]


def rnn(operator: Any, biases: bool) -> Callable[..., Any]:
    def call(x: Tensor, *weights: Tensor) -> Any:
        state: Any = x.new_zeros(1, 6, 5)
        if operator is aten.lstm:
            state = [state, state]
        rest = 1, 0.0, True, False, False
        return operator(x, state, list(weights), biases, *rest)

    return call


def gates(count: int, *, biases: bool) -> list[Tensor]:
    made = [torch.rand(5 * count, 6), torch.rand(5 * count, 5)]
    return made + [torch.rand(5 * count) for _ in range(2)] * biases


X = torch.rand(2, 4, 6, 6)
WEIGHT = torch.rand(8, 4, 3, 3)
BAGS = [torch.rand(10, 3), torch.arange(6), torch.tensor([0, 2, 4])]
# What functions of the database hide: results that only a backward pass reads, which
# torch.compile keeps.
HIDDEN: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "convolution": (convolve, [X, WEIGHT]),
    "convolution of channels last": (convolve, [X.to(memory_format=LAST), WEIGHT]),
    "convolution by channels last": (convolve, [X, WEIGHT.to(memory_format=LAST)]),
    "batch norm in training": (normalize(True), [X, *statistics(torch.float32)]),
    "batch norm in evaluation": (normalize(False), [X, *statistics(torch.float32)]),
    "batch norm in bfloat16": (normalize(True), [X.to(HALF), *statistics(HALF)]),
    "layer norm": (lambda x: aten.native_layer_norm(x, [6], None, None, 1e-5), [X]),
    "layer norm in bfloat16": (
        lambda x, w: aten.native_layer_norm(x, [6], w, w, 1e-5),
        [X.to(HALF), torch.ones(6, dtype=HALF)],
    ),
    "layer norm in bfloat16 and float32": (
        lambda x, w: aten.native_layer_norm(x, [6], w, w, 1e-5),
        [X.to(HALF), torch.ones(6)],
    ),
    "group norm in bfloat16": (
        lambda x, w: aten.native_group_norm(x, w, w, 2, 4, 36, 2, 1e-5),
        [X.to(HALF), torch.ones(4, dtype=HALF)],
    ),
    "rms norm in bfloat16": (
        lambda x, w: aten._fused_rms_norm(x, [6], w, 1e-5),
        [X.to(HALF), torch.ones(6, dtype=HALF)],
    ),
    "embedding bag of sums": (bag(0), BAGS),
    "embedding bag of means": (bag(1), BAGS),
    "embedding bag of maxima": (bag(2), BAGS),
    "log sigmoid": (lambda x: aten.log_sigmoid_forward(x), [X]),
    "dropout": (lambda x: aten.native_dropout(x, 0.5, True), [X]),
    "attention": (
        lambda q: aten._scaled_dot_product_flash_attention_for_cpu(q, q, q),
        [X.transpose(1, 2)],
    ),
    "lstm": (rnn(aten.lstm, True), [X[0], *gates(4, biases=True)]),
    "lstm without biases": (rnn(aten.lstm, False), [X[0], *gates(4, biases=False)]),
    "gru": (rnn(aten.gru, True), [X[0], *gates(3, biases=True)]),
    "gru without biases": (rnn(aten.gru, False), [X[0], *gates(3, biases=False)]),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_fake_metadata_are_those_of_all_results_of_an_operator(
    name: str, tally: Tally
) -> None:
    call, arguments = HIDDEN[name]
    with quiet():
        check_call(
            tally,
            name,
            call,
            lambda device: (tuple(mirror(arguments, device)), {}),
        )
