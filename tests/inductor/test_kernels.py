# SPDX-License-Identifier: BSD-3-Clause
"""Compiled kernels run and fail like other work of streams."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.nn.functional import pad

from openreg_runtime import Device

pytestmark = pytest.mark.timeout(300)
SECONDS = 60  # longest time that a stream is held


@pytest.fixture(autouse=True)
def _fresh_compiler():
    """Resets the compiler and reported failures."""
    torch.compiler.reset()
    yield
    torch.accelerator.synchronize()
    torch.compiler.reset()


def divide(x: Tensor, y: Tensor) -> Tensor:
    return x // y + 1


def pick(x: Tensor, at: Tensor) -> Tensor:
    return x[at] * 2


def waited(call: Callable[..., object], *args: Tensor) -> None:
    """Calls a function and waits for its work."""
    call(*args)
    torch.accelerator.synchronize()


def test_behind_a_held_stream_calls_return_at_once():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh()).to("openreg")
    compiled = torch.compile(lambda x: (model(x) ** 2).mean(), fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8, device="openreg")

    def step() -> Tensor:
        loss = compiled(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(2):
        step()
    torch.accelerator.synchronize()
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, SECONDS)
    try:
        with torch.openreg.operator_paths() as paths:
            loss = step()
        assert not torch.openreg.current_stream().query()
    finally:
        gate.set()
    ways = {way for _, way in paths.calls}
    assert ways == {"enqueued"}, paths.calls
    assert sum(n.startswith("compiled::") for n, _ in paths.calls) >= 2
    assert loss.isfinite().item()


def test_behind_a_held_stream_a_step_of_a_gpt_is_enqueued_from_its_second_call(
    load_program,
):
    models = load_program("benchmarks/models.py")
    step = models.steps(torch.compile)["tiny GPT"]("openreg")
    step()
    torch.accelerator.synchronize()
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, SECONDS)
    try:
        with torch.openreg.operator_paths() as paths:
            loss = step()
        assert not torch.openreg.current_stream().query()
    finally:
        gate.set()
    rest = {call: n for call, n in paths.calls.items() if call[1] != "enqueued"}
    assert not rest
    assert sum(name.startswith("compiled::") for name, _ in paths.calls) > 10
    assert loss.isfinite().item()


def test_memory_that_the_host_frees_meanwhile_is_still_the_kernels():
    compiled = torch.compile(lambda x: x.sin() * 2, fullgraph=True)
    x = torch.randn(1000, device="openreg")
    expected = compiled(x).cpu()
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, SECONDS)
    try:
        y = compiled(x.clone())
        other = torch.full((1000,), 7.0, device="openreg")  # after it, in its memory
    finally:
        gate.set()
    assert y.cpu().equal(expected)
    assert other.cpu().eq(7).all()


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize("rounding", ["floor", "trunc", "remainder"])
def test_division_by_zero_raises_the_error_of_the_cpu_and_the_device_still_works(
    size, rounding
):
    def divide(x: Tensor, y: Tensor) -> Tensor:
        if rounding == "remainder":
            return x % y + 1
        return torch.div(x, y, rounding_mode=rounding) + 1

    compiled = torch.compile(divide, dynamic=False)
    x = torch.arange(size, device="openreg")
    two = torch.full((size,), 2, device="openreg")
    expected = divide(x.cpu(), two.cpu())
    assert compiled(x, two).cpu().equal(expected)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        waited(compiled, x, two * 0)
    assert compiled(x, two).cpu().equal(expected)


def divided(x: Tensor, y: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.bmm(x, y) * torch.div(i, j, rounding_mode="trunc")


def picked(x: Tensor, y: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.bmm(x, y) * y.flatten()[i // 7 + 3000]


def masked(x: Tensor, y: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.bmm(x, y) * pad(i[..., 1:] > j[..., 1:], (1, 0), value=True)


@pytest.mark.parametrize(
    ("product", "fused", "words"),
    [
        (divided, 0, "ZeroDivisionError"),
        (picked, 0, "out of bounds"),
        (masked, 1, None),
    ],
)
def test_operators_after_a_template_may_refuse_values(product, fused, words):
    options = {"max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    compiled = torch.compile(product, options=options)
    x, y = torch.randn(3, 32, 40), torch.randn(3, 40, 48)
    i = torch.arange(-2000, -2000 + 3 * 32 * 48).view(3, 32, 48)
    given = [each.to("openreg") for each in (x, y, i, torch.full_like(i, 7))]
    counters.clear()
    expected = product(*(each.cpu() for each in given))
    with fresh_cache():  # has no counters
        torch.testing.assert_close(compiled(*given).cpu(), expected)
    assert counters["inductor"]["cpp_templated_kernel_counter"] == 1
    assert counters["inductor"]["cpp_epilogue_fusion_counter"] == fused
    given[2][1, 2, 3], given[3][1, 2, 3] = 1 << 40, 0
    if words is None:
        expected = product(*(each.cpu() for each in given))
        torch.testing.assert_close(compiled(*given).cpu(), expected)
    else:
        with pytest.raises((RuntimeError, IndexError), match=words):
            waited(compiled, *given)
    assert given[0].cpu().equal(x)


@pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(8, 37, 16, 37), (3, 5, 100, 33), (2, 64, 64, 64)])
def test_templates_store_products_that_no_tile_divides(sizes, dtype):
    batch, rows, inner, columns = sizes
    options = {"max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    compiled = torch.compile(torch.bmm, options=options, dynamic=False)
    x, y = torch.randn(batch, rows, inner), torch.randn(batch, inner, columns)
    x, y = x.to(dtype), y.to(dtype)
    counters.clear()
    with fresh_cache():
        ours = compiled(x.to("openreg"), y.to("openreg")).cpu()
    assert counters["inductor"]["cpp_templated_kernel_counter"] == 1
    torch.testing.assert_close(ours, x @ y)


@pytest.mark.parametrize("size", [10, 100_000])
def test_index_out_of_bounds_raises_the_message_of_the_cpu_and_the_device_still_works(
    size,
):
    compiled = torch.compile(pick, dynamic=False)
    x = torch.randn(50, device="openreg")
    at = torch.arange(size, device="openreg") % 50
    expected = pick(x.cpu(), at.cpu())
    assert compiled(x, at).cpu().equal(expected)
    with pytest.raises(RuntimeError, match=r"index out of bounds: 0 <= \w+ < 50"):
        waited(compiled, x, at + 45)
    assert compiled(x, at).cpu().equal(expected)


MASKED_AT_THE_EDGE = """
    import torch
    import torch_openreg
    from torch.nn.functional import pad

    def padded(x, y):
        return pad(x, {padding}, value=1) * y

    x = torch.arange({rows} * 12).remainder(3).eq(0).to(torch.{dtype})
    x = x.view({rows}, 12)
    y = torch.ones(padded(x, 1).shape, dtype=x.dtype)
    edge = x.to("openreg")
    result = torch.compile(padded, dynamic=False)(edge, y.to("openreg"))
    print(result.cpu().equal(padded(x, y)))
"""


@pytest.mark.parametrize("dtype", ["bool", "float", "bfloat16", "int64"])
@pytest.mark.parametrize("rows", [3, 1 << 20], ids=["few", "many"])
@pytest.mark.parametrize("padding", [(1, 0), (0, 0, 1, 0)], ids=["columns", "rows"])
def test_masked_elements_outside_memory_are_not_read(run_python, dtype, rows, padding):
    # No memory precedes the first tensor, or follows one of whole MiB.
    ended = run_python(
        MASKED_AT_THE_EDGE.format(dtype=dtype, rows=rows, padding=padding),
        OPENREG_MEMORY_CHECK="1",
    )
    assert ended.stdout.split() == ["True"], ended.stderr


def test_failure_of_a_stream_is_its_own():
    compiled = torch.compile(divide, dynamic=False)
    x = torch.arange(1000, device="openreg")
    two = torch.full_like(x, 2)
    zero = two * 0
    compiled(x, two)
    torch.accelerator.synchronize()
    streams = {"good": torch.Stream("openreg"), "bad": torch.Stream("openreg")}
    start = threading.Barrier(2)
    ended: dict[str, object] = {}

    def run(name: str, by: Tensor) -> None:
        start.wait(SECONDS)
        try:
            with streams[name]:
                for _ in range(100):
                    ended[name] = compiled(x, by)
            streams[name].synchronize()
        except RuntimeError as error:
            ended[name] = error

    threads = [
        threading.Thread(target=run, args=args)
        for args in (("good", two), ("bad", zero))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.arange(1000) // 2 + 1
    assert "ZeroDivisionError" in str(ended["bad"])
    assert isinstance(ended["good"], Tensor), ended["good"]
    assert ended["good"].cpu().equal(expected)
    with contextlib.suppress(RuntimeError):
        streams["bad"].synchronize()  # the work enqueued after the first failure
    with streams["bad"]:
        y = compiled(x, two)
    streams["bad"].synchronize()
    assert y.cpu().equal(expected)


def test_kernels_are_work_of_the_stream_that_is_current_in_the_graph():
    side = torch.Stream("openreg")

    @torch.compile(fullgraph=True)
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        with side:
            z = x * 3 + 1
        return x * 2, z

    kept = run(torch.ones(100, device="openreg"))
    x = torch.full((100,), 5.0, device="openreg")
    torch.accelerator.synchronize()
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, SECONDS)
    try:
        y, z = run(x)
        side.synchronize()  # its work is not behind the gate
        assert not torch.accelerator.current_stream().query()
        with side:
            found = z.cpu()
    finally:
        gate.set()
    assert found.eq(16).all()
    assert y.cpu().eq(10).all()
    assert kept[0].cpu().eq(2).all()


@torch.library.custom_op("tests_inductor::ones_beside", mutates_args=())
def ones_beside(x: Tensor) -> Tensor:
    return torch.ones(3, device=x.device.type) * x.sum()


@ones_beside.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(3)


def test_device_of_a_graph_is_the_current_one_for_its_operators():
    run = torch.compile(lambda x: ones_beside(x * 2) + 1, fullgraph=True)
    y = run(torch.ones(4, device="openreg:1"))
    assert y.device == torch.device("openreg:1")
    assert y.cpu().eq(9).all()
    assert torch.accelerator.current_device_index() == 0


def test_tensor_of_another_device_is_refused():
    compiled = torch.compile(lambda x, y: x * y + 1, fullgraph=True)
    x = torch.ones(5, device="openreg")
    with pytest.raises(RuntimeError, match="openreg:1"):
        compiled(x, torch.ones(5, device="openreg:1"))


@pytest.mark.parametrize("wrapper", ["python", "cpp"])
def test_tensor_outside_its_storage_is_refused_by_the_kernels_name(wrapper):
    with torch._inductor.config.patch(cpp_wrapper=wrapper == "cpp"):
        compiled = torch.compile(lambda x, y: x * 2 + y)
        x, y = (torch.ones(4, 4, device="openreg") for _ in range(2))
        expected = compiled(x, y)
        y.untyped_storage().resize_(0)
        words = r"kernel \w+: tensor 2 of its arguments, .* needs 64 bytes .* has 0"
        with pytest.raises(RuntimeError, match=words):
            compiled(x, y)
        y.untyped_storage().resize_(64)
        y.fill_(1)
        assert compiled(x, y).equal(expected)


def test_second_process_hits_the_cache_and_a_changed_package_does_not(
    run_python, tmp_path
):
    source = """
        import torch
        from torch._dynamo.utils import counters
        {change}
        x = torch.arange(6.0, device="openreg")
        print(torch.compile(lambda x: x.sin() + 2)(x).sum().item())
        found = counters["inductor"]
        print(found["fxgraph_cache_hit"], found["fxgraph_cache_miss"])
    """
    change = """
        import torch._inductor.compile_fx
        from openreg_inductor import _backend
        _backend._Pass.uuid = lambda self: "another"
    """
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    said = []
    for text in ("", "", change):
        result = run_python(source.replace("{change}", text.strip()), **environment)
        assert result.returncode == 0, result.stderr
        said.append(result.stdout.splitlines())
    assert [counts for _, counts in said] == ["0 1", "1 0", "0 1"]
    assert len({value for value, _ in said}) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": "max-autotune-no-cudagraphs"},
        {"options": {"epilogue_fusion": True}},
    ],
    ids=["default", "mode", "options"],
)
def test_backend_has_the_name_of_the_device(settings):
    x = torch.randn(20, device="openreg")
    expected = torch.compile(lambda x: x.cos() - 1)(x.cpu())
    compiled = torch.compile(lambda x: x.cos() - 1, backend="openreg", **settings)
    assert compiled(x).cpu().equal(expected)


def test_kernels_of_both_devices_in_one_graph():
    @torch.compile
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        host = torch.arange(30, dtype=torch.float) * 2 + 1
        return x * 2 + 1, host

    there, host = run(torch.arange(30.0, device="openreg"))
    assert host.device.type == "cpu"
    assert there.cpu().equal(host)
