# SPDX-License-Identifier: BSD-3-Clause
"""Operators that run later: what the host does not wait for, and what comes of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import openreg_runtime as runtime
from openreg_aten import _C

Latches = Callable[..., Any]


def paths(function: Callable[[], object]) -> Counter[str]:
    """Counts the calls of a function's operators by their path."""

    def now() -> Counter[tuple[str, str]]:
        return Counter({(name, path): n for name, path, n in _C.path_counts()})

    before = now()
    _C.count_paths(1)
    function()
    _C.count_paths(-1)
    counts: Counter[str] = Counter()
    for (_, path), count in (now() - before).items():
        counts[path] += count
    return counts


def attend(x: Tensor) -> Tensor:
    heads = x.view(2, 4, 3, 2).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


WORK: dict[str, Callable[[Tensor], Any]] = {
    "pointwise": lambda x: x + 2 * x,
    "in place": lambda x: x.clone().mul_(x).add_(1),
    "product": lambda x: x.view(8, 6) @ x.view(6, 8),
    "reduction": lambda x: (x.sum(), x.view(6, 8).mean(1), x.var()),
    "several results": lambda x: x.view(8, 6).max(1),
    "list of results": lambda x: torch._foreach_add([x, x.view(6, 8)], 1),
    "no typed kernel": lambda x: torch.native_channel_shuffle(x.view(2, 4, 6), 2),
    "convolution": lambda x: F.conv1d(x.view(2, 2, 12), x.view(4, 2, 6), padding=2),
    "attention": attend,
    "indices": lambda x: x[torch.tensor([3, 1, 1]).to(x.device)],
    "embedding": lambda x: F.embedding(torch.arange(4).to(x.device), x.view(8, 6)),
    "concatenation": lambda x: torch.cat([x, x.neg()]),
    "conversion": lambda x: x.to(torch.float64).to(torch.int32),
    "strided copy": lambda x: x.view(6, 8).t().contiguous(),
    "range": lambda x: torch.arange(0, 2.5, 0.5, device=x.device) * x[:5],
    "identity": lambda x: torch.eye(3, 16, device=x.device) * x.view(3, 16),
    "power of no factor": lambda x: torch.linalg.matrix_power(x[:4].view(2, 2), 0),
    "kth value": lambda x: x.view(6, 8).kthvalue(2),
    "linspace": lambda x: torch.linspace(0, 1, 48, device=x.device) + x,
    "out=": lambda x: torch.add(x, 1, out=torch.empty_like(x)),
    "triangle": lambda x: torch.tril(x.view(6, 8)),
    "scalar of the host": lambda x: x * torch.tensor(3.0),
}


@pytest.mark.parametrize("name", WORK)
def test_operator_is_enqueued_once_its_results_are_known(
    name: str, device: str, same: Callable[[Any, Any], None], latch: Latches
) -> None:
    work = WORK[name]
    first = torch.arange(1.0, 49.0) / 7
    work(first.to(device))  # from here on the metadata of its results is cached
    second = (first - 3).to(device)
    expected = work(first - 3)
    # Indices come from the host, whose copies wait.
    held = None if name in ("indices", "embedding") else latch()
    result: Any = None

    def run() -> None:
        nonlocal result
        result = work(second)

    counts = paths(run)
    if held is not None:
        assert set(counts) == {"enqueued"} or name == "conversion"
        assert not torch.accelerator.current_stream().query()
        held.release()
    same(result, expected)


def test_result_of_a_pointwise_operator_is_known_for_every_shape(
    device: str, latch: Latches
) -> None:
    x = torch.ones(7, 11, device=device)
    (x[0] + x[0]).exp_()  # the kernels have this dtype
    held = latch()
    y = (x + x[:1]).exp_()
    held.release()
    assert torch.equal(y.cpu(), torch.full((7, 11), 2.0).exp_())


def test_tensors_of_new_sizes_are_filled_without_waiting(
    device: str, latch: Latches
) -> None:
    torch.ones(3, device=device).zero_()
    torch.empty(3, device=device).uniform_()
    held = latch()
    x = torch.ones(5, 7, device=device)
    torch.empty(2, 2, 2, device=device).uniform_()
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert torch.equal(x.cpu(), torch.ones(5, 7))


def test_operators_run_in_the_order_of_the_program(device: str, latch: Latches) -> None:
    x = torch.zeros(4, device=device)
    for hold in (False, True):  # the first time, every kernel is new
        held = latch() if hold else None
        x.zero_()
        for i in range(1, 200):
            x.add_(i).mul_(0.5)
            y = x * 2
        if held is not None:
            held.release()
        expected = torch.zeros(4)
        for i in range(1, 200):
            expected.add_(i).mul_(0.5)
        assert torch.equal(y.cpu(), expected * 2)


def test_memory_that_the_host_frees_is_reused_in_stream_order(
    device: str, latch: Latches
) -> None:
    x = torch.ones(1000, device=device)
    total = torch.zeros(1000, device=device)
    total += (x + 1) * 0
    held = latch()
    before = torch.accelerator.memory_allocated()
    for i in range(50):
        total += (x + i) * 2  # each temporary tensor is freed before it exists
    assert torch.accelerator.memory_allocated() == before
    held.release()
    assert torch.equal(
        total.cpu(), torch.full((1000,), sum((1 + i) * 2.0 for i in range(50)))
    )


def test_number_of_the_host_is_read_by_the_call(device: str, latch: Latches) -> None:
    x = torch.ones(3, device=device)
    number = torch.tensor(2.0)
    x * number
    held = latch()
    y = x * number
    number.fill_(5)
    held.release()
    assert y.tolist() == [2, 2, 2]


def test_failure_surfaces_when_the_host_waits_and_names_the_operator(
    device: str, latch: Latches
) -> None:
    weight = torch.ones(4, 2, device=device)
    good, bad = (torch.tensor(i, device=device) for i in ([0, 3], [0, 9]))
    F.embedding(good, weight)
    held = latch()
    F.embedding(bad, weight)  # no error yet
    held.release()
    with pytest.raises(RuntimeError, match=r"aten::embedding: .*out of range"):
        torch.accelerator.synchronize()
    assert F.embedding(good, weight).tolist() == [[1, 1], [1, 1]]  # it goes on


def test_wrong_shapes_are_an_error_of_the_call(device: str, latch: Latches) -> None:
    x, y = torch.ones(3, device=device), torch.ones(4, device=device)
    x + x
    held = latch()
    with pytest.raises(RuntimeError, match="must match the size"):
        x + y
    held.release()


def test_wrong_numbers_are_an_error_of_the_call(device: str, latch: Latches) -> None:
    x = torch.ones(3, device=device).normal_(0, 1)
    held = latch()
    threading.Timer(0.05, held.release).start()
    with pytest.raises(RuntimeError, match="std >= 0"):
        x.normal_(0, -1)


I16 = torch.int16
INTEGERS = torch.arange(1, 100_001, dtype=torch.int32)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x: x.view(10, -1).prod(0), lambda x: x.view(10, -1).prod(0, dtype=I16)),
        (lambda x: torch.remainder(6, x), lambda x: torch.remainder(6.5, x)),
        (lambda x: torch.pow(7, x), lambda x: torch.pow(0.5, x)),
        (
            lambda x: torch.argmax(x.view(4, 5, -1), out=x.new_empty(0).long()),
            lambda x: torch.argmax(x.view(4, 5, -1), 2, out=x.new_empty(0).long()),
        ),
    ],
    ids=["dtype", "number", "base", "dimension"],
)
def test_calls_that_make_something_else_are_told_apart(
    first: Callable[[Tensor], Tensor],
    second: Callable[[Tensor], Tensor],
    device: str,
    same: Callable[[Any, Any], None],
) -> None:
    x = INTEGERS.to(device)
    for function in (first, second, first, second):
        same(function(x), function(INTEGERS))


def test_default_dtype_is_part_of_a_call(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    x = INTEGERS.to(device)
    before = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64, torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            for function in (torch.log1p, torch.sinh, torch.sqrt):
                same(function(x), function(INTEGERS))
    finally:
        torch.set_default_dtype(before)


def test_numbers_past_the_signed_ones_are_filled_in(device: str) -> None:
    x = torch.zeros(4, dtype=torch.uint64, device=device).fill_(2**64 - 1)
    assert x.tolist() == [2**64 - 1] * 4


def test_memory_format_decides_about_results_of_one_channel(device: str) -> None:
    x, weight = torch.rand(16, 1, 28, 28), torch.rand(2, 1, 3, 3)
    last = x.to(memory_format=torch.channels_last)
    for each in (x, last, x, last):
        result = F.conv2d(each.to(device), weight.to(device))
        assert result.stride() == F.conv2d(each, weight).stride()


def test_results_are_resized_where_other_arguments_are_written(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    def normalize(device: str) -> list[Tensor]:
        x = torch.arange(30_000.0).view(10, 3, -1).to(device)
        weight, bias, mean, variance = torch.ones(4, 3, device=device).unbind()
        out = [torch.empty(0, device=device) for _ in range(3)]
        torch.ops.aten._native_batch_norm_legit.out(
            *(x, weight, bias, mean, variance, True, 0.1, 1e-5),
            out=out[0],
            save_mean=out[1],
            save_invstd=out[2],
        )
        return [*out, mean, variance]

    for _ in range(3):
        same(normalize(device), normalize("cpu"))


def test_strides_that_no_element_needs_reach_enqueued_results(
    device: str, latch: Latches
) -> None:
    strides = [(3, 3, 1), (6, 6, 2)]

    def flip(device: str) -> list[tuple[int, ...]]:
        made = [
            torch.empty_strided((2, 0, 3), each, device=device).flip(0)
            for each in strides
        ]
        return [each.stride() for each in made]

    expected = flip("cpu")
    assert flip(device) == expected
    held = latch()
    assert flip(device) == expected
    held.release()


def test_result_that_a_kernel_leaves_conjugate_has_the_right_values(
    device: str, same: Callable[[Any, Any], None]
) -> None:
    def solve(device: str) -> Tensor:
        torch.manual_seed(0)
        a = torch.randn(80, 80, dtype=torch.complex128).to(device)
        b = torch.randn(70, 80, dtype=torch.complex128).to(device)
        out = torch.empty(0, dtype=torch.complex128, device=device)
        torch.linalg.lu_solve(*torch.linalg.lu_factor(a), b, left=False, out=out)
        return out

    expected = solve("cpu")
    assert expected.is_conj()
    for _ in range(3):
        result = solve(device)
        assert result.is_conj()
        same(result, expected)


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x.to(torch.int8).clamp_min(1000),
        lambda x: x.to(torch.int8).fill_(1000.0),
        lambda x: x.to(torch.float16).clamp_min(1e6),
        lambda x: x.to(torch.int64).add(x.to(torch.int64), alpha=0.5),
        lambda x: x.to(torch.int8).masked_fill(x > 0, 300),
        lambda x: F.huber_loss(x, x + 1, delta=-1.0),
        lambda x: F.smooth_l1_loss(x, x + 1, beta=-1.0),
        lambda x: torch.renorm(x.view(2, -1), -1.0, 0, 1.0),
    ],
)
def test_number_that_a_kernel_refuses_is_an_error_of_the_call(
    refused: Callable[[Tensor], Tensor], device: str
) -> None:
    x = torch.arange(100_000.0) / 1000  # enough to be enqueued
    on_device = x.to(device)
    ints, half = on_device.to(torch.int8), on_device.to(torch.float16)
    longs = on_device.to(torch.int64)
    for _ in range(2):  # the same with numbers that are accepted
        ints.clamp_min(1), ints.clone().fill_(1.0), half.clamp_min(1.0)
        longs.add(longs, alpha=2), ints.masked_fill(on_device > 0, 30)
        F.huber_loss(on_device, on_device + 1, delta=1.0)
        F.smooth_l1_loss(on_device, on_device + 1, beta=1.0)
        torch.renorm(on_device.view(2, -1), 1.0, 0, 1.0)
    for _ in range(2):
        with pytest.raises(RuntimeError) as expected:
            refused(x)
        with pytest.raises(RuntimeError) as raised:
            refused(on_device)
        assert str(raised.value) == str(expected.value)
    torch.accelerator.synchronize()


def test_strides_with_a_conversion_do_not_depend_on_the_work_of_the_stream(
    device: str, latch: Latches
) -> None:
    x = torch.rand(2, 3, 4, 1)
    y = torch.rand(2, 3, 4, 5, dtype=torch.float64)
    y = y.to(memory_format=torch.channels_last)
    expected = torch.mul(x.expand(2, 3, 4, 5), y)
    x, y = x.to(device).expand(2, 3, 4, 5), y.to(device)
    torch.mul(y, y)  # the dtype is known now
    assert torch.mul(x, y).stride() == expected.stride()
    held = latch()
    assert torch.mul(x, y).stride() == expected.stride()
    held.release()


def test_enqueued_result_in_a_tensor_of_another_size_is_warned_about(
    device: str,
) -> None:
    x = torch.rand(300, 300, device=device)
    for _ in range(3):
        with pytest.warns(UserWarning, match="resized"):
            torch.mm(x, x, out=torch.empty(3, device=device))


def test_overlapping_copies_are_refused_by_the_call(device: str) -> None:
    x = torch.arange(100_000.0, device=device)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(1000).copy_(x[:1000])
    with pytest.raises(RuntimeError, match="the input tensor and"):
        x[1:].copy_(x[:-1])


def test_kernels_are_no_business_of_the_modes_of_who_waits(
    device: str, latch: Latches
) -> None:
    class Seen(TorchDispatchMode):
        names: ClassVar[list[str]] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.randn(64, 64, device=device)
    work = torch.linalg.svdvals
    work(x)
    held = latch()
    results = [work(x) for _ in range(20)]
    held.release()
    with Seen():
        torch.accelerator.synchronize()
    assert Seen.names == []
    for result in results:
        assert torch.equal(result.cpu(), work(x.cpu()))


def test_threads_ask_one_generator_for_its_state_while_kernels_draw(
    device: str,
) -> None:
    generator = torch.Generator(device)
    failures: list[Exception] = []

    def ask() -> None:
        try:
            x = torch.empty(1 << 18, device=device)
            for _ in range(30):
                x.normal_(generator=generator)
                generator.get_state()
                generator.clone_state()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_mask_is_no_index_with_cached_output_metadata(device: str) -> None:
    x = torch.arange(6.0, device=device)
    for mask in ([1, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0]):
        chosen = torch.tensor(mask, dtype=torch.bool)
        assert torch.equal(x[chosen.to(device)].cpu(), torch.arange(6.0)[chosen])


def draw(device: str) -> list[Tensor]:
    """Draws in several ways, new seeds among them."""
    torch.manual_seed(3)
    x = torch.ones(5, device=device)
    drawn = [torch.rand(5, device=device), torch.randn(5, device=device)]
    drawn += [x.clone().bernoulli_(0.4), F.dropout(x, 0.3)]
    torch.manual_seed(5)
    return [*drawn, torch.randn(5, device=device), torch.rand_like(x)]


def test_random_numbers_are_enqueued_in_the_order_of_the_program(
    device: str, latch: Latches
) -> None:
    draw(device)
    held = latch()
    drawn: list[Tensor] = []
    counts = paths(lambda: drawn.extend(draw(device)))
    assert set(counts) == {"enqueued"}
    assert not torch.accelerator.current_stream().query()
    held.release()
    for here, on_cpu in zip(drawn, draw("cpu"), strict=True):
        assert torch.equal(here.cpu(), on_cpu)


def test_streams_take_their_turns_at_a_generator(device: str, latch: Latches) -> None:
    x = torch.empty(100, device=device)
    x.normal_()
    torch.manual_seed(1)
    side = torch.Stream(device)
    held = latch()
    x.normal_()
    with side:
        y = torch.empty(100, device=device)
        y.normal_()
    assert not side.query()
    held.release()
    torch.accelerator.synchronize()
    torch.manual_seed(1)
    assert torch.equal(x.cpu(), torch.empty(100).normal_())
    assert torch.equal(y.cpu(), torch.empty(100).normal_())


def test_state_of_a_generator_is_the_one_after_enqueued_numbers(
    device: str, latch: Latches
) -> None:
    generator = torch.Generator(device)
    on_cpu = torch.Generator()
    x = torch.empty(100, device=device).normal_(generator=generator)
    for each in (generator, on_cpu):
        each.manual_seed(8)
    held = latch()
    x.normal_(generator=generator)
    threading.Timer(0.05, held.release).start()
    state = generator.get_state()
    torch.empty(100).normal_(generator=on_cpu)
    twin = torch.Generator(device)
    twin.set_state(on_cpu.get_state())
    assert torch.equal(state, twin.get_state())
    assert generator.initial_seed() == 8


def test_kernel_has_the_threads_of_the_thread_that_enqueued_it(
    device: str, latch: Latches
) -> None:
    here = torch.get_num_threads()
    values = torch.randn(300_000, generator=torch.Generator().manual_seed(0))
    x = values.to(device)
    x.sum()
    try:
        for count in (2, 1, 3):
            torch.set_num_threads(count)
            held = latch()
            total = x.sum()
            held.release()
            assert torch.equal(total.cpu(), values.sum())
            counts: list[int] = []
            thread = threading.Thread(
                target=lambda counts=counts: counts.append(torch.get_num_threads())
            )
            thread.start()
            thread.join()
            assert [torch.get_num_threads(), *counts] == [count, count]
    finally:
        torch.set_num_threads(here)


def test_kernel_that_calls_operators_gets_their_results(device: str) -> None:
    x = torch.ones(100_000, device=device)
    (x * 2).sum()
    results: list[Tensor] = []

    def kernel() -> None:
        counts = paths(lambda: results.append((x * 2).sum()))
        results.append(torch.tensor(counts["enqueued"]))

    runtime.Device(0).default_stream.launch(kernel)
    torch.accelerator.synchronize()
    assert [each.item() for each in results] == [200_000, 0]


def test_operators_after_large_ones_are_enqueued_too(device: str) -> None:
    x = torch.ones(1 << 20, device=device)
    y = torch.ones(8, device=device)
    x * 2
    for _ in range(100):
        y * 2
    torch.accelerator.synchronize()
    assert paths(lambda: y * 2) == {"structured": 1}
    for _ in range(3):
        x * 2
    torch.accelerator.synchronize()
    assert paths(lambda: y * 2) == {"enqueued": 1}


def test_training_step_does_not_wait(device: str, latch: Latches) -> None:
    def build(where: str) -> Callable[[], Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 8),
            nn.LayerNorm(8),
            nn.GELU(),
            nn.Linear(8, 3),
        ).to(where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        x, y = torch.randn(5, 2, 8, 8), torch.arange(5) % 3
        x, y = x.to(where), y.to(where)

        def step() -> Tensor:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    step, step_on_cpu = build(device), build("cpu")
    losses = [step(), step()]
    torch.accelerator.synchronize()
    held = latch()
    counts = paths(lambda: losses.append(step()))
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert set(counts) == {"enqueued"}
    assert [each.item() for each in losses] == [step_on_cpu().item() for _ in range(3)]


def test_operators_of_a_side_stream_do_not_wait_for_the_default_one(
    device: str, latch: Latches
) -> None:
    x = torch.ones(100, device=device)
    held = latch()
    side = torch.Stream(device)
    with side:
        y = x * 3
    side.synchronize()
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert y.sum().item() == 300


def test_launch_blocking_keeps_the_type_of_an_error(run_python: Any) -> None:
    source = """
        import torch, openreg_aten
        w = torch.ones(1000, 1000, device="privateuseone")
        try:
            torch.nn.functional.embedding(torch.tensor([1000]).to(w.device), w)
        except IndexError as error:
            print(error)
    """
    result = run_python(source, OPENREG_LAUNCH_BLOCKING="1")
    assert "out of range" in result.stdout, result.stderr


def test_wrong_setting_is_a_clear_error(run_python: Any) -> None:
    source = """
        import torch, openreg_aten
        x = torch.ones(2, device="privateuseone")
        x + x
    """
    result = run_python(source, OPENREG_INLINE_BYTES="many")
    assert result.returncode == 1
    text = "environment variable OPENREG_INLINE_BYTES='many' is not valid: expected"
    assert text in result.stderr


def test_setting_is_in_the_table_of_the_runtime(run_python: Any) -> None:
    source = """
        import openreg_aten, openreg_runtime
        setting = openreg_runtime.setting("OPENREG_INLINE_BYTES")
        print(setting.number, setting.source)
    """
    assert run_python(source).stdout.split() == ["65536", "default"]
    result = run_python(source, OPENREG_INLINE_BYTES="123")
    assert result.stdout.split() == ["123", "environment"]
