# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.MemPool``, ``use_mem_pool``, and the states of pools."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

MIB = 1 << 20


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    """Fails a test that leaves memory in a pool."""
    yield
    gc.collect()
    torch.cuda.empty_cache()
    assert [s for s in torch.cuda.memory_snapshot() if any(s["segment_pool_id"])] == []


def bytes_on_device(size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.uint8, device="cuda")


def pool_of(tensor: torch.Tensor) -> Any:
    address = tensor.untyped_storage().data_ptr()
    for segment in torch.cuda.memory_snapshot():
        if 0 <= address - segment["address"] < segment["total_size"]:
            return segment["segment_pool_id"]
    return None


def test_allocations_of_the_thread_go_to_the_pool() -> None:
    pool = torch.cuda.MemPool()
    assert pool.id[0] == 0
    assert pool.id != torch.cuda.MemPool().id
    assert pool.allocator is None
    assert pool.use_count() == 1
    elsewhere: list[torch.Tensor] = []
    with torch.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        inside = bytes_on_device(MIB)
        result = inside + 1
        thread = threading.Thread(target=lambda: elsewhere.append(bytes_on_device(MIB)))
        thread.start()
        thread.join()
    assert pool.use_count() == 1
    outside = bytes_on_device(MIB)
    assert pool_of(inside) == pool_of(result) == pool.id
    assert pool_of(outside) == pool_of(elsewhere[0]) == (0, 0)
    assert result.sum().item() == 2 * MIB


def test_the_inner_one_of_two_pools_gives_the_memory() -> None:
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        before = bytes_on_device(MIB)
        with torch.cuda.use_mem_pool(inner):
            inside = bytes_on_device(MIB)
        after = bytes_on_device(MIB)
    assert pool_of(before) == pool_of(after) == outer.id
    assert pool_of(inside) == inner.id


def test_a_graph_and_a_pool_give_memory_in_the_order_of_their_nesting() -> None:
    pool, graph = torch.cuda.MemPool(), torch.cuda.CUDAGraph()
    with torch.cuda.use_mem_pool(pool):
        x = bytes_on_device(MIB)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            captured = x + 1
            with torch.cuda.use_mem_pool(pool_inside := torch.cuda.MemPool()):
                inside = captured + 1
    assert pool_of(x) == pool.id
    assert pool_of(captured) == graph.pool()
    assert pool_of(inside) == pool_inside.id
    graph.replay()
    assert inside.sum().item() == 3 * MIB
    graph.reset()


def test_a_pool_keeps_its_memory_until_it_is_deleted() -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = bytes_on_device(MIB)
        address = x.data_ptr()
        del x
        torch.cuda.empty_cache()
        y = bytes_on_device(MIB)
        assert y.data_ptr() == address
        z = bytes_on_device(2 * MIB)
    assert len(pool.snapshot()) == 2
    assert {segment["segment_pool_id"] for segment in pool.snapshot()} == {pool.id}
    del y, z, pool
    assert torch.cuda.memory_reserved() == before


def test_tensors_outlive_their_pool() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = bytes_on_device(MIB)
    del pool
    assert x.sum().item() == MIB


def test_an_active_pool_cannot_be_used_twice() -> None:
    pool = torch.cuda.MemPool()
    with (
        torch.cuda.use_mem_pool(pool),
        pytest.raises(RuntimeError, match="already recording to mempool_id"),
    ):
        torch.cuda.use_mem_pool(pool).__enter__()
    with pytest.raises(RuntimeError, match="not currently recording to mempool_id"):
        torch._C._cuda_endAllocateToPool(0, pool.id)


def test_a_pool_of_a_device_serves_that_device() -> None:
    with torch.cuda.device(1):
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            x = bytes_on_device(MIB)
            y = torch.ones(MIB, device="cuda:0")
    assert pool.device == 1
    assert pool_of(x) == pool.id
    assert pool_of(y) == (0, 0)


def test_a_pool_without_splits_gives_whole_segments() -> None:
    pool = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(pool):
        x, y = bytes_on_device(512), bytes_on_device(512)
    assert [len(segment["blocks"]) for segment in pool.snapshot()] == [1, 1]
    assert x.sum().item() == y.sum().item() == 512


@pytest.mark.parametrize("serves", [False, True])
def test_a_pool_is_the_last_resort(serves: bool) -> None:
    torch.cuda.empty_cache()
    pool = torch.cuda.MemPool(use_on_oom=serves)
    with torch.cuda.use_mem_pool(pool):
        x = bytes_on_device(40 * MIB)
    del x
    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
    try:
        if serves:
            assert pool_of(bytes_on_device(30 * MIB)) == pool.id
        else:
            with pytest.raises(torch.cuda.OutOfMemoryError):
                bytes_on_device(30 * MIB)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_an_allocator_of_cuda_memory_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="cannot allocate simulated memory"):
        torch.cuda.MemPool(object())  # type: ignore[arg-type]


def test_the_history_names_the_pool() -> None:
    pool = torch.cuda.MemPool()
    torch.cuda.memory._record_memory_history()
    try:
        with torch.cuda.use_mem_pool(pool):
            x = bytes_on_device(MIB)
        del x
        outside = bytes_on_device(MIB)
        everything = torch.cuda.memory._snapshot()["device_traces"][0]
        selected = torch._C._cuda_memorySnapshot((*pool.id, True))["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    actions = [each["action"] for each in everything if each["pool_id"] == pool.id]
    assert actions == ["segment_alloc", "alloc", "free_requested", "free_completed"]
    assert [each["action"] for each in selected] == actions
    assert any(each["pool_id"] == (0, 0) for each in everything)
    del outside


def graph_of(function: Any, pool: Any = None) -> tuple[Any, Any]:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        results = function()
    return graph, results


def blocks(pool: Any) -> list[list[tuple[int, str]]]:
    return [
        [(block["size"], block["state"]) for block in segment["blocks"]]
        for segment in torch.cuda.memory_snapshot()
        if segment["segment_pool_id"] == pool
    ]


def live(pool: Any) -> int:
    states = [state for segment in blocks(pool) for _, state in segment]
    return states.count("active_allocated")


def test_a_graph_captures_into_a_pool() -> None:
    pool = torch.cuda.MemPool()
    graph, result = graph_of(lambda: bytes_on_device(MIB) + 1, pool.id)
    assert graph.pool() == pool.id
    assert pool.use_count() == 2
    assert pool_of(result) == pool.id
    graph.replay()
    assert result.unique().tolist() == [2]
    del graph, result
    torch.cuda.empty_cache()  # waits for the replay
    assert pool.use_count() == 1


def test_a_state_is_restored() -> None:
    def some() -> torch.Tensor:
        return [bytes_on_device(512) for _ in range(11)][5]

    graph, result = graph_of(some)
    before = blocks(graph.pool())
    assert len(before[0]) == 3  # free, in use, free
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    second, other = graph_of(some, graph.pool())
    assert live(graph.pool()) == 2
    storage = other.untyped_storage()
    torch._C._cuda_setCheckpointPoolState(0, state, [storage._cdata], [])
    assert blocks(graph.pool()) == before
    assert not torch._C._has_Standard_Deleter(storage._cdata)
    # The first result was freed and allocated again, so it still owns its block.
    assert torch._C._has_Standard_Deleter(result.untyped_storage()._cdata)
    del other, storage, result
    assert live(graph.pool()) == 0
    del second


def test_a_state_gives_blocks_to_new_owners() -> None:
    graph, results = graph_of(lambda: [bytes_on_device(2 * MIB) for _ in range(2)])
    graph.replay()
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    first, second = (result.data_ptr() for result in results)
    del results
    assert live(graph.pool()) == 0
    storage = torch._C._construct_storage_from_data_pointer(
        first, torch.device("cuda", 0), 2 * MIB
    )
    torch._C._cuda_setCheckpointPoolState(0, state, [], [storage._cdata])
    assert live(graph.pool()) == 2
    assert torch._C._cuda_checkPoolLiveAllocations(0, graph.pool(), {first, second})
    assert not torch._C._cuda_checkPoolLiveAllocations(0, graph.pool(), {first})
    owner = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage)
    assert owner.sum().item() == 2 * MIB
    del owner, storage
    assert live(graph.pool()) == 1
    torch._C._cuda_cudaCachingAllocator_raw_delete(second)
    assert live(graph.pool()) == 0


def test_stale_tensors_must_be_passed() -> None:
    graph, result = graph_of(lambda: bytes_on_device(512))
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    second, other = graph_of(lambda: bytes_on_device(512), graph.pool())
    with pytest.raises(RuntimeError, match="stale tensors which are being manually"):
        torch._C._cuda_setCheckpointPoolState(0, state, [], [])
    assert live(graph.pool()) == 2
    del other, result, second


def test_the_statistics_of_a_restored_pool_add_up() -> None:
    graph, result = graph_of(lambda: bytes_on_device(512))
    before = torch.cuda.memory_stats()
    state = torch._C._cuda_getCheckpointState(0, graph.pool())
    torch._C._cuda_setCheckpointPoolState(0, state, [], [])
    after = torch.cuda.memory_stats()
    for name, value in before.items():
        if name.endswith(".current"):
            assert after[name] == value, name
    del result


def test_an_unknown_pool_has_no_state() -> None:
    unknown = (0, 123456)
    with pytest.raises(RuntimeError, match=r"Could not find pool of id \(0, 123456\)"):
        torch._C._cuda_getCheckpointState(0, unknown)
    with pytest.raises(RuntimeError, match="Could not find pool of id"):
        torch._C._cuda_checkPoolLiveAllocations(0, unknown, set())
    pool = torch.cuda.MemPool()
    torch._C._cuda_getCheckpointState(0, pool.id)
    with pytest.raises(RuntimeError, match="on device 1"):
        torch._C._cuda_getCheckpointState(1, pool.id)
