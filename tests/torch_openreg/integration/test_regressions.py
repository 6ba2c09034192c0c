# SPDX-License-Identifier: BSD-3-Clause
"""Situations that once hung, crashed or gave wrong numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from support.programs import Program


def test_operator_reuses_cached_memory_before_it_runs_out(fork_script: Program) -> None:
    result = fork_script(
        """
        import torch
        x = torch.ones(2_500_000, device="openreg")
        cached = torch.empty(7_500_000, device="openreg")
        del cached
        print(torch.cat([x] * 4).sum().item() == 10_000_000)
        try:
            torch.cat([x] * 20)
        except torch.OutOfMemoryError:
            print("out of memory")
        print((x + 1)[0].item())
        """,
        OPENREG_DEVICE_MEMORY="64MiB",
    )
    assert (result.returncode, result.stdout) == (0, "True\nout of memory\n2.0\n"), (
        result
    )


def test_cache_is_emptied_while_copies_are_under_way(fork_script: Program) -> None:
    result = fork_script(
        """
        import torch
        cached = torch.empty(7_500_000, device="openreg")
        del cached
        x = torch.ones(20_000_000).pin_memory()
        y = torch.empty(20_000_000, device="openreg")
        for _ in range(5):
            y.copy_(x, non_blocking=True)
        torch.openreg.empty_cache()
        print(y.sum().item() == 20_000_000)
        """
    )
    assert (result.returncode, result.stdout) == (0, "True\n"), result


# Also on the CPU: PyTorch has no batching rule for the kernel.
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_attention_under_vmap_equals_the_cpu(device: str) -> None:
    x = torch.randn(3, 2, 2, 4, 8)

    def attend(t: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(t, t, t)

    torch.testing.assert_close(
        torch.vmap(attend)(x.to(device)).cpu(), torch.vmap(attend)(x)
    )


def test_attention_under_func_grad_equals_the_cpu(device: str) -> None:
    x = torch.randn(2, 2, 4, 8)

    def loss(t: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(t, t, t).square().sum()

    gradient = torch.func.grad(loss)
    torch.testing.assert_close(gradient(x.to(device)).cpu(), gradient(x))


def test_attention_of_fake_tensors_has_the_shape(device: str) -> None:
    with FakeTensorMode():
        x = torch.empty(2, 2, 4, 8, device=device)
        assert F.scaled_dot_product_attention(x, x, x).shape == x.shape


def test_compile_with_aot_eager_trains_attention(device: str) -> None:
    def loss(t: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(t, t, t).square().sum()

    x = torch.randn(2, 2, 4, 8, device=device, requires_grad=True)
    torch.compile(loss, backend="aot_eager")(x).backward()
    y = x.detach().clone().requires_grad_()
    loss(y).backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad.cpu(), y.grad.cpu())


@pytest.mark.parametrize(
    "write",
    [
        lambda t: torch.add(t, 1, out=t),
        lambda t: torch.add(t[:2], t[:2], out=t[2:]),
        lambda t: t.add_(1),
        lambda t: t.copy_(torch.zeros(4)),
    ],
    ids=["out_is_input", "out_is_a_view", "in_place", "copy"],
)
def test_write_does_not_change_a_lazy_clone(
    device: str, write: Callable[[torch.Tensor], object]
) -> None:
    ours, cpu = torch.arange(4.0, device=device), torch.arange(4.0)
    for original in (ours, cpu):
        clone = torch._lazy_clone(original)
        write(original)
        assert clone.tolist() == [0, 1, 2, 3]
    assert torch.equal(ours.cpu(), cpu)


def test_copy_to_the_host_does_not_change_a_lazy_clone(device: str) -> None:
    pinned = torch.arange(4.0).pin_memory()
    clone = torch._lazy_clone(pinned)
    clone.copy_(torch.ones(4, device=device), non_blocking=True)
    torch.openreg.synchronize()
    assert pinned.tolist() == [0, 1, 2, 3]
    assert clone.tolist() == [1, 1, 1, 1]


def test_blocking_copy_keeps_host_memory_on_the_host(device: str) -> None:
    source = torch.ones(4, device=device)
    host = torch._lazy_clone(torch.arange(4.0))
    before = torch.openreg.memory_allocated()
    host.copy_(source)
    assert torch.openreg.memory_allocated() == before


def test_asynchronous_copy_of_a_wrong_shape_is_refused_at_once(device: str) -> None:
    x = torch.empty(3, device=device)
    with pytest.raises(RuntimeError, match="must match"):
        x.copy_(torch.ones(4).pin_memory(), non_blocking=True)


def test_program_without_the_device_does_not_start_it(run_script: Program) -> None:
    result = run_script(
        """
        import torch
        torch.ones(2, 2).to_mkldnn()
        print(torch.openreg.is_initialized())
        """
    )
    assert (result.returncode, result.stdout) == (0, "False\n"), result


def test_cpu_programs_run_with_a_wrong_setting(run_script: Program) -> None:
    result = run_script(
        "import torch; print(torch.ones(2, 2).to_mkldnn().to_dense().sum().item())",
        OPENREG_DEVICE_COUNT="x",
    )
    assert (result.returncode, result.stdout) == (0, "4.0\n"), result


def test_item_of_an_empty_tensor_is_refused(device: str) -> None:
    with pytest.raises(RuntimeError, match="Empty tensor not supported"):
        torch.ops.aten._local_scalar_dense(torch.empty(0, device=device))


def test_negative_stride_is_refused(device: str) -> None:
    x = torch.empty(0, device=device)
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.set_(torch.ones(4, device=device).untyped_storage(), 0, (4,), (-1,))
