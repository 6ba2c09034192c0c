# SPDX-License-Identifier: BSD-3-Clause
"""``mode="reduce-overhead"`` replays, with the bits of the default mode."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._higher_order_ops import while_loop
from torch._inductor import config

from openreg_runtime import Device

pytestmark = pytest.mark.timeout(300)
SECONDS = 60  # longest time that a stream is held


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Resets the compiler and its counters."""
    torch.compiler.reset()
    counters.clear()
    yield
    torch.accelerator.synchronize()
    torch.compiler.reset()


def graphs() -> int:
    """Returns the number of captured graphs."""
    return counters["inductor"]["openreg_graphs"]


def skips() -> int:
    """Returns the number of functions that were not captured."""
    return counters["inductor"]["cudagraph_skips"]


def captured(run: Callable[..., object], **options: object) -> Callable[..., object]:
    return torch.compile(run, mode="reduce-overhead", **options)


def perceptron() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 4))
    return nn.Sequential(*layers).to("openreg")


def train(model: nn.Module, *, compiled_optimizer: bool = False, **options: object):
    """The losses and weights of some steps."""
    forward = torch.compile(lambda x: model(x).square().mean(), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    update = optimizer.step
    if compiled_optimizer:
        update = torch.compile(lambda: optimizer.step(), **options)
    torch.manual_seed(1)
    losses = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = forward(torch.randn(5, 8, device="openreg"))
        loss.backward()
        update()
        losses.append(loss.detach())
    return [each.cpu() for each in (*losses, *model.state_dict().values())]


def same(ours: list[Tensor], other: list[Tensor]) -> bool:
    return all(x.equal(y) for x, y in zip(ours, other, strict=True))


def test_replays_have_the_bits_of_the_default_mode():
    model = perceptron().eval()
    default, graphed = torch.compile(model), captured(model)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(5, 8, device="openreg")
            assert graphed(x).cpu().equal(default(x).cpu())
    assert graphs() == 1
    assert skips() == 0


def test_replay_calls_no_kernel_from_the_host():
    graphed = captured(lambda x: (x.sin() @ x).softmax(-1))
    x = torch.randn(6, 6, device="openreg")
    for _ in range(2):
        graphed(x)
    torch.accelerator.synchronize()
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, SECONDS)
    try:
        with torch.openreg.operator_paths() as paths:
            y = graphed(x)
        assert not torch.openreg.current_stream().query()
    finally:
        gate.set()
    assert not [name for name, _ in paths.calls if name.startswith("compiled::")]
    assert y.cpu().equal(torch.compile(lambda x: (x.sin() @ x).softmax(-1))(x).cpu())


@pytest.mark.parametrize("compiled_optimizer", [False, True], ids=["eager", "compiled"])
def test_training_has_the_bits_of_the_default_mode(compiled_optimizer):
    expected = train(perceptron(), compiled_optimizer=compiled_optimizer)
    counters.clear()
    ours = train(
        perceptron(), compiled_optimizer=compiled_optimizer, mode="reduce-overhead"
    )
    assert same(ours, expected)
    assert graphs() >= (3 if compiled_optimizer else 2)
    assert skips() == 0


def test_random_numbers_go_on_at_each_replay():
    def draw(x: Tensor) -> Tensor:
        return nn.functional.dropout(x, 0.5) + torch.rand_like(x)

    x = torch.ones(100, device="openreg")
    drawn = []
    for compiled in (torch.compile(draw), captured(draw)):
        torch.manual_seed(3)
        drawn.append([compiled(x).cpu() for _ in range(5)])
    assert same(*drawn)
    assert not drawn[1][3].equal(drawn[1][4])
    assert graphs() == 1


def test_results_that_are_kept_are_not_overwritten():
    graphed = captured(lambda x: (x * 2, (x + 1).t()))
    inputs = [torch.full((2, 3), float(i), device="openreg") for i in range(6)]
    kept = [graphed(x) for x in inputs]
    last = kept[-1][0]
    view = last[0]
    last += 1  # a result may be written to
    graphed(inputs[0])
    for i, (twice, more) in enumerate(kept[:-1]):
        assert twice.cpu().eq(2 * i).all()
        assert more.cpu().eq(i + 1).all()
        assert more.stride() == (1, 3)
    assert last.cpu().eq(11).all()
    assert view.cpu().eq(11).all()
    assert graphs() == 1


def test_empty_results_are_kept_too():
    @torch.compile(backend="cudagraphs")
    def run(x):
        return x[:0] * 2, x * 3

    kept = [run(torch.full((4,), float(i), device="openreg")) for i in range(4)]
    assert [whole.tolist() for _, whole in kept] == [[3.0 * i] * 4 for i in range(4)]
    assert all(empty.shape == (0,) for empty, _ in kept)
    assert graphs() == 1


def test_function_is_captured_anew_after_a_reset_of_the_device(run_python):
    program = """
        import torch
        from torch._dynamo.utils import counters
        run = torch.compile(lambda x: x * 3, backend="cudagraphs")
        for i in range(3):
            run(torch.ones(4, device="openreg"))
        torch.openreg.reset_device()
        try:
            run(torch.ones(4, device="openreg"))
        except torch.AcceleratorError as error:
            print("captured before device 0 was reset" in str(error))
        for i in range(3):
            print(run(torch.full((4,), float(i), device="openreg")).tolist())
        print(counters["inductor"]["openreg_graphs"])
    """
    result = run_python(program)
    assert result.returncode == 0, result.stderr
    lines = [str([3.0 * i] * 4) for i in range(3)]
    assert result.stdout.splitlines() == ["True", *lines, "2"]


@pytest.mark.parametrize("error", ["IllegalAddress", "DeviceLost"])
def test_function_is_captured_once_its_device_is_usable_again(error, run_python):
    program = f"""
        import torch
        import openreg_runtime as runtime
        from torch._dynamo.utils import counters
        run = torch.compile(lambda x: x * 3, backend="cudagraphs")
        run(torch.ones(4, device="openreg"))
        x = torch.ones(4, device="openreg")
        torch.accelerator.synchronize()
        with runtime.failures.inject_failure("launch", error="{error}"):
            try:
                x.add_(1)
                torch.accelerator.synchronize()
            except torch.AcceleratorError:
                pass
        try:
            run(x)
        except torch.AcceleratorError as error:
            print("orError{error}" in str(error))
        runtime.Device(0).reset()
        for _ in range(3):
            print(run(torch.ones(4, device="openreg")).tolist())
        print(dict(counters["inductor"]).get("cudagraph_skips", 0))
        print(counters["inductor"]["openreg_graphs"])
    """
    result = run_python(program)
    assert result.returncode == 0, result.stderr
    lines = ["True", *[str([3.0] * 4)] * 3, "0", "1"]
    assert result.stdout.splitlines() == lines


def test_results_outlive_the_function():
    graphed = captured(lambda x: x * 3)
    x = torch.ones(1000, device="openreg")
    for _ in range(3):
        y = graphed(x)
    del graphed
    torch.compiler.reset()
    torch.accelerator.empty_cache()
    other = torch.full((1000,), 9.0, device="openreg")
    assert y.cpu().eq(3).all()
    assert other.cpu().eq(9).all()


def test_backward_passes_may_come_in_any_order():
    model = nn.Linear(4, 4, device="openreg")
    x = [torch.randn(3, 4, device="openreg") for _ in range(5)]
    gradients = []
    for compiled in (torch.compile(model), captured(model)):
        model.zero_grad()
        for _ in range(3):
            losses = [compiled(each).tanh().square().sum() for each in x]
            for loss in (losses[3], losses[0], losses[4], losses[1], losses[2]):
                loss.backward()
        gradients.append([p.grad.cpu() for p in model.parameters()])
    assert same(*gradients)
    assert graphs() >= 2


def test_results_that_are_inputs_are_those_of_the_call():
    graphed = captured(lambda x: (x, x[1:], x * 2))
    for i in range(4):
        x = torch.full((3,), float(i), device="openreg")
        same_one, view, twice = graphed(x)
        assert same_one is x
        assert view.data_ptr() == x[1:].data_ptr()
        assert view.cpu().eq(i).all()
        assert twice.cpu().eq(2 * i).all()


def test_sizes_have_graphs_of_their_own():
    graphed = captured(lambda x: x.cumsum(0) * x.shape[0], dynamic=True)
    for _ in range(3):
        for size in (3, 5, 8):
            x = torch.arange(float(size), device="openreg")
            assert graphed(x).cpu().equal(x.cpu().cumsum(0) * size)
    assert graphs() == 3


@pytest.mark.skipif(
    not hasattr(config.triton, "cudagraph_dynamic_shape_rerecord_limit"),
    reason="torch has this setting since 2.15",
)
def test_sizes_beyond_the_limit_run_uncaptured(caplog):
    graphed = captured(lambda x: x.cumsum(0) * x.shape[0], dynamic=True)
    with config.patch({"triton.cudagraph_dynamic_shape_rerecord_limit": 2}):
        for _ in range(3):
            for size in (3, 5, 8):
                x = torch.arange(float(size), device="openreg")
                assert graphed(x).cpu().equal(x.cpu().cumsum(0) * size)
    assert graphs() == 2
    assert "further sizes are not captured" in caplog.text


def test_streams_have_graphs_of_their_own():
    graphed = captured(lambda x: x.exp() + 1)
    x = torch.randn(50, device="openreg")
    expected = graphed(x).cpu()
    torch.accelerator.synchronize()
    for _ in range(3):
        side = torch.Stream("openreg")
        with side:
            y = [graphed(x) for _ in range(3)]
        side.synchronize()
        assert all(each.cpu().equal(expected) for each in y)


def test_second_device_has_its_graphs():
    graphed = captured(lambda x: x.sin() * 2)
    x = torch.randn(20, device="openreg:1")
    for _ in range(3):
        y = graphed(x)
        assert y.device == torch.device("openreg:1")
        assert y.cpu().allclose(x.cpu().sin() * 2)
    assert graphs() == 1
    assert torch.accelerator.current_device_index() == 0


def test_threads_may_call_one_function():
    graphed = captured(lambda x: (x * 2 + 1).sum(-1))
    graphed(torch.ones(4, 4, device="openreg"))
    wrong: list[object] = []

    def run(value: float) -> None:
        x = torch.full((4, 4), value, device="openreg")
        stream = torch.Stream("openreg")
        stream.wait_stream(torch.accelerator.current_stream())
        with stream:
            for _ in range(20):
                y = graphed(x).cpu()
                if not y.eq(4 * (value * 2 + 1)).all():
                    wrong.append((value, y))

    threads = [threading.Thread(target=run, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_thread_leaves_the_results_of_another_where_they_are():
    # The other thread may be about to enqueue their reader.
    weight = torch.ones(4, device="openreg", requires_grad=True)
    run = torch.compile(lambda x: x * weight, backend="cudagraphs")

    def calls(value: float) -> list[Tensor]:
        made = []
        for _ in range(3):
            y = run(torch.full((4,), value, device="openreg"))
            made = [y, *torch.autograd.grad(y.sum(), [weight])]
        return made

    ours = calls(1)
    before = [each.data_ptr() for each in ours]
    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(calls, 2).result()
    assert [each.data_ptr() for each in ours] == before
    assert all(each.cpu().eq(1).all() for each in ours)
    assert all(each.cpu().eq(2).all() for each in others)
    assert graphs() == 4


def test_graphs_of_a_thread_end_with_it():
    run = torch.compile(lambda x: x * 2, backend="cudagraphs")
    ended = threading.Event()

    def call() -> None:
        for _ in range(3):
            run(torch.ones(4, device="openreg"))

    def call_on_a_thread() -> None:
        call()
        caller = torch._C._get_obj_in_tls("openreg_inductor.caller")
        weakref.finalize(caller, ended.set)

    call()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(call_on_a_thread).result()
    assert ended.wait(SECONDS)  # join() waits only for the Python part of a thread
    assert run(torch.ones(4, device="openreg")).cpu().eq(2).all()
    assert graphs() == 2


def test_parameters_that_move_are_captured_anew():
    model = nn.Linear(4, 4, device="openreg")
    graphed = captured(model)
    x = torch.randn(3, 4, device="openreg")
    with torch.no_grad():
        for _ in range(5):
            for _ in range(2):
                expected = nn.functional.linear(x, model.weight, model.bias)
                assert graphed(x).allclose(expected)
            model.weight.data = torch.randn(4, 4, device="openreg")
    assert graphs() >= 2


def test_buffers_are_written_at_each_replay():
    def run(**options: object) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.BatchNorm1d(4, device="openreg")
        compiled = torch.compile(model, **options)
        with torch.no_grad():
            for _ in range(5):
                compiled(torch.randn(6, 4, device="openreg"))
        return [each.cpu() for each in model.buffers()]

    assert same(run(mode="reduce-overhead"), run())
    assert graphs() >= 1


def test_function_that_writes_an_input_is_not_captured_and_the_log_reports_it(caplog):
    def add(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    graphed = captured(add)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            x = torch.zeros(3, device="openreg")
            assert graphed(x).cpu().eq(2).all()
            assert x.cpu().eq(1).all()
    assert graphs() == 0
    assert "skipping cudagraphs due to mutated inputs (1 instances)" in caplog.text


def test_work_of_the_host_divides_a_function():
    def run(x: Tensor) -> Tensor:
        x = x.sin()
        host = x.cpu() * 2
        return x + host.to(x.device)

    graphed = captured(run)
    for _ in range(4):
        x = torch.randn(6, device="openreg")
        assert graphed(x).cpu().equal(torch.compile(run)(x).cpu())
    assert graphs() == 2


def test_results_that_depend_on_values_divide_a_function():
    def run(x: Tensor) -> Tensor:
        return (x * 2)[(x > 0).nonzero().squeeze(1)] + 1

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        graphed = captured(run)
        for i in range(4):
            x = torch.randn(8 + i % 2, device="openreg")
            x[0] = 1
            assert graphed(x).cpu().equal(run(x.cpu()))
    assert graphs() >= 1


@torch.library.custom_op("tests_graphs::reads_a_value", mutates_args=())
def reads_a_value(x: Tensor) -> Tensor:
    return x * x.sum().item()


@reads_a_value.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_function_whose_capture_fails_runs_uncaptured_and_the_log_reports_the_reason(
    caplog,
):
    graphed = captured(lambda x: reads_a_value(x * 2) + 1)
    with caplog.at_level(logging.WARNING):
        for i in range(4):
            x = torch.full((2,), float(i), device="openreg")
            assert graphed(x).cpu().eq(8 * i * i + 1).all()
    assert graphs() == 0
    assert "aten::_local_scalar_dense cannot be captured" in caplog.text


def chosen(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 6, lambda x: x - 1, lambda x: x + 1, (x,)) * 2


def repeated(x: Tensor) -> Tensor:
    def inner(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, (x * 0.5).tanh()

    zero = torch.zeros((), dtype=torch.long, device=x.device)
    return while_loop(lambda i, x: i < 3, inner, (zero, x))[1] + 1


@pytest.mark.parametrize("run", [chosen, repeated])
def test_code_after_control_flow_has_the_results_of_the_default_mode(run, caplog):
    graphed, kept, expected = captured(run), [], []
    with torch.no_grad(), caplog.at_level(logging.WARNING):
        for i in range(5):
            x = torch.full((2,), i + 1.0)
            kept.append(graphed(x.to("openreg")))
            expected.append(run(x))
    for ours, other in zip(kept, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), other)
    assert "an input with several parts" in caplog.text


def test_skip_is_an_error_if_the_program_wants_so():
    def add(x: Tensor) -> Tensor:
        return x.add_(1)

    with (
        config.patch("triton.cudagraph_or_error", True),
        pytest.raises(RuntimeError, match="skipping cudagraphs due to mutated inputs"),
    ):
        captured(add)(torch.zeros(3, device="openreg"))


def test_within_a_capture_of_the_program_a_function_runs_as_it_is():
    graphed = captured(lambda x: x * 2 + 1)
    x = torch.ones(5, device="openreg")
    for _ in range(3):
        graphed(x)
    torch.accelerator.synchronize()
    graph = torch.accelerator.Graph()
    with torch.Stream("openreg"), graph:
        y = graphed(x)
    x.fill_(4)
    graph.replay()
    assert y.cpu().eq(9).all()


def test_failed_replayed_kernel_raises_the_cpu_error_and_the_device_works():
    graphed = captured(lambda x, y: x // y + 1)
    x = torch.arange(100, device="openreg")
    two = torch.full_like(x, 2)
    for _ in range(3):
        y = graphed(x, two)
    expected = torch.arange(100) // 2 + 1
    assert y.cpu().equal(expected)
    graphed(x, two * 0)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.accelerator.synchronize()
    assert graphed(x, two).cpu().equal(expected)
    assert graphs() == 1


def test_backend_cudagraphs_captures_operators():
    def run(x: Tensor) -> Tensor:
        return (x.sin() @ x).relu()

    compiled = torch.compile(run, backend="cudagraphs")
    for _ in range(4):
        x = torch.randn(6, 6, device="openreg")
        assert compiled(x).cpu().equal(run(x.cpu()))
    assert graphs() == 1
