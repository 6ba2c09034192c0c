# SPDX-License-Identifier: BSD-3-Clause
"""torch.accelerator.Graph: captures, replays, and refused calls."""

from __future__ import annotations

import copy
import gc
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from openreg_runtime import Device, failures
from support.latches import Latches
from support.programs import Program

Output = Callable[..., str]
Step = Callable[[], Tensor]

pytestmark = [
    # CUDA's recipe also replays first on another stream than the warm-up's.
    pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream"),
    pytest.mark.differs_in_process("graphs"),
]


@pytest.fixture
def side() -> Iterator[torch.Stream]:
    """Yields a stream that waits for the current one, which waits for it at the end."""
    stream = torch.Stream(device="openreg")
    stream.wait_stream(torch.accelerator.current_stream())
    yield stream
    torch.accelerator.synchronize()


def captured(stream: torch.Stream, step: Callable[[], Any]) -> tuple[Any, Any]:
    """Returns a graph of a step, and the results of the captured step."""
    graph = torch.accelerator.Graph()
    with stream, graph:
        result = step()
    return graph, result


def test_capture_runs_nothing_and_each_replay_computes_again(
    side: torch.Stream,
) -> None:
    x = torch.arange(4.0, device="openreg")
    total = torch.zeros(4, device="openreg")

    def step() -> Tensor:
        total.add_(x * 2)
        return total.sum()

    graph, result = captured(side, step)
    assert total.tolist() == [0, 0, 0, 0]
    graph.replay()
    graph.replay()
    assert total.tolist() == [0, 4, 8, 12]
    x.fill_(1)
    graph.replay()
    assert total.tolist() == [2, 6, 10, 14]
    assert result.item() == 32


def models() -> dict[str, Callable[[], tuple[nn.Module, Tensor, Tensor]]]:
    def images() -> tuple[nn.Module, Tensor, Tensor]:
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
        )
        head = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(4 * 9, 3))
        return (
            nn.Sequential(model, head),
            torch.randn(2, 3, 8, 8),
            torch.tensor([0, 2]),
        )

    def sequences() -> tuple[nn.Module, Tensor, Tensor]:
        class Classifier(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
                self.memory = nn.LSTM(8, 6, batch_first=True)
                self.head = nn.Linear(6, 3)

            def forward(self, x: Tensor) -> Tensor:
                return self.head(self.memory(self.layer(x))[0][:, -1])

        return Classifier(), torch.randn(2, 5, 8), torch.tensor([1, 2])

    def perceptron() -> tuple[nn.Module, Tensor, Tensor]:
        model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3))
        return model, torch.randn(4, 8), torch.tensor([0, 1, 2, 1])

    return {"images": images, "sequences": sequences, "perceptron": perceptron}


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, capturable=True),
    "fused adam": lambda p: torch.optim.Adam(p, capturable=True, fused=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", models())
def test_training_step_has_the_bits_of_eager_steps_on_new_inputs(
    model: str, optimizer: str, side: torch.Stream
) -> None:
    torch.manual_seed(0)
    module, example, target = models()[model]()
    module, x, y = module.to("openreg"), example.to("openreg"), target.to("openreg")
    chosen = OPTIMIZERS[optimizer](module.parameters())

    def step() -> Tensor:
        chosen.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        chosen.step()
        return loss

    with side:  # the recipe of PyTorch's documentation: first a warm-up
        for _ in range(2):
            step()
    torch.accelerator.synchronize()
    before = copy.deepcopy((module.state_dict(), chosen.state_dict()))
    inputs = [torch.randn_like(example) for _ in range(3)]

    def train(run: Step) -> list[Tensor]:
        torch.manual_seed(1)
        losses = []
        for each in inputs:
            x.copy_(each)
            losses.append(run().clone())
        return [*(t.cpu() for t in losses), *(p.detach().cpu() for p in state())]

    def state() -> list[Tensor]:
        return [*module.parameters(), *module.buffers()]

    graph, loss = captured(side, step)

    def replay() -> Tensor:
        graph.replay()
        return loss.detach()

    replayed = train(replay)
    module.load_state_dict(before[0])
    chosen.load_state_dict(before[1])
    eager = train(lambda: step().detach())
    assert all(map(torch.equal, replayed, eager))


def test_inference_on_static_inputs_has_the_bits_of_the_cpu(
    side: torch.Stream,
) -> None:
    torch.manual_seed(0)
    module, example, _ = models()["sequences"]()
    reference = copy.deepcopy(module).eval()
    module.to("openreg").eval()
    x = example.to("openreg")
    with torch.no_grad():
        graph, out = captured(side, lambda: module(x))
        for _ in range(3):
            new = torch.randn_like(example)
            x.copy_(new)
            graph.replay()
            assert torch.equal(out.cpu(), reference(new))


def test_part_of_a_network_is_replayed_between_eager_parts(side: torch.Stream) -> None:
    middle = nn.Linear(4, 4, device="openreg")
    x = torch.zeros(2, 4, device="openreg")
    with torch.no_grad():
        graph, out = captured(side, lambda: middle(x).relu())
        data = torch.randn(2, 4, device="openreg")
        x.copy_(data * 2)
        graph.replay()
        assert torch.equal((out + 1).cpu(), (middle(data * 2).relu() + 1).cpu())


def test_autocast_is_captured(side: torch.Stream) -> None:
    module = nn.Linear(8, 8, device="openreg")
    x = torch.randn(4, 8, device="openreg")

    def step() -> Tensor:
        module.zero_grad(set_to_none=True)
        with torch.autocast("openreg", torch.bfloat16, cache_enabled=False):
            loss = module(x).float().square().sum()
        loss.backward()
        return loss

    graph, loss = captured(side, step)
    graph.replay()
    replayed = [loss.detach().cpu(), module.weight.grad.cpu().clone()]
    eager = [step().detach().cpu(), module.weight.grad.cpu()]
    assert all(map(torch.equal, replayed, eager))


def test_random_numbers_go_on_at_each_replay_as_without_a_graph(
    side: torch.Stream,
) -> None:
    torch.manual_seed(3)
    before = torch.openreg.get_rng_state()

    def step() -> Tensor:
        return torch.stack(
            [torch.rand(5, device="openreg"), torch.randn(5, device="openreg")]
        )

    graph, numbers = captured(side, step)
    assert torch.equal(torch.openreg.get_rng_state(), before)
    replayed = []
    for _ in range(2):
        graph.replay()
        replayed.append(numbers.cpu().clone())
    after = torch.openreg.get_rng_state()
    torch.manual_seed(3)
    assert all(torch.equal(each, step().cpu()) for each in replayed)
    assert torch.equal(torch.openreg.get_rng_state(), after)
    torch.manual_seed(3)
    graph.replay()
    assert torch.equal(numbers.cpu(), replayed[0])


def test_generator_of_the_program_advances_at_each_replay(side: torch.Stream) -> None:
    generator = torch.Generator("openreg").manual_seed(7)

    def step() -> Tensor:
        return torch.rand(3, device="openreg", generator=generator)

    graph, numbers = captured(side, step)
    graph.replay()
    first = numbers.cpu().clone()
    graph.replay()
    second = numbers.cpu().clone()
    generator.manual_seed(7)
    assert torch.equal(first, step().cpu())
    assert torch.equal(second, step().cpu())


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.openreg.seed(),
        lambda: torch.openreg.get_rng_state(),
        lambda: torch.openreg.set_rng_state(torch.zeros(16, dtype=torch.uint8)),
    ],
)
def test_state_of_a_generator_is_refused_in_a_capture(
    call: Callable[[], object], side: torch.Stream
) -> None:
    graph = torch.accelerator.Graph()
    with side:
        graph.capture_begin()
        torch.ones(1, device="openreg")
        with pytest.raises(RuntimeError, match="during graph capture"):
            call()
        graph.capture_end()


def test_a_capture_may_set_the_seed_that_the_generator_has(side: torch.Stream) -> None:
    torch.openreg.manual_seed(5)
    expected = torch.rand(8, device="openreg").cpu()

    def step() -> Tensor:
        torch.openreg.manual_seed(5)
        return torch.rand(8, device="openreg")

    torch.openreg.manual_seed(5)
    graph = torch.accelerator.Graph()
    with side:
        graph.capture_begin()
        numbers = step()
        with pytest.raises(
            RuntimeError, match="only if new seed is the same"
        ) as caught:
            torch.openreg.manual_seed(6)
        graph.capture_end()
    assert "but 6 is not 5" in str(caught.value)
    graph.replay()
    assert torch.equal(numbers.cpu(), expected)
    graph.replay()  # from the position that the first replay left
    assert not torch.equal(numbers.cpu(), expected)


REFUSED: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "item": (lambda x: x.sum().item(), "_local_scalar_dense cannot be captured"),
    "cpu": (lambda x: x.cpu(), "synchronized"),
    "print": (lambda x: repr(x), "_local_scalar_dense|masked_select|synchronized"),
    "nonzero": (lambda x: x.nonzero(), "aten::nonzero cannot be captured"),
    "mask": (lambda x: x[x > 0], "aten::index.Tensor cannot be captured"),
    "pageable": (lambda x: x.copy_(torch.ones(4)), "aten::copy_ cannot be captured"),
    "tensor": (lambda _: torch.tensor([1.0], device="openreg"), "aten::copy_ cannot"),
    "synchronize": (lambda _: torch.accelerator.synchronize(), "all of device 0"),
    "query": (lambda _: torch.accelerator.current_stream().query(), "queried"),
}


def test_results_of_other_sizes_are_captured(side: torch.Stream) -> None:
    vector, matrix = torch.rand(3, device="openreg"), torch.rand(3, 6, device="openreg")
    product = torch.ones(6, device="openreg")
    grown = torch.ones(2, device="openreg")

    def step() -> Tensor:
        torch.exp(matrix, out=grown)
        return torch.matmul(vector, matrix, out=product)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # resizing out= is deprecated
        graph, _ = captured(side, step)
    for _ in range(2):
        vector.uniform_(), matrix.uniform_()
        graph.replay()
        assert torch.equal(product.cpu(), vector.cpu() @ matrix.cpu())
        assert torch.equal(grown.cpu(), matrix.cpu().exp())


@pytest.mark.parametrize("case", REFUSED)
def test_waiting_calls_are_refused_with_the_messages_of_cuda(
    case: str, side: torch.Stream
) -> None:
    call, words = REFUSED[case]
    x = torch.ones(4, device="openreg")
    graph = torch.accelerator.Graph()
    with (
        pytest.raises(torch.AcceleratorError, match="due to a previous err") as raised,
        side,
        graph,
    ):
        call(x)
    first = raised.value.__context__
    assert isinstance(first, torch.AcceleratorError)
    assert "operation not permitted when stream is capturing" in str(first)
    assert re.search(words, str(first))
    assert not side.is_capturing()
    graph.reset()
    with side, graph:
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 2, 2, 2]


def test_default_stream_is_not_captured() -> None:
    graph = torch.accelerator.Graph()
    with pytest.raises(RuntimeError, match="captured on a non-default stream"):
        graph.capture_begin()


def test_calls_without_a_capture_say_so(side: torch.Stream) -> None:
    graph, _ = captured(side, lambda: torch.ones(1, device="openreg"))
    graph.reset()
    for each in (graph, torch.accelerator.Graph()):
        for call in ("replay", "pool", "instantiate"):
            with pytest.raises(RuntimeError, match=f"{call} without a preceding succ"):
                getattr(each, call)()
        with pytest.raises(RuntimeError, match=r"called before capture_begin\(\)"):
            each.capture_end()


def test_second_capture_needs_a_reset(side: torch.Stream) -> None:
    x = torch.zeros(1, device="openreg")
    graph, _ = captured(side, lambda: x.add_(1))
    with side, pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
    graph.reset()
    with side, graph:
        x.add_(10)
    graph.replay()
    assert x.item() == 10


def test_capture_ends_on_the_stream_where_it_began(side: torch.Stream) -> None:
    graph = torch.accelerator.Graph()
    with side:
        graph.capture_begin()
        torch.ones(1, device="openreg")
    with pytest.raises(RuntimeError, match="must end on the same stream"):
        graph.capture_end()
    with side:
        graph.capture_end()


def test_exception_of_the_program_ends_the_capture(side: torch.Stream) -> None:
    x = torch.zeros(1, device="openreg")
    graph = torch.accelerator.Graph()
    with pytest.raises(ZeroDivisionError), side, graph:
        _ = x.add_(1) / (1 // 0)
    assert not side.is_capturing()
    graph.replay()
    assert x.item() == 1


def test_empty_graph_warns(side: torch.Stream) -> None:
    graph = torch.accelerator.Graph()
    with pytest.warns(UserWarning, match="The OpenReg Graph is empty"), side, graph:
        pass


def test_stream_reports_that_it_is_captured(side: torch.Stream) -> None:
    assert not torch.openreg.is_current_stream_capturing()
    with side, torch.accelerator.Graph():
        assert side.is_capturing()
        assert torch.openreg.is_current_stream_capturing()
        torch.ones(1, device="openreg")
    assert not side.is_capturing()


def test_streams_fork_and_join_in_a_capture(side: torch.Stream) -> None:
    a = torch.randn(40, 40, device="openreg")
    other = torch.Stream(device="openreg")

    def step() -> Tensor:
        b = a @ a
        other.wait_stream(side)
        with other:
            c = b + 1
            c.record_stream(side)
        d = b * 2
        side.wait_stream(other)
        return c + d

    graph, out = captured(side, step)
    a.copy_(torch.randn(40, 40))
    graph.replay()
    assert torch.equal(out.cpu(), ((a @ a + 1) + (a @ a) * 2).cpu())


def test_stream_that_is_not_joined_is_an_error(side: torch.Stream) -> None:
    other = torch.Stream(device="openreg")
    graph = torch.accelerator.Graph()

    def step() -> None:
        other.wait_stream(side)
        with other:
            torch.ones(1, device="openreg")

    with pytest.raises(torch.AcceleratorError, match="has unjoined work"), side, graph:
        step()


def test_copy_between_devices_is_captured_where_their_streams_are_joined(
    side: torch.Stream,
) -> None:
    x = torch.zeros(3, device="openreg:0")
    there = torch.zeros(3, device="openreg:1")
    torch.accelerator.synchronize(1)  # the graph does not wait for the zeros
    other = torch.Stream(device="openreg:1")

    def step() -> None:
        other.wait_stream(side)
        with other:
            there.copy_(x)
            there.mul_(2)
        side.wait_stream(other)

    graph, _ = captured(side, step)
    x.fill_(4)
    graph.replay()
    torch.accelerator.synchronize()
    assert there.tolist() == [8, 8, 8]


def test_captures_of_two_devices_in_two_threads() -> None:
    results: dict[int, float] = {}

    def work(index: int) -> None:
        torch.accelerator.set_device_index(index)
        x = torch.ones(100, device=f"openreg:{index}")
        graph = torch.accelerator.Graph(capture_error_mode="thread_local")
        with torch.Stream(device=f"openreg:{index}"):
            graph.capture_begin()
            x.add_(index + 1)
            y = x * 2
            graph.capture_end()
        for _ in range(3):
            graph.replay()
        results[index] = y.sum().item()

    threads = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: 800, 1: 1400}


def test_pinned_memory_is_copied_at_each_replay_and_kept(side: torch.Stream) -> None:
    given, result = (torch.zeros(4).pin_memory() for _ in range(2))
    x = torch.zeros(4, device="openreg")

    def step(given: Tensor) -> None:
        x.copy_(given, non_blocking=True)
        x.add_(1)
        result.copy_(x, non_blocking=True)

    graph, _ = captured(side, partial(step, given))
    given.fill_(5)
    address = given.data_ptr()
    del given
    gc.collect()
    others = [torch.ones(4).pin_memory() for _ in range(4)]
    assert address not in [each.data_ptr() for each in others]
    graph.replay()
    torch.accelerator.synchronize()
    assert result.tolist() == [6, 6, 6, 6]


def test_blocks_that_are_freed_in_a_capture_are_used_again_there(
    side: torch.Stream,
) -> None:
    x = torch.randn(1000, device="openreg")
    addresses = set()

    def step() -> Tensor:
        for _ in range(10):
            twice = x * 2
            addresses.add(twice.data_ptr())
            out = twice + 1
            del twice
        return out

    graph, out = captured(side, step)
    assert len(addresses) == 1
    outside = [torch.empty(1000, device="openreg").data_ptr() for _ in range(5)]
    with side:
        outside += [torch.empty(1000, device="openreg").data_ptr() for _ in range(5)]
    assert not addresses.intersection(outside)
    graph.replay()
    assert torch.equal(out.cpu(), (x * 2 + 1).cpu())


def test_memory_of_a_graph_is_kept_until_its_reset(side: torch.Stream) -> None:
    x = torch.randn(1 << 20, device="openreg")
    torch.accelerator.empty_cache()
    before = torch.accelerator.memory_reserved()

    def step() -> Tensor:
        return (x * 2 + 1) * 2

    graph, out = captured(side, step)
    held = torch.accelerator.memory_reserved()
    assert held > before
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() == held
    graph.replay()
    assert torch.equal(out.cpu(), step().cpu())
    graph.reset()
    del out
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() == before


def test_memory_of_a_graph_is_kept_for_a_running_replay(side: torch.Stream) -> None:
    x = torch.ones(1 << 20, device="openreg")

    def step() -> Tensor:
        torch.openreg._sleep(200_000_000)
        return (x * 2 + 1) * 2

    graph, out = captured(side, step)
    graph.replay()
    del graph, out
    torch.accelerator.empty_cache()
    with torch.Stream("openreg"):
        zeros = [torch.zeros(1 << 20, device="openreg") for _ in range(4)]
    torch.accelerator.synchronize()
    assert not any(each.any().item() for each in zeros)


def test_result_that_outlives_its_graph_is_kept_for_queued_work(
    side: torch.Stream,
) -> None:
    x = torch.full((1 << 20,), 5.0, device="openreg")
    graph, y = captured(side, lambda: x * 3)
    graph.replay()
    torch.accelerator.synchronize()
    del graph
    torch.openreg._sleep(200_000_000)
    out = y + 0
    del y
    torch.accelerator.empty_cache()
    with torch.Stream("openreg"):
        others = [torch.full((1 << 20,), 77.0, device="openreg") for _ in range(4)]
    torch.accelerator.synchronize()
    assert out.unique().tolist() == [15]
    assert len(others) == 4


def test_two_graphs_share_a_pool(side: torch.Stream) -> None:
    x = torch.randn(1 << 18, device="openreg")
    first, y = captured(side, lambda: x * 2 + 1)
    second = torch.accelerator.Graph(pool=first.pool())
    reserved = torch.accelerator.memory_reserved()
    with side, second:
        z = y * 2
    assert second.pool() == first.pool()
    assert torch.accelerator.memory_reserved() == reserved
    first.reset()
    second.replay()
    assert z.shape == x.shape
    torch.accelerator.empty_cache()
    again = torch.accelerator.Graph(pool=second.pool())
    with side, again:
        w = z + 1
    again.replay()
    assert torch.equal(w.cpu(), z.cpu() + 1)


def test_failure_of_a_kernel_keeps_its_message_and_the_graph_still_works(
    side: torch.Stream,
) -> None:
    # No other test uses these sizes: a call that failed once is not predicted.
    weight = torch.randn(41, 3, device="openreg")
    index = torch.tensor([0, 1], device="openreg")
    graph, out = captured(side, lambda: nn.functional.embedding(index, weight))
    graph.replay()
    torch.accelerator.synchronize()
    index.fill_(99)
    graph.replay()
    with pytest.raises(RuntimeError, match="aten::embedding: index out of range"):
        torch.accelerator.synchronize()
    index.fill_(2)
    graph.replay()
    assert torch.equal(out.cpu(), weight.cpu()[[2, 2]])


def test_drawing_replay_on_a_full_stream_fails_and_the_graph_still_works(
    side: torch.Stream, latch: Latches
) -> None:
    graph, drawn = captured(side, lambda: torch.rand(4, device="openreg"))
    stream = Device(0).default_stream
    held = latch(stream)
    for _ in range(16384 - 1):  # leaves room for one command
        stream.launch(int)
    with (
        failures.wait_timeout(0.02),
        pytest.raises(torch.AcceleratorError, match="the most that a stream can hold"),
    ):
        graph.replay()
    held.release()
    torch.accelerator.synchronize()
    torch.manual_seed(3)
    expected = [torch.rand(4, device="openreg").cpu() for _ in range(2)]
    torch.manual_seed(3)
    for each in expected:
        graph.replay()
        assert torch.equal(drawn.cpu(), each)


def test_graph_is_kept_and_written_to_a_file(
    side: torch.Stream, tmp_path: Path
) -> None:
    x = torch.zeros(2, device="openreg")
    graph = torch.accelerator.Graph(keep_graph=True)
    with side, graph:
        x.add_(1).mul_(2)
    graph.instantiate()
    graph.debug_dump(str(tmp_path / "graph.dot"))
    graph.replay()
    assert (tmp_path / "graph.dot").read_text().count(", device 0") == 2
    assert x.tolist() == [2, 2]
    other, _ = captured(side, lambda: x.add_(1))
    with pytest.warns(UserWarning, match="debug not enabled"):
        other.debug_dump(str(tmp_path / "other.dot"))
    assert not (tmp_path / "other.dot").exists()
    other.enable_debug_mode()
    other.debug_dump(str(tmp_path / "other.dot"))
    assert (tmp_path / "other.dot").exists()


def test_replay_after_a_fork_is_the_parents(output: Output) -> None:
    source = """
    import os, torch
    x = torch.zeros(2, device="openreg")
    graph = torch.accelerator.Graph()
    with torch.Stream(device="openreg"), graph:
        x.add_(1)
    child = os.fork()
    if child == 0:
        try:
            graph.replay()
        except RuntimeError as error:
            print("forked subprocess" in str(error), flush=True)
        del graph
        os._exit(0)
    os.waitpid(child, 0)
    graph.replay()
    print(x.tolist())
    """
    assert output(source) == "True\n[1.0, 1.0]"


@pytest.mark.parametrize("end", ["graph.capture_end(); graph.replay()", "pass"])
def test_program_ends_with_a_graph_and_in_a_capture(
    end: str, fresh_interpreter: Program
) -> None:
    source = f"""
    import torch
    x = torch.zeros(2, device="openreg")
    stream = torch.Stream(device="openreg")
    torch.accelerator.set_stream(stream)
    graph = torch.accelerator.Graph()
    graph.capture_begin()
    x.add_(1)
    {end}
    """
    ended = fresh_interpreter(source)
    assert ended.returncode == 0, ended.stderr
    assert "error" not in ended.stderr.lower()
