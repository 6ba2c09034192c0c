# SPDX-License-Identifier: BSD-3-Clause
"""FlexAttention on the device has the results of the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    create_block_mask,
    flex_attention,
)

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
]
SHAPE = (2, 4, 128, 32)


def tensors(device: str, dtype: torch.dtype = torch.float) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(SHAPE).to(device, dtype) for _ in range(3)]


def causal(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
    return q >= kv


def biased(score: Tensor, b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
    return score * 0.5 + (q - kv) * 0.1


def attended(device: str, *, compiled: bool, masked: bool, dtype: torch.dtype):
    mask = create_block_mask(causal, 2, 4, 128, 128, device=device) if masked else None

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=biased, block_mask=mask)

    torch.compiler.reset()
    run = torch.compile(run, fullgraph=True) if compiled else run
    return run(*tensors(device, dtype)).cpu()


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16], ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_attention_has_the_bits_of_the_cpu(compiled, masked, dtype):
    with torch.openreg.operator_paths() as paths:
        ours = attended("openreg", compiled=compiled, masked=masked, dtype=dtype)
    assert ours.equal(attended("cpu", compiled=compiled, masked=masked, dtype=dtype))
    kernels = any(name.startswith("compiled::") for name, _ in paths.calls)
    assert kernels or not compiled


def on_cpu(
    q: Tensor, k: Tensor, v: Tensor, score=None, mask=None
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes FlexAttention on CPU tensors, one score at a time."""
    groups = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    wide = torch.promote_types(q.dtype, torch.float)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / q.size(-1) ** 0.5
    index = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
    if score is not None:
        scores = score(scores, *index)
    if mask is not None:
        scores = scores.masked_fill(~mask(*index), -torch.inf)
    weights = scores.softmax(-1).nan_to_num(0)
    return weights.to(v.dtype) @ v, scores.logsumexp(-1), scores.amax(-1)


def gradients(out: Tensor, inputs: list[Tensor], seed: int = 1) -> list[Tensor]:
    torch.manual_seed(seed)
    return list(torch.autograd.grad(out, inputs, torch.randn(out.shape).to(out)))


def close(ours: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(
            one.detach().cpu(), other.detach(), rtol=1e-4, atol=1e-5
        )


def compiles(compiled: bool, **options):
    torch.compiler.reset()
    return (
        torch.compile(flex_attention, fullgraph=True, **options)
        if compiled
        else flex_attention
    )


def each(count: int, device: str, *shape: int) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(shape).to(device).requires_grad_() for _ in range(count)]


both = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


@both
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_gradients_are_those_of_the_formula(compiled, masked, dynamic):
    run = compiles(compiled, dynamic=dynamic)
    for length in (64, 100) if dynamic else (64,):
        mask = None
        if masked:
            mask = create_block_mask(causal, 2, 4, length, length, device="openreg")
        ours = each(3, "openreg", 2, 4, length, 16)
        out = run(*ours, score_mod=biased, block_mask=mask)
        inputs = each(3, "cpu", 2, 4, length, 16)
        expected = on_cpu(*inputs, biased, causal if masked else None)[0]
        close([out], [expected])
        close(gradients(out, ours), gradients(expected, inputs))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_gradients_of_low_precision_are_those_of_eager_mode(dtype):
    found = []
    for compiled in (False, True):
        inputs = [each.requires_grad_() for each in tensors("openreg", dtype)]
        out = compiles(compiled)(*inputs, score_mod=biased)
        found.append([each.cpu() for each in (out.detach(), *gradients(out, inputs))])
    for eager, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


@both
def test_captured_tensors_have_gradients(compiled):
    def losses(device: str, attention) -> list[Tensor]:
        q, k, v = each(3, device, 2, 4, 48, 16)
        bias, scale = each(1, device, 48, 48)[0], each(1, device, 4)[0]

        def score(score, b, h, q, kv):
            return score * scale[h] + bias[q, kv]

        out = attention(q, k, v, score_mod=score)
        return [out, *gradients(out, [q, k, v, bias, scale])]

    run = compiles(compiled)
    ours = losses("openreg", run)
    expected = losses("cpu", lambda q, k, v, score_mod: on_cpu(q, k, v, score_mod)[0])
    close(ours, expected)


@both
@pytest.mark.parametrize("dtype", [torch.float, torch.double], ids=str)
def test_captured_tensors_may_need_no_gradient(compiled, dtype):
    def losses(device: str, attention) -> list[Tensor]:
        q, k, v, bias = each(4, device, 2, 4, 48, 48)
        q, k, v, bias = (x.detach().to(dtype).requires_grad_() for x in (q, k, v, bias))
        slopes = torch.linspace(0.1, 0.4, 4).to(device, dtype)
        lengths = torch.tensor([48, 20]).to(device)

        def score(score, b, h, q, kv):
            known = torch.where(kv < lengths[b], score, -30.0)
            return known - slopes[h] * (q - kv).abs().to(dtype) + bias[b, h, q, kv]

        out = attention(q, k, v, score_mod=score)
        return [out, *gradients(out, [q, k, v, bias])]

    run = compiles(compiled)
    ours = losses("openreg", run)
    expected = losses("cpu", lambda q, k, v, score_mod: on_cpu(q, k, v, score_mod)[0])
    close(ours, expected)


@both
def test_heads_share_keys_and_values(compiled):
    def of(device: str) -> list[Tensor]:
        return [*each(1, device, 2, 4, 40, 16), *each(2, device, 2, 2, 40, 16)]

    ours, inputs = of("openreg"), of("cpu")
    out = compiles(compiled)(*ours, enable_gqa=True)
    expected = on_cpu(*inputs)[0]
    close([out, *gradients(out, ours)], [expected, *gradients(expected, inputs)])


@both
@pytest.mark.parametrize("grad", [False, True])
def test_sums_and_largest_scores_are_returned(compiled, grad):
    with torch.set_grad_enabled(grad):
        out, more = compiles(compiled)(
            *tensors("openreg"),
            score_mod=biased,
            return_aux=AuxRequest(lse=True, max_scores=True),
        )
    close([out, more.lse, more.max_scores], list(on_cpu(*tensors("cpu"), biased)))


@both
def test_gradients_of_the_sums_are_those_of_the_formula(compiled):
    ours, inputs = each(3, "openreg", *SHAPE), each(3, "cpu", *SHAPE)
    _, more = compiles(compiled)(*ours, return_aux=AuxRequest(lse=True))
    close(gradients(more.lse, ours[:2]), gradients(on_cpu(*inputs)[1], inputs[:2]))


@both
def test_a_row_that_attends_to_nothing_is_zero(compiled):
    def late(b, h, q, kv):
        return (q >= kv) & (q > 9)

    mask = create_block_mask(late, 2, 4, 64, 64, device="openreg")
    ours, inputs = (each(3, device, 2, 4, 64, 16) for device in ("openreg", "cpu"))
    out = compiles(compiled)(*ours, block_mask=mask)
    assert not out[:, :, :10].any()
    expected = on_cpu(*inputs, mask=late)[0]
    close([out], [expected])
    assert not any(grad.isnan().any() for grad in gradients(out, ours))


def test_a_compiled_step_waits_for_nothing(latch):
    ours = each(3, "openreg", 2, 4, 64, 16)
    run = compiles(True)
    for _ in range(2):
        gradients(run(*ours, score_mod=biased), ours)
    torch.accelerator.synchronize()
    seed = torch.randn(2, 4, 64, 16).to("openreg")
    held = latch()
    with torch.openreg.operator_paths() as paths:
        found = torch.autograd.grad(run(*ours, score_mod=biased), ours, seed)
    assert held.holds
    held.release()
    assert {path for _, path in paths.calls} == {"enqueued"}
    inputs = each(3, "cpu", 2, 4, 64, 16)
    expected = torch.autograd.grad(on_cpu(*inputs, biased)[0], inputs, seed.cpu())
    close(list(found), list(expected))


def test_inference_of_tensors_with_gradients_takes_the_template():
    run = compiles(True)
    with torch.no_grad():
        ours = run(*each(3, "openreg", *SHAPE), score_mod=biased)
        torch.compiler.reset()
        assert ours.cpu().equal(run(*tensors("cpu"), score_mod=biased))


@both
def test_a_division_by_zero_in_a_function_raises(compiled):
    zero = torch.zeros((), dtype=torch.long, device="openreg")

    def score(score, b, h, q, kv):
        return score + torch.div(kv, zero, rounding_mode="trunc")

    def run() -> None:
        compiles(compiled)(*tensors("openreg"), score_mod=score)
        torch.accelerator.synchronize()

    with torch.no_grad(), pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run()
    assert torch.ones(2, device="openreg").sum() == 2


@both
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_captured_tensors_may_be_computed_in_the_same_graph(compiled, grad):
    def run(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        near, far = bias.sin(), (2 * bias).mT

        def score(score, b, h, q, kv):
            return score + near[h, q, kv] * far[h, q, kv]

        return flex_attention(q, k, v, score_mod=score)

    torch.compiler.reset()
    ours = [*each(3, "openreg", 2, 4, 64, 16), *each(1, "openreg", 4, 64, 64)]
    q, k, v, bias = [*each(3, "cpu", 2, 4, 64, 16), *each(1, "cpu", 4, 64, 64)]
    with torch.set_grad_enabled(grad):
        out = (torch.compile(run, fullgraph=True) if compiled else run)(*ours)
    table = bias.sin() * (2 * bias).mT
    expected = on_cpu(q, k, v, lambda s, b, h, q, kv: s + table[h, q, kv])[0]
    close([out], [expected])
    if grad:
        close(gradients(out, ours), gradients(expected, [q, k, v, bias]))


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_a_captured_number_may_be_computed_in_the_same_graph(shape):
    def run(q: Tensor, k: Tensor, v: Tensor, number: Tensor) -> Tensor:
        factor = number.sigmoid()

        def score(score, b, h, q, kv):
            return score * (factor[h * 0] if shape else factor)

        return flex_attention(q, k, v, score_mod=score)

    torch.compiler.reset()
    number = torch.full(shape, 0.5)
    with torch.no_grad():
        compiled = torch.compile(run, fullgraph=True)
        out = compiled(*tensors("openreg"), number.to("openreg"))
    factor = number.sigmoid()
    expected = on_cpu(*tensors("cpu"), lambda s, b, h, q, kv: s * factor)[0]
    close([out], [expected])


@both
@pytest.mark.parametrize("grad", [False, True])
def test_a_captured_tensor_of_another_device_is_refused(compiled, grad):
    slopes = torch.ones(4)

    def score(score, b, h, q, kv):
        return score * slopes[h]

    words = "Expected all tensors to be on the same device"
    with torch.set_grad_enabled(grad), pytest.raises(RuntimeError, match=words):
        compiles(compiled)(*tensors("openreg"), score_mod=score)


@both
def test_a_captured_number_of_the_host_is_taken(compiled):
    slope = torch.tensor(0.25)

    def score(score, b, h, q, kv):
        return score * slope

    out = compiles(compiled)(*tensors("openreg"), score_mod=score)
    close([out], [on_cpu(*tensors("cpu"), score)[0]])


def test_gradients_in_double_precision_have_its_digits():
    found = []
    for compiled in (False, True):
        inputs = [x.requires_grad_() for x in tensors("openreg", torch.double)]
        out = compiles(compiled)(*inputs, score_mod=biased)
        found.append([x.cpu() for x in gradients(out.sin(), inputs)])
    for eager, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-10, atol=1e-12)


def test_inference_in_double_precision_is_that_of_the_formula():
    ours, expected = (tensors(device, torch.double) for device in ("openreg", "cpu"))
    with torch.no_grad():
        out = compiles(True)(*ours, score_mod=biased)
    assert out.dtype == torch.double
    torch.testing.assert_close(out.cpu(), on_cpu(*expected, biased)[0])


@pytest.mark.parametrize("grad", [False, True])
def test_following_operators_are_compiled_with_it(grad):
    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q + flex_attention(q.sin(), k, v, score_mod=biased).cos()

    torch.compiler.reset()
    ours, inputs = each(3, "openreg", *SHAPE), each(3, "cpu", *SHAPE)
    with torch.set_grad_enabled(grad):
        out = torch.compile(run, fullgraph=True)(*ours)
        q, k, v = inputs
        expected = q + on_cpu(q.sin(), k, v, biased)[0].cos()
    close([out], [expected])
    if grad:
        close(gradients(out, ours), gradients(expected, inputs))


def test_a_captured_tensor_that_no_score_follows_has_zeros_for_a_gradient():
    bias = torch.randn(128, 128).to("openreg").requires_grad_()

    def score(score, b, h, q, kv):
        return torch.where(bias[q, kv] > 0, score, score - 1)

    inputs = [*each(3, "openreg", *SHAPE), bias]
    out = compiles(True)(*inputs[:3], score_mod=score)
    torch.manual_seed(1)
    gradient = torch.randn(out.shape).to(out)
    # Since torch 2.15, the tensor is not a part of the graph.
    found = torch.autograd.grad(out, inputs, gradient, materialize_grads=True)
    assert not found[-1].any()
    q, k, v = each(3, "cpu", *SHAPE)
    bias = bias.detach().cpu()
    expected = on_cpu(q, k, v, score)[0]
    close(list(found[:3]), gradients(expected, [q, k, v]))


@pytest.mark.parametrize("full", [False, True], ids=["partial", "full"])
def test_gradients_are_those_of_the_blocks_in_the_mask(full):
    counts = torch.tensor([1, 2, 1, 3]).view(1, 1, 4)
    listed = [[1, 0, 0, 0], [0, 3, 0, 0], [2, 0, 0, 0], [0, 1, 3, 0]]
    indices = torch.tensor(listed).view(1, 1, 4, 4)
    blocks = torch.zeros(4, 4, dtype=torch.bool)
    for row, (count, places) in enumerate(zip(counts.flatten(), listed, strict=True)):
        blocks[row, places[:count]] = True
    slopes = torch.randn(64)

    def run(device: str, attention) -> list[Tensor]:
        q, k, v, bias = [*each(3, device, 2, 4, 64, 16), *each(1, device, 16)]

        known = slopes.to(device)

        def score(score, b, h, q, kv):
            return score + bias[kv % 16] * known[(q - kv).abs()]

        out = attention(q, k, v, score)
        return [out, *gradients(out, [q, k, v, bias])]

    def ours(q, k, v, score):
        place = (each.int().to("openreg") for each in (counts, indices))
        none = (
            torch.zeros_like(each).int().to("openreg") for each in (counts, indices)
        )
        mask = BlockMask.from_kv_blocks(
            *((*none, *place) if full else place),
            BLOCK_SIZE=16,
            mask_mod=None if full else causal,
        )
        return compiles(True)(q, k, v, score_mod=score, block_mask=mask)

    def visible(b, h, q, kv):
        seen = blocks[q // 16, kv // 16]
        return seen if full else seen & (q >= kv)

    def expected(q, k, v, score):
        return on_cpu(q, k, v, score, visible)[0]

    close(run("openreg", ours), run("cpu", expected))


def test_index_out_of_bounds_outside_all_blocks_does_not_raise():
    bias = torch.randn(32).to("openreg").requires_grad_()

    def score(score, b, h, q, kv):
        return score + bias[q]

    def rows(b, h, q, kv):
        return q < 32

    mask = create_block_mask(rows, None, None, 64, 64, device="openreg", BLOCK_SIZE=32)
    inputs = [*each(3, "openreg", 2, 4, 64, 16), bias]
    out = compiles(True)(*inputs[:3], score_mod=score, block_mask=mask)
    found = gradients(out, inputs)
    q, k, v = each(3, "cpu", 2, 4, 64, 16)
    table = bias.detach().cpu().requires_grad_()

    def on_host(score, b, h, q, kv):
        return score + table[q % 32]

    expected = on_cpu(q, k, v, on_host, rows)[0]
    close([out, *found], [expected, *gradients(expected, [q, k, v, table])])


@pytest.mark.parametrize(
    "score",
    [
        lambda s, kv, t, n: s + t[31 - kv % 31].sqrt(),
        lambda s, kv, t, n: s + t[kv % 32] * (32.0 - kv).sqrt(),
        lambda s, kv, t, n: s + torch.div(kv, n[0] - kv, rounding_mode="trunc") * t[1],
        lambda s, kv, t, n: s + (7 % (kv - n[0])) * t[1],
        lambda s, kv, t, n: (
            t[kv % 32] - torch.gather(n, 0, kv.reshape(-1)).reshape(kv.shape) * s * 0.01
        ),
    ],
    ids=["read", "scattered", "divided", "remainder", "gathered"],
)
def test_no_place_without_a_block_adds_to_a_gradient(score):
    def columns(b, h, q, kv):
        return kv < 32

    mask = create_block_mask(
        columns, None, None, 64, 64, device="openreg", BLOCK_SIZE=32
    )
    table, count = torch.linspace(0.1, 1, 32), torch.full((32,), 32)

    def run(device: str, attention) -> list[Tensor]:
        t, n = table.to(device).requires_grad_(), count.to(device)
        inputs = each(3, device, 1, 2, 64, 16)
        out = attention(*inputs, lambda s, b, h, q, kv: score(s, kv, t, n))
        return [out, *gradients(out, [*inputs, t])]

    def ours(q, k, v, modify):
        return compiles(True)(q, k, v, score_mod=modify, block_mask=mask)

    def expected(q, k, v, modify):  # the attending columns
        q, k, v = q, k[:, :, :32], v[:, :, :32]
        scores = q @ k.mT / 4
        index = torch.meshgrid(*map(torch.arange, scores.shape), indexing="ij")
        return modify(scores, *index).softmax(-1) @ v

    close(run("openreg", ours), run("cpu", expected))


def test_another_backend_is_refused():
    run = compiles(True)
    with pytest.raises(RuntimeError, match="BACKEND='FLASH' but flash attention"):
        run(*tensors("openreg"), return_lse=True, kernel_options={"BACKEND": "FLASH"})


class Attending(torch.nn.Module):
    """Attention whose query and bias are parameters."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.query = torch.nn.Parameter(torch.randn(2, 2, 32, 16))
        self.bias = torch.nn.Parameter(torch.randn(32, 32))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def score(score, b, h, q, kv):
            return score + self.bias[q, kv]

        wanted = AuxRequest(lse=True)
        out, more = flex_attention(self.query, x, x, score_mod=score, return_aux=wanted)
        return out, more.lse


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_a_model_is_compiled_ahead_of_time(tmp_path):
    model, x = torch.nn.Sequential(Attending()), torch.randn(2, 2, 32, 16)
    query, bias = (each.detach() for each in model.parameters())
    expected = on_cpu(query, x, x, lambda score, b, h, q, kv: score + bias[q, kv])[:2]
    with torch.no_grad():
        program = torch.export.export(model.to("openreg"), (x.to("openreg"),))
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "model.pt2")
        )
        loaded = torch._inductor.aoti_load_package(path)
        close(list(loaded(x.to("openreg"))), list(expected))


@both
def test_autocast_lowers_the_precision(compiled):
    inputs = each(3, "openreg", *SHAPE)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        out = compiles(compiled)(*inputs)
    assert out.dtype == torch.bfloat16
    expected = on_cpu(*(each.bfloat16() for each in tensors("cpu")))[0]
    torch.testing.assert_close(out.detach().cpu(), expected, rtol=2e-2, atol=2e-2)
    assert [each.dtype for each in gradients(out, inputs)] == [torch.float] * 3
