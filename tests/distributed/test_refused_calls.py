# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are refused immediately and do not change the group."""

from __future__ import annotations

import datetime

import pytest
import torch
import torch.distributed as dist

from support.ranks import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"


def exchange(rank: int, received: torch.Tensor) -> None:
    """Returns the other rank of two."""
    sent = torch.full((2,), float(rank), device=DEVICE)
    operations = [
        dist.P2POp(dist.isend, sent, 1 - rank),
        dist.P2POp(dist.irecv, received, 1 - rank),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def batches(rank: int) -> None:
    expanded = torch.zeros(1, device=DEVICE).expand(2)
    received = torch.zeros(2, device=DEVICE)
    with pytest.raises(RuntimeError, match="more than one element"):
        exchange(rank, expanded)
    exchange(rank, received)
    assert received.tolist() == [1.0 - rank] * 2
    with pytest.raises(RuntimeError, match="more than one element"):
        exchange(rank, expanded)
    if rank == 0:
        dist.send(torch.ones(2, device=DEVICE), 1)
    else:
        dist.recv(received, 0)
        assert received.tolist() == [1.0, 1.0]
    manager = dist._coalescing_manager(device=torch.device(DEVICE))
    with pytest.raises(ZeroDivisionError), manager:
        raise ZeroDivisionError
    dist.distributed_c10d._world.pg_coalesce_state.clear()  # PyTorch keeps it
    exchange(rank, received)
    assert received.tolist() == [1.0 - rank] * 2


def sparse(rank: int) -> None:
    for tensor in (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()):
        given = tensor.to(DEVICE)
        with pytest.raises(NotImplementedError, match="'c10d::allreduce_' on device"):
            dist.all_reduce(given)
        assert torch.equal(given.to_dense().cpu(), torch.eye(2))


def outside(rank: int) -> None:
    tensor, parts = torch.ones(2, device=DEVICE), torch.ones(4, device=DEVICE)
    for call in (
        lambda: dist.all_reduce(tensor),
        lambda: dist.broadcast(tensor, 0),
        lambda: dist.all_gather_into_tensor(parts, tensor),
        lambda: dist.reduce_scatter_tensor(tensor, parts),
    ):
        tensor.untyped_storage().resize_(0)
        with pytest.raises(RuntimeError, match="needs 8 bytes of its storage"):
            call()
        tensor.untyped_storage().resize_(8)
        tensor.fill_(1)
        call()
    dist.all_reduce(tensor.fill_(1))
    assert tensor.tolist() == [2.0, 2.0]


def captured(rank: int) -> None:
    tensor = torch.ones(2, device=DEVICE)
    graph = torch.accelerator.Graph()
    words = "occl: all_reduce cannot be captured in a graph"
    stream = torch.Stream(DEVICE)
    with stream, pytest.raises(NotImplementedError, match=words), graph:
        dist.all_reduce(tensor)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0, 2.0]


def another_device(rank: int) -> None:
    dist.init_process_group(device_id=torch.device(DEVICE, 0))
    words = "not on device passed to init_process_group: it is on openreg:1"
    with pytest.raises(dist.DistBackendError, match=words):
        dist.all_reduce(torch.ones(2, device="openreg:1"))
    tensor = torch.ones(2, device="openreg:0")
    dist.all_reduce(tensor)
    assert tensor.tolist() == [2.0, 2.0]
    dist.destroy_process_group()


def different_reductions(rank: int) -> None:
    limit = datetime.timedelta(seconds=30)
    float_sum = "rank 0 ALLREDUCE of 8 bytes, the sum of Float"
    for dtype, operation, words in (
        (torch.int32, dist.ReduceOp.SUM, "the sum of Int"),
        (torch.float32, dist.ReduceOp.MAX, "the max of Float"),
    ):
        group = dist.new_group()
        tensor = torch.ones(2, device=DEVICE, dtype=dtype if rank else torch.float32)
        given = operation if rank else dist.ReduceOp.SUM
        work = dist.all_reduce(tensor, given, group, async_op=True)
        wanted = f"{float_sum}.* 8 bytes, {words}|8 bytes, {words}.*{float_sum[2:]}"
        with pytest.raises(dist.DistBackendError, match=f"{wanted}|has failed"):
            work.wait(limit)
    work = dist.reduce(torch.ones(2, device=DEVICE), rank, async_op=True)
    with pytest.raises(dist.DistBackendError, match=r"with root \d.*with root|failed"):
        work.wait(limit)


def failed(rank: int) -> None:
    """A stream that waits for a collective reports its failure in a few lines."""
    tensor = torch.ones(2 + rank, device=DEVICE)
    ready = torch.zeros(1)
    if rank == 1:
        dist.recv(ready, 0)  # before it fails, the other rank has called wait()
        work = dist.all_reduce(tensor, async_op=True)
        with pytest.raises(dist.DistBackendError):
            work.wait(datetime.timedelta(seconds=30))
        return
    dist.all_reduce(tensor)
    dist.send(ready, 1)
    with pytest.raises(torch.AcceleratorError) as error:
        tensor.cpu()
    assert "all_reduce number 1 of group" in str(error.value)
    assert "frame #" not in str(error.value)


def test_a_refused_call_ends_its_batch():
    run_ranks(batches, 2)


def test_sparse_tensors_are_refused():
    run_ranks(sparse, 1)


def test_a_bound_group_takes_tensors_of_its_device_only():
    run_ranks(another_device, 2, backend=None)


def test_ranks_that_reduce_differently_are_told():
    run_ranks(different_reductions, 2)


def test_the_error_of_a_stream_has_no_stack_of_cpp():
    run_ranks(failed, 2)


def test_a_collective_cannot_be_captured_and_the_group_still_works():
    run_ranks(captured, 2)


def test_a_tensor_outside_its_storage_is_refused():
    run_ranks(outside, 2)
