# SPDX-License-Identifier: BSD-3-Clause
"""First calls: the results predicted by dry runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from support.latches import Latches
from support.programs import Program

SIZES = itertools.count(2003)

FIRST: dict[str, Callable[[Tensor], Any]] = {
    "pointwise": lambda x: x + 2 * x,
    "in place": lambda x: x.sin_(),
    "product": lambda x: x @ x.mT,
    "reduction": lambda x: x.sum(-1),
    "several results": lambda x: x.sort(0),
    "foreach": lambda x: torch._foreach_add([x, x.mT], 1),
    "foreach in place": lambda x: torch._foreach_mul_([x], 4.0),
    "out=": lambda x: torch.cumsum(x, 0, out=torch.empty_like(x)),
    "out= without size": lambda x: torch.cumsum(
        x, 0, out=torch.empty(0, device=x.device)
    ),
    "out= without size, of other strides": lambda x: torch.mul(
        x.mT, x.mT, out=torch.empty(0, device=x.device)
    ),
    "norm in evaluation": lambda x: torch.native_batch_norm(
        x[None].mT, x[0], x[1], x[2], x[3], False, 0.1, 1e-5
    ),
    "out= of a product, without size": lambda x: torch.mm(
        x.mT, x, out=torch.empty(0, device=x.device)
    ),
    "convolution": lambda x: F.conv2d(x[None, None], x[None, None, :2, :2], stride=2),
    "channels last": lambda x: F.conv2d(
        x.view(1, 2, -1, 1).to(memory_format=torch.channels_last),
        x.view(-1)[:2].view(1, 2, 1, 1),
    ),
    "transposed convolution": lambda x: F.conv_transpose1d(x[None], x[:, None, :3]),
    "norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "attention": lambda x: F.scaled_dot_product_attention(
        *(x.view(1, 1, 6, -1) for _ in range(3))
    ),
    "random": lambda x: torch.rand_like(x),
    "masked": lambda x: x.masked_fill(x > 3, float("-inf")),
    "integers": lambda x: x.long() // 3 % x.int().clamp(1),
    "mixed dtypes": lambda x: x * x.to(torch.float16),
    "without elements": lambda x: torch.cat([x[:0], x, x[:, :0].mT[:0, :14]]),
    "transposed": lambda x: F.hardtanh(x.mT),
    "membership": lambda x: torch.isin(x.mT, x),
    "gamma": lambda x: torch._standard_gamma(x.mT),
    "rrelu": lambda x: F.rrelu(x.mT, training=True),
    "factorization": lambda x: torch.geqrf(x),
    "transform": lambda x: torch.fft.rfft(x),
    "in place with itself": lambda x: x.add_(x),
    "random in half": lambda x: x.to(torch.float16).normal_(),
    "indices": lambda x: x.short()[x[0, :5].long()],
    "out= in another dtype": lambda x: torch.add(x, x, out=x.new_empty(0).double()),
    "absolute values": lambda x: x.to(torch.bfloat16).abs(),
    "probabilities": lambda x: torch.multinomial(x, 2),
    "repeats of a known size": lambda x: x.repeat_interleave(
        torch.arange(len(x), device=x.device), 0, output_size=len(x) * (len(x) - 1) // 2
    ),
    "factory": lambda x: torch.tril_indices(len(x), 14, device=x.device),
    "gradients of a norm, but its input's": lambda x: (
        torch.ops.aten.native_batch_norm_backward(
            x, x, x[0], None, None, x[0], x[1], True, 1e-5, [False, True, True]
        )[1:]
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_first_call_is_enqueued(
    name: str, device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    # A different shape for each, so that each call is the first.
    rows = 6 * (3 + list(FIRST).index(name))
    x = torch.arange(1.0, rows * 14 + 1).view(rows, 14) / 7
    on_device = x.to(device)
    torch.manual_seed(1)
    expected = FIRST[name](x) if name != "foreach in place" else x * 4
    torch.manual_seed(1)
    held = latch()
    result = FIRST[name](on_device)
    assert not torch.accelerator.current_stream().query()
    held.release()
    same(result if name != "foreach in place" else on_device, expected)


def test_first_call_allocates_its_result_once(device: str, latch: Latches) -> None:
    x = torch.arange(-4, 4, dtype=torch.int16, device=device)
    held = latch()
    before = torch.accelerator.memory_stats()["allocation.all.allocated"]
    result = torch.heaviside(x, x)
    after = torch.accelerator.memory_stats()["allocation.all.allocated"]
    assert not torch.accelerator.current_stream().query()
    assert after - before == 1
    held.release()
    assert result.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda x: x + x.to(torch.bfloat16), torch.float32),
        (lambda x: x / 2, torch.int32),
        (lambda x: x.exp(), torch.int64),
        (lambda x: x > 2.5, torch.int32),
    ],
)
def test_converted_operands_need_no_memory_beside_the_result(
    call: Callable[[Tensor], Tensor], dtype: torch.dtype, device: str, latch: Latches
) -> None:
    x = torch.ones(1 << 16, dtype=dtype, device=device)
    call(x)
    held = latch()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    result = call(x)
    peak = torch.accelerator.max_memory_allocated() - before
    held.release()
    converted = x.nbytes // 2 if dtype == torch.float32 else 0
    assert peak == result.nbytes + converted


NORMS: dict[str, Callable[[Tensor, list[Tensor]], Any]] = {
    "evaluation": lambda x, out: torch.native_batch_norm(
        *(x, None, None, x[0, :, 0], x[0, :, 1], False, 0.1, 1e-5), out=out
    ),
    "evaluation in place": lambda x, out: torch.ops.aten._native_batch_norm_legit.out(
        *(x, None, None, x[0, :, 2].clone(), x[0, :, 3].clone(), False, 0.1, 1e-5),
        out=out[0],
        save_mean=out[1],
        save_invstd=out[2],
    ),
}


@pytest.mark.parametrize("name", NORMS)
def test_first_norm_gives_its_out_arguments_the_sizes_of_the_cpu(
    name: str, device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    x = torch.arange(1.0, 481.0).view(4, 6, 20) / 7
    on_device = x.to(device)
    results = {}
    held = latch()
    threading.Timer(0.3, held.release).start()  # for a call that waits
    for each in (on_device, x):
        out = [each.new_empty(0) for _ in range(3)]
        NORMS[name](each, out)
        results[each.device.type] = out
    same(results[on_device.device.type], results["cpu"])


@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@pytest.mark.parametrize("solve", [torch.cholesky_inverse, torch.triangular_solve])
def test_first_out_of_linear_algebra_has_the_strides_of_the_cpu(
    solve: Callable[..., Any],
    device: str,
    same: Callable[[Any, Any], None],
    latch: Latches,
) -> None:
    factor = torch.eye(9) * 4

    def solved(device: str) -> list[Tensor]:
        given = [factor.to(device)]
        out = [torch.empty(0, device=device)]
        if solve is torch.triangular_solve:
            given.insert(0, torch.arange(27.0).view(9, 3).to(device))
            out.append(torch.empty(0, device=device))
        solve(*given, out=out[0] if len(out) == 1 else tuple(out))
        return out

    for _ in range(2):
        held = latch()
        threading.Timer(0.3, held.release).start()  # for a call that waits
        same(solved(device), solved("cpu"))


def test_backward_of_a_first_call_is_enqueued(
    device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    grads = {}
    for where in ("cpu", device):
        x = torch.arange(60.0).view(1, 3, 4, 5).to(where).requires_grad_()
        w = torch.arange(54.0).view(2, 3, 3, 3).to(where).requires_grad_()
        x.grad, w.grad = torch.zeros_like(x), torch.zeros_like(w)
        held = latch() if where == device else None
        F.gelu(F.conv2d(x, w, padding=1)).sum().backward()
        if held is not None:
            assert not torch.accelerator.current_stream().query()
            held.release()
        grads[where] = [x.grad, w.grad]
    same(grads[device], grads["cpu"])


VALUES = """
    import torch, openreg_aten, openreg_runtime as runtime, threading
    from openreg_aten import _C
    _C.init()

    def by_values(x, dim, *, dtype=None):
        rows = list(x.clone())
        for before, row in zip(rows, rows[1:]):
            row.add_(before)
        y = torch.stack(rows)
        return {made} if x.any() else y  # a dry run computes with zeros

    library = torch.library.Library("aten", "IMPL", "CPU")
    library.impl("cumsum", by_values, allow_override=True)
    x = torch.arange(12.0).view(3, 4)
    expected, x = x.cumsum(0).clone().contiguous(), x.to("privateuseone")
    _C.count_paths(1)
    for _ in range(2):
        released, started = threading.Event(), threading.Event()
        def hold():
            started.set()
            released.wait()
        runtime.Device(0).default_stream.launch(hold)
        started.wait()
        threading.Timer(1.0, released.set).start()  # for calls that wait
        y = torch.cumsum(x, 0)
        released.set()
        try:
            torch.accelerator.synchronize()
        except RuntimeError as error:
            print("cumsum" in str(error), "shape [2, 4]" in str(error))
        else:
            print(tuple(y.stride()), torch.equal(y.cpu()[:2], expected[:2]))
    print([n for name, path, n in _C.path_counts() if path == "corrected"])
"""


@pytest.mark.parametrize(
    ("made", "printed"),
    [
        pytest.param(
            "y.t().contiguous().t()",
            ["(4, 1) True", "(1, 3) True", "[1]"],
            id="strides",
        ),
        pytest.param("y[:2].clone()", ["True True", "(4, 1) True", "[1]"], id="sizes"),
    ],
)
def test_metadata_that_follow_from_values_do_not_make_wrong_results(
    made: str,
    printed: list[str],
    run_python: Program,
) -> None:
    result = run_python(
        VALUES.replace("{made}", made),
        OPENREG_INLINE_BYTES="0",
        PYTHONWARNINGS="ignore",
    )
    assert result.stdout.splitlines() == printed, result.stderr
    assert result.returncode == 0


def test_dry_run_does_not_change_generators_of_the_host(
    device: str, latch: Latches
) -> None:
    before = torch.get_rng_state()
    x = torch.empty(3, 1009, device=device, dtype=torch.float16)
    held = latch()
    x.uniform_()
    held.release()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        pytest.param(lambda x: x & x, NotImplementedError, id="dtype"),
        pytest.param(lambda x: x.to(torch.int8).fill_(300), RuntimeError, id="number"),
        pytest.param(lambda x: x.sum().sort(1), IndexError, id="dimension"),
        pytest.param(
            lambda x: torch.searchsorted(x.sum(), x.sum()), RuntimeError, id="scalars"
        ),
        pytest.param(
            lambda x: torch.normal(x.half(), -x.half()), RuntimeError, id="value"
        ),
        pytest.param(
            lambda x: torch.normal(x, -x, out=x.new_empty(0)), RuntimeError, id="out="
        ),
        pytest.param(
            lambda x: torch.linalg.inv(torch.zeros_like(x[:, :1009])),
            torch.linalg.LinAlgError,
            id="singular",
        ),
    ],
)
def test_first_call_that_fails_raises_its_exception(
    call: Callable[[Tensor], Any], error: type[Exception], device: str, latch: Latches
) -> None:
    x = torch.ones(1009, 1013, device=device)
    torch.linalg.inv(torch.eye(1009, device=device))
    held = latch()
    threading.Timer(0.3, held.release).start()
    with pytest.raises(error):
        call(x)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda x: x.softmax(2), id="dimension"),
        pytest.param(lambda x: x.softmax(-3), id="dimension from the end"),
        pytest.param(lambda x: torch.addmm(x[None], x, x), id="addmm"),
        pytest.param(lambda x: torch.addmm(x, x[:1], x), id="addmm of a row"),
        pytest.param(lambda x: x[:2].addmm_(x, x), id="addmm in place"),
        pytest.param(lambda x: torch.addmv(x, x, x[0]), id="addmv"),
        pytest.param(lambda x: x[0, :2].addmv_(x, x[0]), id="addmv in place"),
        pytest.param(lambda x: torch.bucketize(x, x), id="boundaries"),
        pytest.param(
            lambda x: x.index_add(0, torch.arange(2, device=x.device), x[:2, :1]),
            id="index_add",
        ),
        pytest.param(
            lambda x: x.index_select(0, torch.zeros_like(x, dtype=torch.int64)),
            id="index_select",
        ),
        pytest.param(
            lambda x: torch.linalg.vector_norm(x, dim=(0, -2)), id="dimension twice"
        ),
        pytest.param(
            lambda x: F.batch_norm(x, x[:1].clone(), x[:1].clone(), training=True),
            id="statistics",
        ),
        pytest.param(
            lambda x: torch.ops.aten._native_batch_norm_legit(
                x, None, None, x[:1].clone(), x[:1].clone(), True, 0.1, 1e-5
            ),
            id="functional statistics",
        ),
        pytest.param(
            lambda x: torch.ops.aten._batch_norm_with_update(
                x, None, None, x[:1].clone(), x[:1].clone(), 0.1, 1e-5
            ),
            id="updated statistics",
        ),
        pytest.param(
            lambda x: torch.ops.aten._adaptive_avg_pool2d(x[None], [1, 2, 2]),
            id="sizes of a pool",
        ),
        pytest.param(
            lambda x: torch.ops.aten._adaptive_avg_pool2d_backward(
                x[None, None], x[None]
            ),
            id="gradient of a pool",
        ),
        pytest.param(
            lambda x: torch.native_group_norm(x, None, None, 1, len(x), 7, 1, 0.1),
            id="group norm",
        ),
        pytest.param(
            lambda x: torch.ops.aten.native_layer_norm_backward(
                x, x, [len(x)], x[:, :1], x[:, :1], x, None, [True, True, False]
            ),
            id="gradient of a layer norm",
        ),
        pytest.param(
            lambda x: torch.ops.aten.glu_backward(x[None], x.repeat(1, 2), 1),
            id="gradient of a gated linear unit",
        ),
        pytest.param(
            lambda x: torch.ops.aten.rrelu_with_noise(x, x[:5].clone(), 0.1, 0.3, True),
            id="noise",
        ),
        pytest.param(
            lambda x: torch.ops.aten.rrelu_with_noise_(
                x, x[:5].clone(), 0.1, 0.3, True
            ),
            id="noise in place",
        ),
        pytest.param(
            lambda x: torch.ops.aten.native_layer_norm_backward(
                x, x, [len(x)], x[:, :1], x[:, :1], None, x[0], [True, True, False]
            ),
            id="gradient of no weight",
        ),
        pytest.param(lambda x: x.sort(2), id="dimension of a sort"),
        pytest.param(lambda x: x.sort(dim=-3, stable=True), id="of a stable sort"),
        pytest.param(lambda x: torch.ormqr(x, x[0, :4], x[:7, :7]), id="reflectors"),
        pytest.param(
            lambda x: torch.ops.aten._softmax_backward_data(x, x[None], 0, x.dtype),
            id="gradient of softmax",
        ),
        pytest.param(
            lambda x: F.nll_loss(
                x[None, None],
                torch.zeros_like(x[None, :1], dtype=torch.int64),
                reduction="sum",
            ),
            id="target",
        ),
    ],
)
def test_wrong_shapes_are_the_callers_error(
    call: Callable[[Tensor], Any], device: str, latch: Latches
) -> None:
    size = next(SIZES) % 1000 + 8  # not the 7 of a case
    host = torch.rand(size, size)
    with pytest.raises((RuntimeError, IndexError)) as expected:
        call(host)
    x = host.to(device)
    held = latch()
    threading.Timer(0.3, held.release).start()
    with pytest.raises(expected.type):
        call(x)
    torch.accelerator.synchronize()  # no kernel failed


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda x, y: torch.gather(x, 0, y[1], out=y[0]), id="indices"),
        pytest.param(lambda x, y: torch.cumsum(x, 0, out=y[0]), id="out="),
        pytest.param(
            lambda x, y: torch.native_batch_norm(
                x.double().view(1, 4, 1), None, None, y[2], y[2], True, 0.1, 1e-5
            ),
            id="statistics",
        ),
    ],
)
def test_first_call_that_mixes_devices_changes_nothing(
    call: Callable[..., Any], device: str, latch: Latches
) -> None:
    x = torch.arange(4, device=device)
    y = [torch.empty(0, dtype=torch.int64), torch.arange(4), torch.ones(4).double()]
    expected = [each.clone() for each in y]
    held = latch()
    threading.Timer(0.3, held.release).start()
    with pytest.raises(RuntimeError, match=r"two devices|same device"):
        call(x, y)
    for one, other in zip(y, expected, strict=True):
        assert torch.equal(one, other)


def test_dry_run_leaves_a_warning_that_is_given_once(
    run_python: Program,
) -> None:
    result = run_python(
        """
        import threading, warnings
        import torch, openreg_aten, openreg_runtime as runtime
        openreg_aten._C.init()
        x = torch.zeros(4, dtype=torch.int64).to("privateuseone")
        gate = threading.Event()
        runtime.Device(0).default_stream.launch(gate.wait)
        threading.Timer(0.3, gate.set).start()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.index_reduce(x, 0, x, x, "prod")
        print(["beta" in str(each.message) for each in caught])
        """
    )
    assert result.stdout == "[True]\n", result.stderr


def test_warning_of_a_first_call_is_the_callers(device: str, latch: Latches) -> None:
    x = torch.ones(1, 1021, device=device)
    held = latch()
    threading.Timer(0.3, held.release).start()
    with pytest.warns(UserWarning, match="degrees of freedom"):
        x.var(0)


def test_view_of_a_large_storage_waits(
    device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    # A different shape for each run in a process, because calls are cached.
    size = next(SIZES)
    x = torch.arange(100.0, device=device).repeat(200_000)[1 : 1 + size]
    held = latch()
    threading.Timer(0.3, held.release).start()
    y = torch.fft.rfft(x)
    assert torch.accelerator.current_stream().query()
    same(y, torch.fft.rfft(x.cpu()))


def test_sizes_that_follow_from_values_are_waited_for(
    device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    dense = torch.arange(24.0).view(2, 4, 3)
    offsets = [torch.tensor([0, 2, 5])]
    expected = torch.ops.aten._padded_dense_to_jagged_forward(dense, offsets)
    moved = dense.to(device), [each.to(device) for each in offsets]
    held = latch()
    threading.Timer(0.3, held.release).start()
    same(torch.ops.aten._padded_dense_to_jagged_forward(*moved), expected)


@pytest.mark.differs_in_process("messages")
def test_file_is_read_by_the_call(device: str, tmp_path: Path, latch: Latches) -> None:
    path = tmp_path / "numbers"
    torch.arange(4.0).numpy().tofile(path)
    held = latch()
    threading.Timer(0.3, held.release).start()
    x = torch.from_file(str(path), size=4, device=device)
    torch.zeros(4).numpy().tofile(path)
    assert x.tolist() == [0, 1, 2, 3]
