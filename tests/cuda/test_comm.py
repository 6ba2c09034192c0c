# SPDX-License-Identifier: BSD-3-Clause
"""Copies between devices: ``torch.cuda.comm``, ``nccl``, ``nn.DataParallel``."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.cuda import comm, nccl

X = torch.arange(12.0).view(6, 2)


def test_scatter_and_gather() -> None:
    chunks = comm.scatter(X, [0, 1])
    assert [chunk.device.index for chunk in chunks] == [0, 1]
    assert torch.equal(comm.gather(chunks, destination="cpu"), X)
    gathered = comm.gather(chunks, destination=1)
    assert gathered.device.index == 1
    assert torch.equal(gathered.cpu(), X)
    sizes = [len(chunk) for chunk in comm.scatter(X.cuda(), [0, 1], chunk_sizes=[1, 5])]
    assert sizes == [1, 5]
    out = [torch.empty(3, 2, device=f"cuda:{i}") for i in range(2)]
    streams = [torch.cuda.Stream(i) for i in range(2)]
    comm.scatter(X.cuda(), out=out, streams=streams)
    torch.cuda.synchronize()
    torch.cuda.synchronize(1)
    assert torch.equal(torch.cat([each.cpu() for each in out]), X)
    target = torch.empty(6, 2, device="cuda")
    assert torch.equal(comm.gather(chunks, out=target).cpu(), X)


def test_gathered_images_keep_channels_last() -> None:
    images = torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last)
    gathered = comm.gather(comm.scatter(images, [0, 1]))
    assert gathered.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(gathered.cpu(), images)


def test_broadcast_and_reduce() -> None:
    copies = comm.broadcast(X.cuda(), [0, 1])
    assert [each.device.index for each in copies] == [0, 1]
    assert torch.equal(comm.reduce_add(copies, 0).cpu(), 2 * X)
    both = comm.broadcast_coalesced([X.cuda(), X.cuda() + 1], [0, 1])
    assert torch.equal(both[1][1].cpu(), X + 1)
    sums = comm.reduce_add_coalesced(both, 0)
    assert torch.equal(sums[1].cpu(), 2 * (X + 1))
    out = [torch.empty(6, 2, device=f"cuda:{i}") for i in range(2)]
    comm.broadcast(X, out=out)
    assert torch.equal(out[1].cpu(), X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: comm.scatter(X, []), "at least one device to scatter to"),
        (lambda: comm.scatter(X, [0, 1], [6]), "to be of same length, but got 2 and 1"),
        (lambda: comm.gather([]), "at least one tensor to gather from"),
        (lambda: comm.gather([X]), "input tensor at index 0 has device 'cpu'"),
        (
            lambda: comm.gather([X.cuda(), X[0].cuda()]),
            "same number of dimensions, but input tensor at index 1",
        ),
        (
            lambda: comm.broadcast(X, out=[X.cuda(), X[:2].cuda()]),
            "same shape as the source tensor .* index 1",
        ),
        (lambda: comm.broadcast(X, out=[X]), "output tensor at index 0 has device"),
        (
            lambda: comm.scatter(X, out=[X[:2].cuda()]),
            "scatter dim 0 does not match: expected 6, but got 2",
        ),
    ],
)
def test_wrong_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()  # type: ignore[operator]


def test_collectives_of_one_process() -> None:
    inputs = [torch.full((4,), float(i + 1), device=f"cuda:{i}") for i in range(2)]
    assert nccl.is_available(inputs)
    assert nccl.version() >= (2, 0)
    outputs = [torch.empty_like(each) for each in inputs]
    nccl.all_reduce(inputs, outputs)
    assert outputs[1].tolist() == [3] * 4
    nccl.reduce(inputs, output=outputs[0], root=0, op=2)
    assert outputs[0].tolist() == [2] * 4
    gathered = [torch.empty(8, device=f"cuda:{i}") for i in range(2)]
    nccl.all_gather(inputs, gathered)
    assert gathered[1].tolist() == [1] * 4 + [2] * 4
    halves = [torch.empty(2, device=f"cuda:{i}") for i in range(2)]
    nccl.reduce_scatter(inputs, halves)
    assert halves[1].tolist() == [3, 3]
    nccl.broadcast(inputs, root=0)
    assert inputs[1].tolist() == [1] * 4


def test_data_parallel_is_like_the_cpu() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    model(X).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    outputs = model(X).detach()
    model.zero_grad()
    parallel = nn.DataParallel(model.cuda())
    result = parallel(X.cuda())
    result.sum().backward()
    assert torch.equal(result.detach().cpu(), outputs)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), gradient)
