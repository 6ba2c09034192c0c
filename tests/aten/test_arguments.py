# SPDX-License-Identifier: BSD-3-Clause
"""Arguments other than plain tensors: indices, lists, results to write, scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

Both = Callable[..., Any]


def data(*shape: int) -> Tensor:
    return torch.randn(shape)


def test_indices_read_and_write_as_on_the_cpu(both: Both) -> None:
    x, rows, columns = data(6, 5), torch.tensor([4, 0, 4]), torch.tensor([1, 2, 3])
    mask = x[:, 0] > 0
    both(lambda x, i: x[i], x, rows)
    both(lambda x, i, j: x[i, j], x, rows, columns)
    both(lambda x, i: x[:, None, i], x, columns)
    both(lambda x, m: x[m], x, mask)
    both(lambda x, i, m: x[i, 1:3], x, rows, mask)

    def write(x: Tensor, i: Tensor, j: Tensor, m: Tensor, value: Tensor) -> Tensor:
        x[i, j] = value
        x[m, 0] = 7
        x[:, i.clamp(max=4)] += 1
        x[1] = value[0]
        x.index_put_((i,), value[:1], accumulate=True)
        return x.index_put((i, j), value[0])

    both(write, x, rows, columns, mask, data(3))


def test_cpu_indices_are_accepted_with_device_tensors(device: str, same) -> None:
    x, i = data(6, 5), torch.tensor([4, 0, 4])
    mask = torch.rand(6) > 0.5
    moved = x.to(device)
    same(moved[i], x[i])
    same(moved[i, i.to(device)], x[i, i])
    same(moved[mask], x[mask])
    for each, index in ((moved, i), (x, i)):
        each[index] = torch.tensor(3.0)
        each[index, 0] += 1
    same(moved, x)


def test_device_indices_are_refused_for_a_cpu_tensor(device: str) -> None:
    with pytest.raises(RuntimeError, match="cpu"):
        data(6)[torch.tensor([1], device=device)]
    with pytest.raises(RuntimeError, match="cpu"):
        data(6)[torch.tensor([1], device=device)] = 1.0


LISTS: dict[str, Callable[[list[Tensor]], Any]] = {
    "cat": lambda x: torch.cat(x, dim=1),
    "stack": torch.stack,
    "hstack": torch.hstack,
    "block_diag": lambda x: torch.block_diag(*x),
    "meshgrid": lambda x: torch.meshgrid(x[0][0], x[1][0], indexing="ij"),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x[0][:1], x[1]),
    "foreach_add": lambda x: torch._foreach_add(x, x, alpha=2),
    "foreach_mul_": lambda x: torch._foreach_mul_(x, 3.0),
    "foreach_addcdiv": lambda x: torch._foreach_addcdiv(x, x, x, 0.5),
    "foreach_norm": torch._foreach_norm,
    "foreach_copy_": lambda x: torch._foreach_copy_(x, x[::-1]),
    "foreach_zero_": torch._foreach_zero_,
    "foreach_scalars": lambda x: torch._foreach_div(x, [1.0, 2.0, 3.0]),
    "einsum": lambda x: torch.einsum("ab,cb,db->acd", *x),
    "pad_sequence": lambda x: torch.nn.utils.rnn.pad_sequence(x),
    "flatten": torch._utils._flatten_dense_tensors,
    "clip_grad": lambda x: torch.nn.utils.get_total_norm(x),
}


@pytest.mark.parametrize("name", LISTS)
def test_tensor_list_gives_the_bits_of_the_cpu(both: Both, name: str) -> None:
    both(LISTS[name], [data(3, 4), data(3, 4), data(4, 3).t()])


def test_lists_may_hold_the_same_tensor_twice(both: Both) -> None:
    x = data(3)
    both(lambda x, y: torch.cat([x, y, x[:0]]), x, x)
    both(lambda x, y: torch._foreach_add_([x], [y]), x, x)


def test_result_to_write_is_resized_if_it_is_empty(both: Both) -> None:
    x = data(4, 5)

    def run(x: Tensor, out: Tensor) -> Tensor:
        result = torch.exp(x, out=out)
        assert result is out
        return out

    both(run, x, torch.empty(0))
    both(run, x, torch.empty(4, 5).t().contiguous().t())
    both(run, x, torch.empty(4, 5, dtype=torch.float64))


def test_result_of_a_wrong_size_is_resized_with_a_warning(device: str, same) -> None:
    x, out = data(4, 5), torch.empty(3, device=device)
    with pytest.warns(UserWarning, match="resized"):
        torch.exp(x.to(device), out=out)
    same(out, x.exp())


def test_result_to_write_may_be_a_view_into_a_base(both: Both) -> None:
    def run(x: Tensor, base: Tensor) -> None:
        torch.mul(x, 2, out=base[1])
        torch.sum(x, 0, out=base[2, 1])
        torch.mul(x[:3], 3, out=base[3, ::2])
        torch.cat([x, x[:0]], out=base[4])
        torch.cat([x, x[:0]], out=base[5, :0])

    both(run, data(5), torch.zeros(6, 5))


def test_operator_with_several_results_to_write(both: Both) -> None:
    def run(x: Tensor, values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
        result = torch.topk(x, 2, out=(values, indices))
        assert result[0] is values
        return values, indices

    both(run, data(3, 5), torch.empty(0), torch.empty(0, dtype=torch.int64))


def test_result_to_write_keeps_its_storage_and_its_other_views(device: str) -> None:
    out = torch.zeros(6, device=device)
    view, address = out.view(2, 3), out.data_ptr()
    torch.add(torch.arange(6.0, device=device), 1, out=out)
    assert out.data_ptr() == address
    assert view.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_operator_in_place_returns_its_argument(device: str) -> None:
    x = torch.ones(3, device=device)
    version = x._version
    assert x.add_(1) is x
    assert x.t_() is x
    assert x._version > version


def test_cpu_scalar_tensor_is_accepted_with_device_tensors(device: str, same) -> None:
    x, scalar = data(4), torch.tensor(2.5, dtype=torch.float64)
    moved = x.to(device)
    same(moved * scalar, x * scalar)
    same(scalar - moved, scalar - x)
    same(moved.add_(scalar), x.add_(scalar))
    same(torch.where(moved > 0, moved, scalar), torch.where(x > 0, x, scalar))
    same(torch.minimum(moved, scalar), torch.minimum(x, scalar))
    # A scalar does not decide the device: without other tensors the result is on the
    # CPU.
    assert (scalar * 2).device.type == "cpu"


MIXED: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add": lambda x, y: x + y,
    "radd": lambda x, y: y + x,
    "add_": lambda x, y: x.add_(y),
    "cpu_add_": lambda x, y: y.add_(x),
    "scalar_add_": lambda x, y: y.sum().add_(x.sum()),
    "matmul": lambda x, y: x @ y,
    "cat": lambda x, y: torch.cat([x, y]),
    "out": lambda x, y: torch.exp(x, out=y),
    "index_select": lambda x, y: x.index_select(0, y.long()),
    "gather": lambda x, y: x.gather(0, y.long()),
    "where": lambda x, y: torch.where(y > 0, x, x),
    "linear": lambda x, y: F.linear(x, y[None]),
    "conv": lambda x, y: F.conv1d(x[None, None], y[None, None]),
    "layer_norm": lambda x, y: F.layer_norm(x, (3,), y),
    "foreach": lambda x, y: torch._foreach_add([x], [y]),
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "cross_entropy": lambda x, y: F.cross_entropy(x[None], y[:1].long()),
}


@pytest.mark.parametrize("name", MIXED)
def test_mixed_devices_are_refused_in_the_words_of_cuda(device: str, name: str) -> None:
    x, y = torch.ones(3, device=device), torch.ones(3)
    message = "Expected all tensors to be on the same device, but found at least two"
    with pytest.raises(RuntimeError, match=message) as caught:
        MIXED[name](x, y)
    assert f"{device}:0" in str(caught.value)
    assert "cpu" in str(caught.value)
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == [1, 1, 1]


def test_two_devices_are_refused_by_name(device: str) -> None:
    x, y = torch.ones(3, device=device), torch.ones(3, device=f"{device}:1")
    message = f"at least two devices, {device}:0 and {device}:1!"
    for function in (torch.add, torch.dot, lambda a, b: torch.cat([a, b])):
        with pytest.raises(RuntimeError, match=message):
            function(x, y)
    # Unlike on the CPU, scalars of other devices are not accepted.
    with pytest.raises(RuntimeError, match=message):
        x + y.sum()


def test_operator_runs_on_the_device_of_its_tensors(device: str) -> None:
    x = torch.ones(3, device=f"{device}:1")
    assert (x + 1).device.index == 1
    assert x.nonzero().device.index == 1
    assert torch.accelerator.current_device_index() == 0


def test_packed_sequence_and_ctc_take_lengths_of_the_cpu(device: str, same) -> None:
    x, lengths = data(5, 3, 4), torch.tensor([5, 3, 2])
    packed = [
        torch.nn.utils.rnn.pack_padded_sequence(each, lengths)
        for each in (x.to(device), x)
    ]
    same(packed[0].data, packed[1].data)
    log_probs, targets = data(5, 3, 4).log_softmax(2), torch.tensor([1, 2, 3, 1])
    target_lengths = torch.tensor([2, 1, 1])
    losses = [
        F.ctc_loss(each, targets, lengths, target_lengths)
        for each in (log_probs.to(device), log_probs)
    ]
    same(losses[0], losses[1])


def test_value_of_another_device_fills_a_tensor(device: str) -> None:
    value = torch.tensor(3.0, device=f"{device}:0")
    for where in ("cpu", f"{device}:0", f"{device}:1"):
        assert torch.ones(2, device=where).fill_(value).tolist() == [3, 3]
    filled = torch.ones(2, device=device).fill_(torch.tensor(4.0))
    assert filled.tolist() == [4, 4]
