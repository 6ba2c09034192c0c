# SPDX-License-Identifier: BSD-3-Clause
"""Small CUDA programs give the values of the CPU."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

Program = Callable[[str], Any]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


def network(device: str) -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    return nn.Sequential(*layers).to(device)


def batches(count: int = 4) -> list[torch.Tensor]:
    return list(torch.randn(count, 6, 8, generator=torch.Generator().manual_seed(1)))


def state(module: nn.Module) -> list[torch.Tensor]:
    return [each.detach() for each in module.state_dict().values()]


def trained(
    device: str, make: Callable[[Any], torch.optim.Optimizer], **options: Any
) -> list[torch.Tensor]:
    model = network(device)
    optimizer = make(model.parameters())
    for batch in batches():
        optimizer.zero_grad(**options)
        model(batch.to(device)).square().mean().backward()
        optimizer.step()
    return state(model)


@program
def sgd(device: str) -> Any:
    return trained(device, lambda x: torch.optim.SGD(x, 0.1, momentum=0.9))


@program
def adam_foreach(device: str) -> Any:
    return trained(device, lambda x: torch.optim.Adam(x, foreach=True))


@program
def adamw_fused(device: str) -> Any:
    return trained(device, lambda x: torch.optim.AdamW(x, fused=True))


@program
def gradients_are_clipped(device: str) -> Any:
    model = network(device)
    model(batches()[0].to(device)).square().sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    return norm, [parameter.grad for parameter in model.parameters()]


@program
def scaled_gradients(device: str) -> Any:
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10)
    for batch in batches():
        optimizer.zero_grad()
        loss = model(batch.to(device)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    return state(model), scaler.get_scale()


@program
def infinite_gradients_are_not_applied(device: str) -> Any:
    model = network(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**10)
    loss = model(batches()[0].to(device)).mean() * float("inf")
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return state(model), scaler.get_scale()


@program
def autocast_in_bfloat16(device: str) -> Any:
    model = network(device)
    with torch.autocast(device, torch.bfloat16):
        result = model(batches()[0].to(device))
    assert result.dtype is torch.bfloat16
    return result.float()


@program
def data_loader(device: str) -> Any:
    data = TensorDataset(torch.arange(10.0), torch.arange(10))
    pinned = device != "cpu"
    loader = DataLoader(data, batch_size=3, pin_memory=pinned)
    results = []
    for x, y in loader:
        assert x.is_pinned() is pinned
        moved = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        results.append(moved[0] * moved[1])
    return results


@program
def convolutions(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(2, 4, 9, 9).to(device).requires_grad_()
    layers = [
        nn.Conv2d(4, 4, 3),
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Conv2d(4, 6, 3, dilation=2, stride=2),
        nn.ConvTranspose2d(4, 2, 3),
    ]
    results = [layer.to(device)(x) for layer in layers]
    sum(result.sum() for result in results).backward()
    return results, x.grad


@program
def convolutions_in_3d_and_1d(device: str) -> Any:
    torch.manual_seed(0)
    x, y = torch.randn(1, 2, 5, 5, 5).to(device), torch.randn(2, 3, 8).to(device)
    three = nn.Conv3d(2, 3, 3).to(device)(x)
    transposed = nn.ConvTranspose3d(2, 3, 2).to(device)(x)
    return three, transposed, nn.Conv1d(3, 3, 3, groups=3).to(device)(y)


@program
def norms(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(4, 6, 5, 5).to(device)
    layers = [nn.BatchNorm2d(6), nn.GroupNorm(2, 6), nn.InstanceNorm2d(6)]
    results = [layer.to(device)(x) for layer in layers]
    return results, layers[0].running_mean, F.layer_norm(x, (5, 5))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_networks(kind: type[nn.RNNBase]) -> None:
    def run(device: str) -> Any:
        torch.manual_seed(0)
        model = kind(5, 7, num_layers=2, bidirectional=True).to(device)
        x = torch.randn(3, 2, 5).to(device).requires_grad_()
        result, _ = model(x)
        result.sum().backward()
        return result, x.grad

    compare(run)


@program
def packed_sequences(device: str) -> Any:
    torch.manual_seed(0)
    model = nn.LSTM(3, 4).to(device)
    parts = [torch.randn(n, 3).to(device) for n in (4, 2)]
    packed = nn.utils.rnn.pack_sequence(parts)
    return nn.utils.rnn.pad_packed_sequence(model(packed)[0])[0]


@program
def attention(device: str) -> Any:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 6, 8).to(device).requires_grad_() for _ in range(3))
    result = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    result.sum().backward()
    return result, q.grad, k.grad, v.grad


@program
def transformer(device: str) -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True).to(device)
    x = torch.randn(2, 5, 8).to(device)
    trained = layer(x)
    layer.eval()
    with torch.no_grad():
        return trained, layer(x)


@program
def losses(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(6, 5).to(device).requires_grad_()
    target = torch.tensor([0, 1, 2, 3, 4, 0]).to(device)
    results = [F.cross_entropy(x, target), F.nll_loss(x.log_softmax(1), target)]
    results.append(F.binary_cross_entropy_with_logits(x, (x > 0).float()))
    sum(results).backward()
    return results, x.grad


@program
def ctc_loss(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(8, 2, 5).log_softmax(2).to(device).requires_grad_()
    target = torch.tensor([[1, 2, 3], [2, 2, 4]]).to(device)
    lengths = torch.tensor([8, 8]), torch.tensor([3, 3])
    loss = F.ctc_loss(x, target, *lengths)
    loss.backward()
    return loss, x.grad


@program
def embeddings(device: str) -> Any:
    torch.manual_seed(0)
    table = nn.Embedding(10, 3).to(device)
    bag = nn.EmbeddingBag(10, 3, mode="mean").to(device)
    index = torch.tensor([[1, 2], [2, 9]]).to(device)
    result = table(index)
    result.sum().backward()
    return result, table.weight.grad, bag(index)


@program
def softmax_in_half(device: str) -> Any:
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).half()
    return F.softmax(x.to(device), 1, dtype=torch.float32)


@program
def dropout(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.ones(20, requires_grad=True, device=device)
    result = F.dropout(x, 0.5)
    result.sum().backward()
    return result, x.grad


@program
def checkpointed_activations(device: str) -> Any:
    model = network(device)
    x = batches()[0].to(device).requires_grad_()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return x.grad


@program
def sparse_products(device: str) -> Any:
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to(device)
    sparse = dense.to_sparse()
    rows = dense.to_sparse_csr()
    return sparse @ dense, rows @ dense, sparse.to_dense(), (sparse * 2).coalesce()


@program
def linear_algebra(device: str) -> Any:
    torch.manual_seed(0)
    x = torch.randn(4, 4, dtype=torch.double).to(device)
    x = x @ x.mT + torch.eye(4, device=device)
    return torch.linalg.solve(x, x[:, :1]), torch.linalg.cholesky(x), x.logdet()


@program
def fourier(device: str) -> Any:
    x = torch.arange(16.0).view(2, 8).to(device)
    return torch.view_as_real(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(x))


@program
def sorting(device: str) -> Any:
    x = torch.tensor([3.0, 1.0, 2.0, 1.0]).to(device)
    return x.sort(), x.topk(2), x.unique(), x.cumsum(0), x.argmax()


@program
def indexing(device: str) -> Any:
    x = torch.arange(12.0).view(3, 4).to(device)
    x[x > 5] = 0
    x[0, 1] = 7
    x.index_add_(0, torch.tensor([0]).to(device), x[1:2].clone())
    return x, x[:, [0, 2]], x.gather(1, x.argmax(1, keepdim=True))


@program
def vectorized(device: str) -> Any:
    x = torch.arange(6.0).view(2, 3).to(device)
    jacobian = torch.func.jacrev(lambda y: (y**2).sum())(x)
    return torch.vmap(torch.dot)(x, x), jacobian


@program
def copied_and_pickled(device: str) -> Any:
    model = copy.deepcopy(network(device))
    again = pickle.loads(pickle.dumps(model))
    assert next(again.parameters()).device.type == device
    return state(model), state(again)


@program
def checkpoint_file(device: str) -> Any:
    buffer = io.BytesIO()
    torch.save(network(device).state_dict(), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, map_location="cpu")
    assert all(each.device.type == "cpu" for each in loaded.values())
    return list(loaded.values())


@program
def sides(device: str) -> Any:
    x = torch.arange(6.0).to(device)
    if device == "cpu":
        return x * 2 + 1
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
        event.record()
    event.wait()
    y.record_stream(torch.cuda.current_stream())
    return y + 1


@program
def exported(device: str) -> Any:
    x = batches()[0].to(device)
    return torch.export.export(network(device), (x,)).module()(x)


@program
def traced(device: str) -> Any:
    model = torch.jit.trace(network(device), batches()[0].to(device))
    return model(batches()[1].to(device))


def leaves(value: Any) -> list[Any]:
    flat, _ = torch.utils._pytree.tree_flatten(value)
    return [x.detach().cpu() if isinstance(x, torch.Tensor) else x for x in flat]


def compare(run: Program) -> None:
    for ours, theirs in zip(leaves(run("cuda")), leaves(run("cpu")), strict=True):
        if isinstance(ours, torch.Tensor):
            assert ours.dtype is theirs.dtype
            torch.testing.assert_close(ours, theirs)
        else:
            assert ours == theirs


@pytest.mark.filterwarnings("ignore:.*(torch.jit|lr_scheduler|Sparse CSR)")
@pytest.mark.parametrize("run", PROGRAMS, ids=lambda each: each.__name__)
def test_values_are_those_of_the_cpu(run: Program) -> None:
    compare(run)


def test_operators_that_only_cuda_has() -> None:
    x = torch.randn(4, 3, device="cuda")
    mean, inverse = torch.batch_norm_stats(x, 1e-5)
    torch.testing.assert_close(mean, x.mean(0))
    torch.testing.assert_close(inverse, (x.var(0, correction=0) + 1e-5).rsqrt())
    assert torch._softmax(x.half(), 1, True).dtype is torch.float32
    result, mask = torch.native_dropout(x, 0.5, True)
    torch.testing.assert_close(result, x * mask * 2)
    assert not torch._use_cudnn_rnn_flatten_weight()


def test_autocast_uses_the_lists_of_cuda() -> None:
    x = torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda"):
        assert (x @ x).dtype is torch.float16
        assert x.half().sum().dtype is torch.float32
        assert torch.is_autocast_enabled("cuda")


def test_parameters_stay_the_same_objects() -> None:
    model = nn.Linear(2, 2)
    weight = model.weight
    model.cuda()
    assert model.weight is weight
    assert weight.is_cuda
