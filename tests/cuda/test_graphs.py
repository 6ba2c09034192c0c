# SPDX-License-Identifier: BSD-3-Clause
"""``torch.cuda.CUDAGraph``, ``graph`` and ``make_graphed_callables``."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn


def test_a_replay_reads_the_new_inputs() -> None:
    x = torch.ones(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x * 2 + 1
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [11] * 8
    graph.reset()


def test_the_statistics_include_the_state_of_the_generator() -> None:
    x = torch.ones(128, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()
    with torch.cuda.graph(graph):
        y = (x + 1) * 2
    after = torch.cuda.memory_stats()
    for name, change in (("active.all", 3), ("active_bytes.all", 3 * 512)):
        assert after[f"{name}.current"] - before[f"{name}.current"] == change
    graph.reset()
    assert torch.cuda.memory_stats()["active.all.current"] == (
        before["active.all.current"] + 1
    )
    del y


def test_the_state_of_the_generator_belongs_to_the_default_stream() -> None:
    x = torch.ones(128, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()  # as a capture does
    before = torch.cuda.memory_reserved()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        x.add_(1)
    assert torch.cuda.memory_reserved() == before
    graph.replay()
    assert x.unique().tolist() == [2]
    graph.reset()


def test_graphs_share_a_pool() -> None:
    x = torch.ones(1000, device="cuda")
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    pool = torch.cuda.graph_pool_handle()
    with torch.cuda.graph(first, pool=pool):
        y = x + 1
    with torch.cuda.graph(second, pool=first.pool()):
        z = y * 2
    assert first.pool() == second.pool() == pool
    first.replay()
    second.replay()
    assert z.unique().tolist() == [4]


def test_a_capture_may_set_the_same_seed() -> None:
    torch.cuda.manual_seed(3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.manual_seed(3)
        y = torch.rand(4, device="cuda")
        with pytest.raises(
            RuntimeError, match="CUDAGeneratorImpl::set_current_seed can be called"
        ):
            torch.cuda.manual_seed(4)
    graph.replay()
    first = y.tolist()
    torch.cuda.manual_seed(3)
    assert torch.rand(4, device="cuda").tolist() == first
    graph.reset()


def test_a_graph_is_instantiated_later() -> None:
    x = torch.ones(2, device="cuda")
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        x.add_(1)
    graph.instantiate()
    graph.replay()
    assert x.tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="no cudaGraph_t"):
        graph.raw_cuda_graph()


def test_a_capture_refuses_to_wait() -> None:
    x = torch.ones(2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="captur"), torch.cuda.graph(graph):
        x.sum().item()
    # As on CUDA, the refused capture leaves its stream current.
    torch.cuda.set_stream(torch.cuda.default_stream())
    assert x.tolist() == [1, 1]


def trained(device: str, graphed: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    data = torch.randn(5, 4, 8)
    if graphed:
        sample = torch.zeros(4, 8, device=device)
        model = torch.cuda.make_graphed_callables(model, (sample,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in data:
        optimizer.zero_grad()
        model(batch.to(device)).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")
def test_graphed_callables_train_like_the_cpu() -> None:
    for ours, theirs in zip(
        trained("cuda", graphed=True), trained("cpu", graphed=False), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_a_whole_step_is_captured() -> None:
    def run(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        model = nn.Linear(4, 1).to(device)
        optimizer = torch.optim.Adam(
            model.parameters(), lr=0.1, capturable=device == "cuda"
        )
        x = torch.arange(12.0).view(3, 4).to(device)

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            model(x).square().mean().backward()
            optimizer.step()

        if device == "cpu":
            for _ in range(6):
                step()
            return model.weight.detach()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        for _ in range(3):
            graph.replay()
        return model.weight.detach().cpu()

    torch.testing.assert_close(run("cuda"), run("cpu"))
