# SPDX-License-Identifier: BSD-3-Clause
"""The cost models: closed forms for large works, and what must never be faster."""

from __future__ import annotations

import itertools

import pytest

from openreg_predict import device_names, load_device, predict
from openreg_predict._costs.cost import predict_all
from openreg_predict._works.table import (
    RowError,
    attention,
    collective,
    convolution,
    experts_with_tokens,
    gemm,
    work_of_row,
)
from openreg_predict._works.work import CLASSES, Work


def moved(size, kind="pointwise"):
    return Work("add", kind, "f32", size / 12, size * 2 / 3, size / 3, {"m": size / 12})


@pytest.mark.parametrize("name", device_names())
def test_large_works_take_little_more_than_the_roofline(name):
    device = load_device(name)
    size = 4e9
    copy = predict(moved(size), device).value
    assert 0.9 < copy * device["memory_bandwidth"] / size < 2
    product = gemm(1, 8192, 8192, 8192, "f32")
    peak = device.get("matrix_f32", "vector_f32")
    assert 1 <= predict(product, device).value * peak / product.flops < 3


@pytest.mark.parametrize("name", ["a100-sxm-80", "t4", "mi210", "made-up-chip"])
def test_more_bytes_are_never_faster(name):
    works = [moved(1000 * 2.0**i) for i in range(20)]
    times = [each.value for each in predict_all(works, load_device(name))]
    assert all(a <= 1.001 * b for a, b in itertools.pairwise(times))


def _times(works, name):
    return [each.value for each in predict_all(works, load_device(name))]


@pytest.mark.parametrize("name", ["t4", "v100-pcie", "rtx4090", "made-up-chip"])
def test_products_of_double_depth_take_longer(name):
    works = [gemm(1, 1024, 1024, 2**i, "f16") for i in range(6, 15)]
    times = _times(works, name)
    assert times == sorted(times)


@pytest.mark.parametrize("name", ["h100-sxm", "a100-sxm-80"])
def test_attention_over_more_keys_takes_longer(name):
    works = [attention(8, 2**i, 2**i, 16, 16, 128, "bf16") for i in range(8, 14)]
    times = _times(works, name)
    assert times == sorted(times)


def test_a_causal_mask_saves_time_in_long_sequences():
    full = attention(4, 16384, 16384, 16, 16, 128, "bf16")
    half = attention(4, 16384, 16384, 16, 16, 128, "bf16", causal=True)
    device = load_device("h100-sxm")
    assert predict(half, device).value < 0.8 * predict(full, device).value


def test_a_batch_of_convolutions_takes_longer_than_one():
    works = [
        convolution(n, 64, 56, 56, 64, 3, 3, 56, 56, "f16") for n in (1, 8, 64, 512)
    ]
    times = _times(works, "t4")
    assert times == sorted(times)


def test_depthwise_convolutions_are_bound_by_bytes():
    work = convolution(64, 256, 56, 56, 256, 3, 3, 56, 56, "f16", groups=256)
    device = load_device("rtx3090")
    time = predict(work, device).value
    assert 1 < time * device["memory_bandwidth"] / work.bytes < 4


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "alltoall"])
def test_collectives_of_more_bytes_take_longer(name):
    works = [collective(name, 8, 2.0**i, "bf16") for i in range(10, 30, 4)]
    times = _times(works, "h100-sxm")
    assert all(a <= 1.05 * b for a, b in itertools.pairwise(times))


def test_a_collective_across_hosts_is_bound_by_the_network():
    device = load_device("h100-sxm")
    near = predict(collective("all_gather", 8, 1e9, "bf16"), device).value
    far = predict(collective("all_gather", 64, 1e9, "bf16"), device).value
    assert far > 1e9 * 63 / 64 / device["network_bandwidth"] > near


def test_a_skewed_router_leaves_experts_without_tokens():
    assert experts_with_tokens(128, 256, 0.0) > experts_with_tokens(128, 256, 1.2)
    assert experts_with_tokens(8, 10**6, 1.2) == pytest.approx(8)
    assert experts_with_tokens(8, 1, 1.2) == pytest.approx(1)


def test_views_take_no_time_and_unknown_operators_do():
    device = load_device("t4")
    assert predict(Work("view", "view", "f32"), device).value == 0
    unknown = predict(Work("mine", "unknown", "f32", 0, 1e9, 1e9), device)
    assert unknown.value > 2e9 / device["memory_bandwidth"]
    assert unknown.width > predict(moved(2e9), device).width


@pytest.mark.parametrize("kind", sorted(set(CLASSES) - {"view"}))
def test_each_class_has_a_positive_time_within_its_bounds(kind):
    facts = {"devices": 8, "sent": 1e6, "active": 4, "e": 8, "t": 64, "h": 64, "i": 64}
    work = Work("any", kind, "f16", 1e9, 1e8, 1e8, facts)
    time = predict(work, load_device("a100-sxm-80"))
    assert 0 < time.low <= time.value <= time.high
    assert time.width > 1.05


def test_a_device_with_few_fields_has_wider_bounds(tmp_path):
    whole = load_device("a40")
    path = tmp_path / "chip.yaml"
    text = whole.path.read_text().splitlines()
    path.write_text(
        "\n".join(
            line for line in text if "l2_capacity" not in line and "units" not in line
        )
    )
    work = gemm(1, 4096, 4096, 4096, "f16")
    assert predict(work, load_device(path)).width > predict(work, whole).width


def test_measured_fields_do_not_change_predictions_from_the_sheet():
    work = gemm(1, 4096, 4096, 4096, "bf16")
    device = load_device("h100-sxm")
    assert predict(work, device, sheet_only=True) == predict(work, device.sheet)


def test_the_same_prediction_has_the_same_bits():
    works = [gemm(1, m, 512, 512, "f16") for m in (1, 77, 4096)]
    device = load_device("t4")
    assert predict_all(works, device) == predict_all(works, device)
    assert predict_all(works, device)[1] == predict(works[1], device)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("gem", "m=1;n=1;k=1", "f16"), "op_or_model 'gem' is not one of gemm"),
        (("gemm", "m=1;n=1", "f16"), "has no 'k'"),
        (("gemm", "m=1;n=1;k=x", "f16"), "whole numbers"),
        (("gemm", "m=1;n=1;k=1", "half"), "dtype 'half' is not one of"),
    ],
)
def test_a_row_that_cannot_be_read_names_its_column(row, words):
    with pytest.raises(RowError, match=words):
        work_of_row(*row)
