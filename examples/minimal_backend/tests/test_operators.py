# SPDX-License-Identifier: BSD-3-Clause
"""Operators, compared with the CPU."""

from __future__ import annotations

import copy
import io
import threading

import pytest
import torch

DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64]


def sample(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.testing.make_tensor(3, 4, dtype=dtype, device="cpu")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_to_the_device_and_back_are_equal(dtype: torch.dtype) -> None:
    x = sample(dtype)
    assert torch.equal(x.to("minimal").cpu(), x)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[:, 1:3],
        lambda x: x[::2],
        lambda x: x[1].expand(5, 4),
        lambda x: x.view(2, 6),
        lambda x: x.reshape(-1)[3:],
        lambda x: x.unfold(1, 2, 1),
    ],
)
def test_views_are_copied(view) -> None:
    x = sample()
    assert torch.equal(view(x.to("minimal")).cpu(), view(x))


def test_writing_to_a_view_changes_its_base() -> None:
    x, y = sample(), sample().to("minimal")
    for each in (x, y):
        each[:, 1] = 7
        each.t()[2] += 1
        each.unfold(0, 2, 1)[0].fill_(3)
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_copies_convert_the_dtype(target: torch.dtype) -> None:
    x = sample(torch.float32)
    y = torch.zeros(3, 4, dtype=target, device="minimal")
    y.copy_(x)
    assert torch.equal(y.cpu(), x.to(target))


def test_conjugated_and_negated_tensors_are_copied_by_value() -> None:
    x = sample(torch.complex64)
    y = x.to("minimal")
    assert torch.equal(y.conj().cpu(), x.conj())
    assert torch.equal(y.conj().imag.cpu(), x.conj().imag)
    assert torch.equal(y.conj().resolve_conj().cpu(), x.conj().resolve_conj())


def test_threads_write_columns_without_loss() -> None:
    x = torch.zeros(2000, 4, device="minimal")

    def write(column: torch.Tensor) -> None:
        for value in range(1, 101):
            column.copy_(torch.full((2000,), float(value)))

    threads = [threading.Thread(target=write, args=(x[:, i],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.eq(100).all()


def test_copy_to_overlapping_memory_is_an_error() -> None:
    x = torch.arange(4.0, device="minimal")
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(3).copy_(torch.ones(3))
    with pytest.raises(RuntimeError, match="some elements of the input"):
        x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 1, 2, 3]


def test_expanded_tensor_is_filled() -> None:
    x = torch.zeros(2, 1, device="minimal")
    x.expand(2, 3).fill_(1)
    assert x.tolist() == [[1], [1]]


def test_copy_between_devices_keeps_the_values() -> None:
    x = sample()
    assert torch.equal(x.to("minimal:0").to("minimal:1").cpu(), x)
    y = torch.zeros(4, 3, device="minimal:1").t()
    y.copy_(x.to("minimal:0"))
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize("alpha", [1, -0.5])
def test_add_of_float32_runs_on_the_device(alpha: float) -> None:
    x = sample()
    y = x.to("minimal")
    assert torch.equal(y.add(y, alpha=alpha).cpu(), x.add(x, alpha=alpha))


@pytest.mark.parametrize("other", [2, 2.5, torch.ones(4), torch.ones(3, 1)])
def test_add_broadcasts(other: float | torch.Tensor) -> None:
    x = sample()
    moved = other.to("minimal") if isinstance(other, torch.Tensor) else other
    assert torch.equal((x.to("minimal") + moved).cpu(), x + other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_add_and_abs_of_any_dtype(dtype: torch.dtype) -> None:
    x = sample(dtype)
    y = x.to("minimal")
    assert torch.equal((y + y).cpu(), x + x)
    if dtype != torch.bool:
        torch.testing.assert_close(y.abs().cpu(), x.abs())


def test_add_writes_to_out_and_in_place() -> None:
    x, y = sample(), sample().to("minimal")
    out = torch.empty(0, device="minimal")
    torch.add(y, y, out=out)
    y += 1
    assert torch.equal(out.cpu(), x + x)
    assert torch.equal(y.cpu(), x + 1)


@pytest.mark.parametrize("other", ["cpu", "minimal:1"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y,
        lambda x, y: x @ y,
        lambda x, y: y @ x,
        lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.where(x > 1, x, y),
        lambda x, y: torch.nn.functional.linear(x, y),
        lambda x, y: torch.nn.functional.embedding(y.long(), x),
        lambda x, y: torch.nn.functional.conv1d(x[None], y[:, :, None]),
        lambda x, y: torch.nn.functional.batch_norm(x, y[0], y[1]),
        lambda x, y: x.index_put_((torch.tensor([0, 1]),), y),
    ],
)
def test_devices_are_not_mixed_in_an_operator(function, other: str) -> None:
    with pytest.raises(RuntimeError, match="same device"):
        function(torch.ones(2, 2, device="minimal"), torch.ones(2, 2, device=other))


def test_numbers_indices_and_lengths_may_be_on_the_host() -> None:
    x = torch.arange(6.0, device="minimal").view(2, 3)
    index = torch.tensor([1, 0])
    assert torch.equal((x * torch.tensor(2.0)).cpu(), x.cpu() * 2)
    assert torch.equal(x[index].cpu(), x.cpu()[index])
    x[index] = x.clone()
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        x.unsqueeze(2), torch.tensor([3, 1]), batch_first=True
    )
    assert packed.data.flatten().tolist() == [3, 0, 4, 5]


def test_fallback_runs_other_operators() -> None:
    x, y = sample(), sample().to("minimal")
    for function in (torch.sort, torch.linalg.svd, lambda t: t.softmax(1)):
        torch.testing.assert_close(
            [each.cpu() for each in torch.utils._pytree.tree_leaves(function(y))],
            list(torch.utils._pytree.tree_leaves(function(x))),
        )


def test_custom_operator_has_a_derivative_and_a_fake_kernel() -> None:
    x = sample().to("minimal").requires_grad_()
    torch.ops.minimal.square(x).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach())
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(torch.ops.minimal.square.default, (x,), test_utils=checks)


def test_derivatives_match_the_cpu() -> None:
    grads = []
    for device in ("cpu", "minimal"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten()
        ).to(device)
        x = torch.arange(50.0, device=device).view(2, 1, 5, 5).requires_grad_()
        model(x).square().mean().backward()
        grads.append([x.grad.cpu(), *(p.grad.cpu() for p in model.parameters())])
    torch.testing.assert_close(grads[0], grads[1])


@pytest.mark.parametrize("track", [True, False])
def test_batch_norm_updates_its_running_statistics(track: bool) -> None:
    x = sample()
    on_cpu = torch.nn.BatchNorm1d(4, track_running_stats=track)
    on_device = copy.deepcopy(on_cpu).to("minimal")
    torch.testing.assert_close(on_device(x.to("minimal")).cpu(), on_cpu(x))
    torch.testing.assert_close(on_device.cpu().state_dict(), on_cpu.state_dict())


@pytest.mark.parametrize("name", ["LSTM", "GRU", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_and_their_derivatives(name: str, bias: bool) -> None:
    torch.manual_seed(0)
    on_cpu = getattr(torch.nn, name)(4, 3, bias=bias)
    on_device = copy.deepcopy(on_cpu).to("minimal")
    grads = []
    for model in (on_cpu, on_device):
        device = next(model.parameters()).device
        x = sample().view(3, 4).to(device).requires_grad_()
        made = torch.utils._pytree.tree_leaves(model(x))
        sum(each.square().sum() for each in made).backward()
        with torch.inference_mode():
            made += torch.utils._pytree.tree_leaves(model(x))
        grads.append([*made, x.grad, *(p.grad for p in model.parameters())])
    torch.testing.assert_close([each.cpu() for each in grads[1]], grads[0])


def test_moved_module_keeps_its_parameters() -> None:
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    second.weight = first.weight
    model = torch.nn.Sequential(first, second)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to("minimal")
    assert second.weight is first.weight
    before = first.weight.tolist()
    model(torch.ones(1, 2, device="minimal")).sum().backward()
    optimizer.step()
    assert first.weight.tolist() != before
    assert torch.nn.LazyLinear(3).to("minimal")(torch.ones(1, 2).to("minimal")).numel()
    first.weight.data = torch.ones(2, 2)
    assert first.weight.is_cpu


def test_tensor_is_printed_saved_and_copied() -> None:
    x = torch.arange(3, device="minimal")
    assert repr(x) == "tensor([0, 1, 2], device='minimal:0')"
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.equal(torch.load(file), x)
    file.seek(0)
    assert torch.load(file, map_location="cpu").tolist() == [0, 1, 2]
    assert torch.equal(copy.deepcopy(x), x)


def test_resized_tensor_keeps_its_values() -> None:
    x = torch.arange(4, device="minimal")
    x.resize_(1000)
    assert x[:4].tolist() == [0, 1, 2, 3]


def test_resize_to_the_same_size_keeps_the_strides() -> None:
    x = torch.arange(6, device="minimal").view(2, 3).t()
    assert x.resize_(3, 2).stride() == (1, 3)
    assert x.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_seed_affects_only_the_device_generator() -> None:
    host = torch.get_rng_state()
    torch.minimal.manual_seed_all(5)
    first = torch.randn(4, device="minimal")
    second = torch.randn(4, device="minimal")
    torch.minimal.manual_seed_all(5)
    assert torch.equal(first, torch.randn(4, device="minimal"))
    assert not torch.equal(first, second)
    assert torch.equal(host, torch.get_rng_state())


def test_generator_has_a_seed_and_an_offset() -> None:
    generator = torch.Generator("minimal").manual_seed(3)
    state = generator.get_state()
    x = torch.rand(5, device="minimal", generator=generator)
    generator.set_state(state)
    assert torch.equal(x, torch.rand(5, device="minimal", generator=generator))
    assert state.numel() == 16
    assert generator.initial_seed() == 3


def test_generator_belongs_to_one_device() -> None:
    with pytest.raises(RuntimeError, match="there is no device 9"):
        torch.Generator("minimal:9")
    with pytest.raises(RuntimeError, match="is on minimal:0, but the tensor"):
        torch.rand(3, generator=torch.Generator("minimal"))


def test_device_module_seeds_the_current_device() -> None:
    torch.minimal.manual_seed_all(5)
    with torch.minimal.device(1):
        torch.minimal.manual_seed(7)
        assert torch.minimal.initial_seed() == 7
    assert torch.minimal.initial_seed() == 5


def test_dropout_follows_the_seed_and_fork_rng_restores_it() -> None:
    x = torch.ones(1000, device="minimal")
    torch.manual_seed(1)
    y = torch.nn.functional.dropout(x, 0.25)
    with torch.random.fork_rng(devices=[0], device_type="minimal"):
        torch.manual_seed(1)
        assert torch.equal(y, torch.nn.functional.dropout(x, 0.25))
    assert 650 < y.count_nonzero() < 850
    assert y.max() == 1 / 0.75


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_autocast_computes_in_the_lower_dtype(dtype: torch.dtype) -> None:
    x = torch.ones(4, 4, device="minimal")
    with torch.autocast("minimal", dtype=dtype):
        assert (x @ x).dtype == dtype
        assert torch.nn.functional.softmax(x @ x, 1).dtype == torch.float32
        assert (x + x).dtype == torch.float32


def test_autocast_rejects_the_loss_that_overflows() -> None:
    x = torch.ones(2, device="minimal")
    with (
        torch.autocast("minimal", dtype=torch.float16),
        pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"),
    ):
        torch.nn.functional.binary_cross_entropy(x, x)


def test_scaler_skips_a_step_that_overflows() -> None:
    weight = torch.nn.Parameter(torch.ones(2, device="minimal"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("minimal", init_scale=4.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1]
    assert scaler.get_scale() == 2
