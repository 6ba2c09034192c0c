# SPDX-License-Identifier: BSD-3-Clause
"""The operators of SyncBatchNorm normalize split batches as one batch on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

EPS, MOMENTUM = 1e-3, 0.3
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
SPLITS = [[4], [3, 5], [1, 2, 6], [2, 0, 3]]
SHAPES = [(), (7,), (4, 3), (2, 3, 2)]


def accumulated(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


class Ranks:
    """Batch normalization in the steps of ``torch.nn.SyncBatchNorm``.

    The ranks are one process here, so collectives are ``stack`` and ``sum``.
    """

    def __init__(
        self,
        parts: list[Tensor],
        weight: Tensor | None,
        bias: Tensor | None,
        running: tuple[Tensor, Tensor] | None,
    ) -> None:
        self.parts, self.weight = parts, weight
        full = [part for part in parts if part.numel()]
        stats = [torch.batch_norm_stats(part, EPS) for part in full]
        counts = [part.numel() // part.size(1) for part in full]
        mean = torch.stack([each for each, _ in stats])
        invstd = torch.stack([each for _, each in stats])
        first = parts[0]
        self.mean, self.invstd = torch.batch_norm_gather_stats_with_counts(
            first,
            mean,
            invstd,
            *(running or (None, None)),
            MOMENTUM,
            EPS,
            torch.tensor(counts, device=first.device).to(
                running[0].dtype if running else first.dtype
            ),
        )
        self.count = torch.tensor(counts, dtype=torch.int32, device=first.device)
        self.outputs = [
            torch.batch_norm_elemt(part, weight, bias, self.mean, self.invstd, EPS)
            if part.numel()
            else torch.empty_like(part)
            for part in parts
        ]

    def backward(
        self, gradients: list[Tensor]
    ) -> tuple[list[Tensor], Tensor | None, Tensor | None]:
        """Returns the gradients of the parts, of the weight and of the bias."""
        affine = self.weight is not None
        reduced = [
            torch.batch_norm_backward_reduce(
                grad, part, self.mean, self.invstd, self.weight, True, affine, affine
            )
            for grad, part in zip(gradients, self.parts, strict=True)
            if part.numel()
        ]
        sum_dy, sum_dy_xmu, grad_weight, grad_bias = (
            None if every[0] is None else torch.stack(every).sum(0)
            for every in zip(*reduced, strict=True)
        )
        weight = self.weight.to(self.mean.dtype) if affine else None
        grads = [
            torch.batch_norm_backward_elemt(
                grad,
                part,
                self.mean,
                self.invstd,
                weight,
                sum_dy,
                sum_dy_xmu,
                self.count,
            )
            if part.numel()
            else torch.zeros_like(part)
            for grad, part in zip(gradients, self.parts, strict=True)
        ]
        return grads, grad_weight, grad_bias


def assert_near(result: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    """Asserts equality up to the rounding of ``dtype``."""
    if dtype in (torch.float16, torch.bfloat16):
        eps = torch.finfo(dtype).eps
        tolerance: dict[str, float] = {"rtol": 4 * eps, "atol": 4 * eps}
    else:
        tolerance = {}
    torch.testing.assert_close(result.cpu(), expected.to(result.dtype), **tolerance)


@pytest.mark.parametrize("options", ["affine", "plain", "no_running", "channels_last"])
@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_split_batch_is_normalized_as_one(
    device: str, dtype: torch.dtype, split: list[int], options: str
) -> None:
    for shape in [(4, 3)] if options == "channels_last" else SHAPES:
        channels = 5
        x = (torch.randn(sum(split), channels, *shape) * 2 + 1).to(dtype)
        if options == "channels_last":
            x = x.to(memory_format=torch.channels_last)
        grad = torch.randn_like(x)
        kept = accumulated(dtype)
        weight = bias = None
        if options != "plain":
            weight, bias = torch.randn(2, channels, dtype=kept)
        running = None
        if options != "no_running":
            running = torch.randn(channels, dtype=kept), torch.rand(channels).to(kept)

        # The CPU's numbers, in float64.
        leaves = [
            None if each is None else each.double().requires_grad_()
            for each in (x, weight, bias)
        ]
        wanted = (
            [each.double().clone() for each in running] if running else [None, None]
        )
        expected = F.batch_norm(leaves[0], *wanted, *leaves[1:], True, MOMENTUM, EPS)
        expected.backward(grad.double())

        def moved(each: Tensor | None) -> Tensor | None:
            return None if each is None else each.to(device)

        ours = None if running is None else tuple(each.to(device) for each in running)
        parts = list(x.to(device).split(split))
        ranks = Ranks(parts, moved(weight), moved(bias), ours)
        grads, grad_weight, grad_bias = ranks.backward(
            list(grad.to(device).split(split))
        )
        assert ranks.mean.dtype == ranks.invstd.dtype == kept
        for part, output, gradient in zip(parts, ranks.outputs, grads, strict=True):
            assert output.dtype == gradient.dtype == dtype
            assert output.stride() == part.stride()
        assert_near(torch.cat(ranks.outputs), expected, dtype)
        assert_near(torch.cat(grads), leaves[0].grad, dtype)
        if weight is not None:
            assert_near(grad_weight, leaves[1].grad, torch.float32)
            assert_near(grad_bias, leaves[2].grad, torch.float32)
        if ours:
            assert_near(ours[0], wanted[0], torch.float32)
            assert_near(ours[1], wanted[1], torch.float32)


def test_equal_counts_may_be_one_number(device: str) -> None:
    x = torch.randn(6, 3, 4, device=device)
    stats = [torch.batch_norm_stats(part, EPS) for part in x.split(2)]
    mean, invstd = (torch.stack(every) for every in zip(*stats, strict=True))
    every = []
    for gather, count in (
        (torch.batch_norm_gather_stats, 8),
        (
            torch.batch_norm_gather_stats_with_counts,
            torch.full((3,), 8.0, device=device),
        ),
    ):
        running = torch.zeros(3, device=device), torch.ones(3, device=device)
        joined = gather(x, mean, invstd, *running, MOMENTUM, EPS, count)
        every.append([*joined, *running])
    assert all(torch.equal(*pair) for pair in zip(*every, strict=True))


def test_numbers_far_from_zero_keep_their_variance(device: str) -> None:
    x = torch.randn(64, 2, 9, dtype=torch.float64) + 1e4
    expected = F.batch_norm(x, None, None, None, None, True, 0.0, EPS)
    ranks = Ranks(list(x.float().to(device).split(16)), None, None, None)
    output = torch.cat(ranks.outputs).double().cpu()
    torch.testing.assert_close(output, expected, rtol=0, atol=5e-3)


def test_parts_of_the_backward_pass_are_made_on_request(device: str) -> None:
    x = torch.randn(4, 3, device=device)
    mean, invstd = torch.batch_norm_stats(x, EPS)
    weight = torch.ones(3, device=device)

    def made(*wanted: bool) -> list[bool]:
        parts = torch.batch_norm_backward_reduce(x, x, mean, invstd, weight, *wanted)
        return [part is not None for part in parts]

    assert made(True, False, False) == [True, True, False, False]
    assert made(False, True, False) == [False, False, True, False]
    assert made(False, False, True) == [False, False, False, True]


def test_constant_channel_has_no_scale_without_epsilon(device: str) -> None:
    mean, invstd = torch.batch_norm_stats(torch.full((4, 2), 3.0, device=device), 0.0)
    assert mean.tolist() == [3.0, 3.0]
    assert invstd.tolist() == [0.0, 0.0]


def test_out_of_elemt_is_resized_and_returned(device: str) -> None:
    x = torch.randn(4, 3, 5, device=device)
    stats = torch.batch_norm_stats(x, EPS)
    out = torch.empty(0, device=device)
    result = torch.batch_norm_elemt(x, None, None, *stats, EPS, out=out)
    assert result is out
    assert torch.equal(out, torch.batch_norm_elemt(x, None, None, *stats, EPS))


def test_update_stats_has_the_numbers_of_the_cpu(device: str) -> None:
    x, running = torch.randn(6, 3, 4), (torch.zeros(3), torch.ones(3))
    ours = tuple(each.to(device) for each in running)
    result = torch.batch_norm_update_stats(x.to(device), *ours, MOMENTUM)
    expected = torch.batch_norm_update_stats(x, *running, MOMENTUM)
    for one, other in zip((*result, *ours), (*expected, *running), strict=True):
        assert torch.equal(one.cpu(), other)


def call(device: str, name: str, **changed: Any) -> None:
    """Calls an operator with some wrong arguments."""
    ones = torch.ones(3, device=device)
    x = torch.ones(4, 3, device=device)
    arguments: dict[str, Any] = {
        "batch_norm_gather_stats_with_counts": {
            "input": x,
            "mean": ones[None],
            "invstd": ones[None],
            "running_mean": None,
            "running_var": None,
            "momentum": MOMENTUM,
            "eps": EPS,
            "counts": torch.ones(1, device=device),
        },
        "batch_norm_elemt": {
            "input": x,
            "weight": None,
            "bias": None,
            "mean": ones,
            "invstd": ones,
            "eps": EPS,
        },
        "batch_norm_backward_elemt": {
            "grad_out": x,
            "input": x,
            "mean": ones,
            "invstd": ones,
            "weight": None,
            "sum_dy": ones,
            "sum_dy_xmu": ones,
            "count": torch.ones(1, dtype=torch.int32, device=device),
        },
    }[name]
    getattr(torch.ops.aten, name)(**(arguments | changed))


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("batch_norm_gather_stats_with_counts", "counts", "counts to have type Float"),
        ("batch_norm_gather_stats_with_counts", "mean", "mean to have type Float"),
        ("batch_norm_elemt", "mean", "mean to have type Float but got Double"),
        ("batch_norm_elemt", "weight", "weight to have type Float but got Double"),
        ("batch_norm_backward_elemt", "count", "count to have type Int but got Double"),
        ("batch_norm_backward_elemt", "mean", "the same data types"),
        ("batch_norm_backward_elemt", "grad_out", "grad_output to have type Float"),
    ],
)
def test_wrong_type_is_an_error_that_names_it(
    device: str, name: str, argument: str, message: str
) -> None:
    call(device, name)
    wrong = torch.ones(3, dtype=torch.float64, device=device)
    if argument == "grad_out":
        wrong = wrong.expand(4, 3)
    with pytest.raises(RuntimeError, match=message):
        call(device, name, **{argument: wrong})
