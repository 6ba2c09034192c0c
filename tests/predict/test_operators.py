# SPDX-License-Identifier: BSD-3-Clause
"""The work of operators: classes, operations as PyTorch counts them, and bytes."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils.flop_counter import (
    addmm_flop,
    bmm_flop,
    conv_backward_flop,
    conv_flop,
    mm_flop,
    sdpa_backward_flop,
    sdpa_flop,
)

from openreg_predict import load_device
from openreg_predict._costs.cost import predict_all
from openreg_predict._works.operator_classes import NOTHING, kind_of
from openreg_predict._works.operators import _RULES, work_of
from openreg_predict._works.work import Call, TensorFacts, contiguous


def swept():
    """Returns the names of the operators of PyTorch's database that are kernels."""
    from torch.testing._internal.common_methods_invocations import op_db

    names = {op.aten_name for op in op_db}
    known = {
        each.removeprefix("aten::").partition(".")[0]
        for each in torch._C._dispatch_get_all_op_names()
        if each.startswith("aten::")
    }
    for name in sorted(names & known):
        packet = getattr(torch.ops.aten, name)
        yield name, getattr(packet, packet.overloads()[0])


@pytest.mark.timeout(180)  # the import of the database
@pytest.mark.filterwarnings("ignore:Fail to import hypothesis:ImportWarning")
def test_every_operator_of_the_database_has_a_class():
    unknown = []
    for name, operator in swept():
        if operator.is_view or name in NOTHING or name in _RULES:
            continue
        if kind_of(name, [tag.name for tag in operator.tags]) == "unknown":
            unknown.append(name)
    assert unknown == []


def call(name, results, **arguments):
    return Call(name, arguments, [contiguous(*r) for r in results])


def test_products_have_the_operations_that_torch_counts():
    a, b = contiguous((64, 32), "f16"), contiguous((32, 48), "f16")
    work = work_of(call("mm", [((64, 48), "f16")], self=a, mat2=b))
    assert (work.kind, work.flops) == ("gemm", mm_flop(a.shape, b.shape))
    assert (work.read, work.written) == (2 * (64 * 32 + 32 * 48), 2 * 64 * 48)
    assert [work.facts[x] for x in "bmnk"] == [1, 64, 48, 32]
    bias = contiguous((48,), "f16")
    work = work_of(call("addmm", [((64, 48), "f16")], self=bias, mat1=a, mat2=b))
    assert work.flops == addmm_flop(bias.shape, a.shape, b.shape)
    a, b = contiguous((6, 64, 32), "f32"), contiguous((6, 32, 48), "f32")
    work = work_of(call("bmm", [((6, 64, 48), "f32")], self=a, mat2=b))
    assert work.flops == bmm_flop(a.shape, b.shape)


def test_an_expanded_operand_is_read_once():
    row = TensorFacts((1024, 512), (0, 1), "f32")
    full = contiguous((1024, 512), "f32")
    work = work_of(call("add", [((1024, 512), "f32")], self=full, other=row))
    assert work.read == 4 * (1024 * 512 + 512)


@pytest.mark.parametrize(
    "name",
    ["_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention"],
)
def test_attention_has_the_operations_that_torch_counts(name):
    q, k = contiguous((2, 8, 128, 64), "f16"), contiguous((2, 8, 256, 64), "f16")
    work = work_of(call(name, [((2, 8, 128, 64), "f16")], query=q, key=k, value=k))
    assert (work.kind, work.flops) == (
        "attention", sdpa_flop(q.shape, k.shape, k.shape)
    )  # fmt: skip
    assert work.read == 2 * (2 * 8 * 128 * 64 + 2 * 2 * 8 * 256 * 64)


def test_the_backward_of_attention_has_five_products():
    q, k = contiguous((2, 8, 128, 64), "f16"), contiguous((2, 8, 256, 64), "f16")
    name = "_scaled_dot_product_flash_attention_for_cpu_backward"
    work = work_of(
        call(name, [(x.shape, "f16") for x in (q, k, k)], grad_out=q, query=q, key=k,
             value=k)
    )  # fmt: skip
    assert work.flops == sdpa_backward_flop(q.shape, q.shape, k.shape, k.shape)
    assert work.facts["pass"] == "backward"


def convolution(groups=1, transposed=False):
    image, weight = contiguous((4, 16, 32, 32), "f16"), None
    if transposed:
        weight, out = contiguous((16, 8, 2, 2), "f16"), (4, 8, 64, 64)
    else:
        weight, out = contiguous((32, 16 // groups, 3, 3), "f16"), (4, 32, 16, 16)
    given = {
        "input": image, "weight": weight, "bias": None, "stride": [2, 2],
        "padding": [0 if transposed else 1] * 2, "dilation": [1, 1],
        "transposed": transposed, "output_padding": [0, 0], "groups": groups,
    }  # fmt: skip
    return given, out


def test_convolutions_have_the_operations_that_torch_counts():
    given, out = convolution()
    work = work_of(call("convolution", [(out, "f16")], **given))
    shapes = {k: v.shape for k, v in given.items() if isinstance(v, TensorFacts)}
    args = (shapes["input"], shapes["weight"], None, [2, 2], [1, 1], [1, 1], False)
    assert (work.kind, work.flops) == ("convolution", conv_flop(*args, out_val=out))
    grouped, _ = convolution(groups=4)
    assert (
        work_of(call("convolution", [(out, "f16")], **grouped)).flops == work.flops / 4
    )


def test_a_transposed_convolution_is_the_gradient_of_its_input():
    given, out = convolution(transposed=True)
    work = work_of(call("convolution", [(out, "f16")], **given))
    assert work.flops == 2 * math.prod((4, 16, 32, 32)) * 8 * 2 * 2
    assert work.facts["pass"] == "input"


def test_the_backward_of_a_convolution_costs_two_kernels():
    given, out = convolution()
    del given["bias"]
    gradient = contiguous(out, "f16")
    results = [((4, 16, 32, 32), "f16"), ((32, 16, 3, 3), "f16"), ((32,), "f16")]
    both, one = (
        work_of(call("convolution_backward", results, grad_output=gradient, **given,
                     output_mask=mask))
        for mask in ([True, True, True], [False, True, True])
    )  # fmt: skip
    args = (out, (4, 16, 32, 32), (32, 16, 3, 3), None, [2, 2], [1, 1], [1, 1], False,
            [0, 0], 1, [True, True, False])  # fmt: skip
    shapes = [r[0] for r in results]
    assert both.flops == conv_backward_flop(*args, out_val=shapes) == 2 * one.flops
    two, single = (t.value for t in predict_all([both, one], load_device("t4")))
    assert two > 1.5 * single


def test_an_embedding_reads_the_rows_that_it_returns():
    table, rows = contiguous((50000, 512), "f32"), contiguous((8, 16), "i64")
    work = work_of(
        call("embedding", [((8, 16, 512), "f32")], weight=table, indices=rows)
    )
    assert work.kind == "gather"
    assert work.read == 8 * 16 * 512 * 4 + 8 * 16 * 8


def test_an_operator_in_place_reads_and_writes_its_argument():
    x = contiguous((1000,), "f32")
    assert work_of(call("add_", [((1000,), "f32")], self=x, other=1)).bytes == 8000
    assert work_of(call("zero_", [((1000,), "f32")], self=x)).bytes == 4000
    assert work_of(call("copy_", [((1000,), "f32")], self=x, src=x)).bytes == 8000


def test_a_fused_optimizer_reads_and_writes_its_states():
    lists = {n: [contiguous((100,), "f32")] * 3
             for n in ("self", "grads", "exp_avgs", "exp_avg_sqs")}  # fmt: skip
    work = work_of(Call("_fused_adamw_", lists, []))
    assert work.kind == "optimizer"
    assert (work.read, work.written) == (4 * 3 * 400, 3 * 3 * 400)


def test_views_and_allocations_do_nothing():
    x = contiguous((10, 10), "f32")
    view = Call("t", {"self": x}, [x], is_view=True)
    assert work_of(view).kind == work_of(call("empty", [((9,), "f32")])).kind == "view"


def test_rows_of_a_norm_are_its_last_dimensions():
    x = contiguous((8, 16, 768), "f16")
    work = work_of(call("native_layer_norm", [((8, 16, 768), "f16")], input=x,
                        normalized_shape=[768]))  # fmt: skip
    assert (work.kind, work.facts["n"], work.facts["m"]) == ("norm", 768, 128)
    work = work_of(call("_softmax", [((8, 16, 768), "f16")], self=x, dim=-1))
    assert (work.kind, work.facts["n"]) == ("norm", 768)


def test_an_unknown_operator_moves_its_bytes():
    x = contiguous((1000,), "f32")
    work = work_of(Call("mine", {"self": x}, [x], namespace="ours"))
    assert (work.kind, work.bytes) == ("unknown", 8000)


def test_convolutions_of_a_model_cost_more_if_channels_are_not_last():
    given, out = convolution()
    last = TensorFacts((4, 16, 32, 32), (16384, 1, 512, 16), "f16")
    works = [work_of(call("convolution", [(out, "f16")], **(given | {"input": x})))
             for x in (given["input"], last)]  # fmt: skip
    first, second = (
        t.value for t in predict_all(works, load_device("rtx3090"), in_model=True)
    )
    assert first > second
