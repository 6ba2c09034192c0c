# SPDX-License-Identifier: BSD-3-Clause
"""assert_no_host_sync reports exactly the waits of the host, with their lines."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from support.versions import TORCH, since
from torch_openreg.testing import assert_no_host_sync

Output = Callable[..., str]

WAITS: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "item": (lambda x: x[0].item(), "aten::_local_scalar_dense"),
    "bool": (lambda x: bool(x[0] > 0), "aten::_local_scalar_dense"),
    "float": (lambda x: float(x[0]), "aten::_local_scalar_dense"),
    "int": (lambda x: int(x[0]), "aten::_local_scalar_dense"),
    "if": (lambda x: 1 if x.sum() else 0, "aten::_local_scalar_dense"),
    "tolist": (lambda x: x.tolist(), "aten::"),
    "cpu": (lambda x: x.cpu(), "aten::_to_copy from openreg to cpu"),
    "to cpu": (lambda x: x.to("cpu", torch.double), "aten::_to_copy"),
    "to openreg": (lambda x: torch.ones(3).to(x.device), "from cpu to openreg"),
    "copy_ to the host": (
        lambda x: torch.empty(len(x)).copy_(x),
        "aten::copy_ from openreg to cpu",
    ),
    "copy_ to the device": (
        lambda x: x.copy_(torch.ones(len(x))),
        "aten::copy_ from cpu to openreg",
    ),
    "copy_ to memory that is not pinned": (
        lambda x: torch.empty(len(x)).copy_(x, non_blocking=True),
        "aten::copy_ from openreg to cpu",
    ),
    "nonzero": (lambda x: x.nonzero(), "aten::nonzero"),
    "where": (lambda x: torch.where(x > 0), "aten::nonzero"),
    "argwhere": (lambda x: torch.argwhere(x), "aten::nonzero"),
    "unique": (lambda x: x.unique(), "aten::_unique2"),
    "masked_select": (lambda x: x.masked_select(x > 0), "aten::masked_select"),
    "index by a mask": (lambda x: x[x > 0], "aten::index with a mask"),
    "assignment by a mask": (
        lambda x: x.__setitem__(x > 0, torch.ones((), device=x.device)),
        "with a mask",
    ),
    "assignment of values by a mask": (
        lambda x: x.__setitem__(x < 5, x.clone()),
        "with a mask",
    ),
    "index by a host tensor": (
        lambda x: x[torch.randperm(3)],
        "aten::index with an index from cpu",
    ),
    "assignment by a host tensor": (
        lambda x: x.__setitem__(torch.tensor([0, 2]), x[:2].clone()),
        "aten::index_put_ with an index from cpu",
    ),
    "index by a list": (
        lambda x: x[[0, 2]],
        "Tensor.__getitem__ with an index from the host's data",
    ),
    "index by a tuple in a tuple": (
        lambda x: x.expand(2, 3)[:, (0, 2)],
        "Tensor.__getitem__ with an index from the host's data",
    ),
    "assignment by a list": (
        lambda x: x.__setitem__([0, 2], 1.0),
        "Tensor.__setitem__ with an index from the host's data",
    ),
    "index by an array": (lambda x: x[np.array([0, 2])], "from cpu to openreg"),
    "_foreach_copy_": (
        lambda x: torch._foreach_copy_([x], [torch.ones(3)]),
        "aten::_foreach_copy_ from cpu to openreg",
    ),
    "where with a host tensor": (
        lambda x: torch.where(x > 0, x, torch.tensor(0.0)),
        "aten::where with a tensor from cpu",
    ),
    "masked_fill by a tensor": (
        lambda x: x.masked_fill(x > 0, x[0]),
        "aten::masked_fill with a value on the device",
    ),
    "index_fill by a tensor": (
        lambda x: x.index_fill(0, torch.zeros_like(x, dtype=torch.long), x[0]),
        "aten::index_fill with a value on the device",
    ),
    "linspace": (lambda x: torch.linspace(x[0], x[2], 3), "aten::linspace"),
    "logspace": (lambda x: torch.logspace(0, x[2], 3), "aten::logspace"),
    "normal": (lambda x: torch.normal(x, x), "aten::normal"),
    "histc": (lambda x: torch.histc(x), "aten::histc without a range"),
    "bincount": (lambda x: torch.bincount(x.long()), "aten::bincount"),
    "isin": (lambda x: torch.isin(x, x.repeat(9)), "aten::isin of many elements"),
    "searchsorted": (
        lambda x: torch.searchsorted(x, x, sorter=x.long()),
        "aten::searchsorted with a sorter",
    ),
    "mode": (lambda x: x.repeat(1000).mode(), "aten::mode of long slices"),
    "segment_reduce": (
        lambda x: torch.segment_reduce(x, "sum", lengths=x.long()),
        "aten::segment_reduce with lengths",
    ),
    "linalg.eigh": (lambda x: torch.linalg.eigh(x.diag()), "aten::_linalg_eigh"),
    "linalg.svd": (lambda x: torch.linalg.svd(x.diag()), "aten::_linalg_svd"),
    "linalg.eig": (lambda x: torch.linalg.eig(x.diag()), "aten::linalg_eig"),
    "linalg.pinv": (lambda x: torch.linalg.pinv(x.diag()), "aten::linalg_pinv"),
    "linalg.lstsq": (
        lambda x: torch.linalg.lstsq(x.add(1).diag(), x.diag()),
        "aten::linalg_lstsq",
    ),
    "linalg.cholesky_ex with check_errors": (
        lambda x: torch.linalg.cholesky_ex(x.add(1).diag(), check_errors=True),
        "aten::linalg_cholesky_ex with check_errors",
    ),
    "matrix_exp": (lambda x: x.diag().matrix_exp(), "aten::linalg_matrix_exp"),
    "to_sparse": (lambda x: x.to_sparse(), "aten::_to_sparse"),
    "coalesce": (
        lambda x: torch.sparse_coo_tensor(
            x.long()[None], x, (3,), check_invariants=False
        ).coalesce(),
        "aten::_coalesce",
    ),
    "fake_quantize_per_channel_affine": (
        lambda x: torch.fake_quantize_per_channel_affine(
            x, x + 1, x.int() * 0, 0, 0, 255
        ),
        "aten::fake_quantize_per_channel_affine_cachemask",
    ),
    "repeat_interleave": (
        lambda x: torch.repeat_interleave(x.long()),
        "aten::repeat_interleave",
    ),
    "equal": (lambda x: torch.equal(x, x + 0), "aten::equal"),
    "allclose": (lambda x: torch.allclose(x, x), "aten::_local_scalar_dense"),
    "linalg.inv": (
        lambda x: torch.linalg.inv(torch.eye(2, device=x.device)),
        "aten::_linalg_check_errors",
    ),
    "repr": (lambda x: repr(x), "Tensor.__repr__"),
    "format": (lambda x: f"{x[0]:.3f}", "aten::_local_scalar_dense"),
    "torch.tensor on the device": (
        lambda x: torch.tensor([1.0, 2.0], device=x.device),
        "torch.tensor from the host's data",
    ),
    "torch.as_tensor on the device": (
        lambda x: torch.as_tensor(1.0, device=x.device),
        "torch.as_tensor from the host's data",
    ),
    "torch.tensor of numbers on the device": (
        lambda x: torch.tensor([x[0], x[1]]),
        "torch.tensor of the device's numbers",
    ),
    "new": (lambda x: x.new([1]), "Tensor.new from the host's data"),
    "new_tensor": (lambda x: x.new_tensor([1]), "new_tensor from the host's data"),
    "new_tensor by name": (
        lambda x: x.new_tensor(dtype=torch.int, data=[1]),
        "new_tensor from the host's data",
    ),
    "torch.openreg.synchronize": (lambda _: torch.openreg.synchronize(), "synchronize"),
    "torch.accelerator.synchronize": (
        lambda _: torch.accelerator.synchronize(),
        "synchronize",
    ),
    "Stream.synchronize": (
        lambda _: torch.accelerator.current_stream().synchronize(),
        "Stream.synchronize",
    ),
    "Event.synchronize": (lambda _: recorded().synchronize(), "Event.synchronize"),
}
# A number that is assigned. Since torch 2.15 it is written on the device.
NUMBERS: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "assignment of a number by an index": (
        lambda x: x.__setitem__(torch.zeros_like(x, dtype=torch.long), 1.0),
        "aten::index_put_ with a value from cpu",
    ),
    "assignment of a number to an element": (
        lambda x: x.__setitem__(0, 1.0),
        "aten::copy_ of a number",
    ),
}
if TORCH < (2, 15):
    WAITS |= NUMBERS


def recorded() -> torch.Event:
    event = torch.Event("openreg")
    event.record()
    return event


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("name", WAITS)
def test_wait_is_found_with_its_cause_and_line(name: str, inference: bool) -> None:
    wait, cause = WAITS[name]
    x = torch.arange(3.0, device="openreg")
    with (
        pytest.raises(AssertionError, match=re.escape(cause)) as error,
        assert_no_host_sync() as found,
        torch.inference_mode(inference),
    ):
        wait(x)
    assert found
    for sync in found:
        file, number, _ = sync.line.split(":", 2)
        assert file == __file__
        line = wait.__code__.co_firstlineno
        assert int(number) in range(line, line + 5) or name == "Event.synchronize"
        assert sync.line in str(error.value)


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.add(1).mul_(2).sum(),
        lambda x: x @ x,
        lambda x: torch.as_tensor(x),
        lambda x: torch.as_tensor(device=x.device, data=x),
        lambda x: torch.asarray(device=x.device, obj=x),
        lambda x: torch.tensor([], device=x.device),
        lambda _: torch.tensor([1.0, 2.0]),
        lambda x: x[1:].clone(),
        lambda x: x[torch.arange(2, device=x.device)],
        lambda x: torch.where(x > 0, x, -x),
        lambda x: x.__setitem__(x == 0, -100),
        lambda x: x.__setitem__(x == 0, torch.tensor(-100.0)),
        lambda x: x.index_put_((x == 0,), torch.tensor(1.0)),
        lambda x: x[torch.tensor([True, False, True])],
        lambda x: x.__setitem__(slice(0, 2), 1.0),
        lambda x: x[1:, None],
        lambda x: x[[]],
        lambda x: x.masked_fill(x > 0, 1.0),
        lambda x: x.masked_scatter(x > 0, x),
        lambda x: torch.where(x > 0, x, 0.0),
        lambda x: x + torch.tensor(1.0),
        lambda x: torch.linspace(0, 1, 3, device=x.device),
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.multinomial(x, 1),
        lambda x: torch.histc(x, min=0, max=2),
        lambda x: torch.isin(x, x),
        lambda x: torch.searchsorted(x, x),
        lambda x: x.mode(),
        lambda x: torch.segment_reduce(x, "sum", lengths=x.long(), unsafe=True),
        lambda x: torch.equal(x, x) and torch.equal(x, x[:2]),
        lambda x: torch.nonzero_static(x, size=2),
        lambda x: torch.linalg.cholesky_ex(x.add(1).diag()),
        lambda x: torch.linalg.qr(x.diag()),
        lambda x: torch.linalg.det(x.diag()),
        lambda x: x.std() + x.var(),
        lambda x: torch._foreach_copy_([x], [x + 1]),
        lambda x: torch.nn.functional.embedding(x.long(), x[:, None] + 1, max_norm=1.0),
        lambda x: x.to(torch.float64),
        lambda x: x.to("openreg:1"),
        lambda x: x.shape[0] + x.numel() + len(x) + x.stride(0),
        lambda x: torch.ones(3).to(x.device, non_blocking=True),
        lambda x: x.to("cpu", non_blocking=True),
        lambda x: torch.empty(3, pin_memory=True).copy_(x, non_blocking=True),
        lambda x: torch.repeat_interleave(
            torch.ones(2, dtype=torch.long, device=x.device), output_size=2
        ),
        lambda _: torch.ones(3).sum().item(),
        lambda _: torch.ones(3).nonzero(),
        lambda _: torch.ones(3).to("cpu").tolist(),
        lambda _: recorded().query(),
        lambda _: torch.Stream("openreg").wait_event(recorded()),
    ],
)
def test_work_that_waits_for_nothing_passes(work: Callable[[Tensor], object]) -> None:
    x = torch.arange(3.0, device="openreg")
    with assert_no_host_sync() as found:
        work(x)
    assert found == []


@since(2, 15)
@pytest.mark.parametrize("name", NUMBERS)
def test_assignment_of_a_number_waits_for_nothing(name: str) -> None:
    x = torch.ones(3, device="openreg")
    with assert_no_host_sync():
        NUMBERS[name][0](x)


def test_repeated_wait_is_listed_once_with_its_count() -> None:
    x = torch.ones((), device="openreg")
    with pytest.raises(AssertionError) as error, assert_no_host_sync():
        sum(x.item() for _ in range(3))
    assert "waited for the device 3 times" in str(error.value)
    assert str(error.value).count("x.item()") == 1
    assert "_local_scalar_dense (3 times)" in str(error.value)


class ReadsInBackward(torch.autograd.Function):
    """Reads its gradient."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        """Returns a copy."""
        return x.clone()

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        """Reads the gradient."""
        grad.sum().item()
        return grad


def test_wait_in_a_backward_pass_is_found() -> None:
    x = torch.ones(3, device="openreg", requires_grad=True)
    line = re.escape("grad.sum().item()")
    with pytest.raises(AssertionError, match=line), assert_no_host_sync():
        ReadsInBackward.apply(x).sum().backward()


def test_wait_in_another_thread_is_not_of_this_program() -> None:
    x = torch.ones(3, device="openreg")
    with assert_no_host_sync():
        thread = threading.Thread(target=lambda: (x.cpu(), torch.openreg.synchronize()))
        thread.start()
        thread.join()


def test_line_is_the_callers_and_not_the_libraries() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, device="openreg"))
    parameter.grad = torch.ones(2, device="openreg")
    with pytest.raises(AssertionError) as error, assert_no_host_sync():
        torch.nn.utils.clip_grad_norm_([parameter], 1.0, error_if_nonfinite=True)
    assert f"{Path(__file__)}:" in str(error.value)
    assert "torch/nn/utils" not in str(error.value)


def test_library_whose_name_begins_with_torch_is_named() -> None:
    file = str(Path(torch.__file__).parents[1] / "torchtoy" / "model.py")
    scope: dict[str, Callable[[Tensor], object]] = {}
    exec(compile("def read(x):\n    return x.item()", file, "exec"), scope)
    x = torch.ones((), device="openreg")
    with pytest.raises(AssertionError) as error, assert_no_host_sync():
        scope["read"](x)
    assert f"{file}:2" in str(error.value)


def test_error_of_the_block_propagates() -> None:
    x = torch.zeros((), device="openreg")
    with pytest.raises(ZeroDivisionError), assert_no_host_sync():
        1 / x.item()


def test_nothing_is_seen_after_the_block() -> None:
    x = torch.ones((), device="openreg")
    with assert_no_host_sync() as found:
        y = x + 1
    y.item()
    torch.openreg.synchronize()
    assert found == []


def test_blocks_nest() -> None:
    x = torch.ones((), device="openreg")
    with pytest.raises(AssertionError), assert_no_host_sync() as outer:  # noqa: PT012
        with pytest.raises(AssertionError), assert_no_host_sync() as inner:
            x.item()
        x.item()
    assert len(inner) == 1
    assert len(outer) == 2


def test_training_step_with_a_fused_optimizer_and_scaler_is_judged() -> None:
    model = torch.nn.Linear(4, 2).openreg()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(8, 4, device="openreg")

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step()
    with assert_no_host_sync():
        step()


@pytest.mark.parametrize("name", ["gpu_trace", "device_module"])
def test_missing_mechanism_is_named(output: Output, name: str) -> None:
    source = """
    import torch
    from torch_openreg.testing import assert_no_host_sync
    try:
        with assert_no_host_sync():
            pass
    except RuntimeError as error:
        print(error)
    """
    said = output(source, OPENREG_DISABLE=name)
    assert f"needs the mechanism {name}, which OPENREG_DISABLE leaves out" in said
