# SPDX-License-Identifier: BSD-3-Clause
"""``torch.compile`` with Inductor, for models on CUDA devices."""

from __future__ import annotations

import copy
import functools
import json
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
from torch.nn.attention.flex_attention import flex_attention

from openreg_runtime import Device
from support.programs import run, variables
from torch_openreg import openreg

pytestmark = [
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore:.*torch.jit"),  # the import of Dynamo
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # of torch.export
]
PROGRAMS = Path(__file__).parents[1] / "inductor" / "programs.py"
# All of them run with `OPENREG_DEVICE=cuda pytest tests/inductor/test_programs.py`.
NAMES = [
    "pointwise",
    "reductions",
    "softmax",
    "products",
    "cross_entropy",
    "attention",
    "low_precision",
    "dropout",
    "pools",
    "norms",
    "batched_products",
    "indexed_writes",
    "linear_algebra",
    "random_numbers",
    "max_autotune",
    "dynamic_shapes",
    "autocast",
    "graph_breaks",
    "side_stream",
    "second_device",
    "checkpointing",
    "freezing",
    "exported",
    "train_with_dropout",
    "train_convolutions",
    "train_gpt",
    "train_with_autocast",
    "train_with_other_batches",
]
# Trains a compiled transformer layer; prints the parameters' bits.
TRAINING = """
import hashlib
import torch
import torch.nn.functional as F
from torch import nn

device = torch.accelerator.current_accelerator().type
torch.set_num_threads(1)
torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
model = nn.Sequential(layer, nn.Linear(16, 4)).to(device)
step = torch.compile(lambda x, y: F.cross_entropy(model(x).mean(1), y), fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for seed in range(3):
    torch.manual_seed(seed)
    x, y = torch.randn(4, 6, 16).to(device), torch.randint(4, (4,)).to(device)
    step(x, y).backward()
    optimizer.step()
    optimizer.zero_grad()
bits = b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters())
print(device, hashlib.sha256(bits).hexdigest())
"""


@pytest.fixture(autouse=True)
def compiler_is_reset() -> Iterator[None]:
    """Forgets compiled functions, and counts from zero."""
    torch.compiler.reset()
    counters.clear()
    yield
    torch.compiler.reset()


@functools.cache
def results() -> dict[str, dict[str, object]]:
    """Runs the programs in one process."""
    environment = variables(
        OPENREG_DEVICE="cuda", OPENREG_INLINE_BYTES="0", OMP_NUM_THREADS="1"
    )
    command = (sys.executable, "-W", "ignore", PROGRAMS, *NAMES)
    ended = run(*command, environment=environment, seconds=1400)
    assert ended.returncode == 0, ended.stderr
    lines = map(json.loads, ended.stdout.splitlines())
    return {str(line["name"]): line for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_compiled_cpu(name: str) -> None:
    result = results()[name]
    assert "error" not in result, result["error"]
    assert result["equal"], result
    assert result["kernels"] == ["enqueued"]


def test_training_has_the_same_bits_under_both_names() -> None:
    said = {}
    for name in ("cuda", "openreg"):
        environment = variables(OPENREG_DEVICE=name, OMP_NUM_THREADS="1")
        command = (sys.executable, "-W", "ignore", "-c", TRAINING)
        ended = run(*command, environment=environment, seconds=600)
        assert ended.returncode == 0, ended.stderr
        device, bits = ended.stdout.split()
        said[device] = bits
    assert said.keys() == {"cuda", "openreg"}
    assert said["cuda"] == said["openreg"]


def smooth(x: Tensor) -> Tensor:
    return (x.sin() * 2).softmax(-1)


def test_kernels_run_in_the_order_of_their_stream() -> None:
    x = torch.randn(8, 100)
    expected = torch.compile(smooth)(x)
    compiled = torch.compile(smooth, fullgraph=True)
    on_device = x.cuda()
    compiled(on_device)
    gate = threading.Event()
    Device(0).default_stream.launch(gate.wait, 30)
    with openreg.operator_paths() as paths:
        y = compiled(on_device)
    kernels = [path for name, path in paths.calls if name.startswith("compiled::")]
    assert kernels == ["enqueued"]
    assert not torch.cuda.current_stream().query()
    gate.set()
    assert torch.equal(y.cpu(), expected)


def test_events_are_recorded_after_the_kernels_before_them() -> None:
    def waits(x: Tensor) -> tuple[Tensor, Tensor]:
        event = torch.cuda.Event()
        y = x * 2
        event.record()
        z = y @ y
        event.synchronize()
        return y, z.sin()

    x = torch.arange(16.0, device="cuda").view(4, 4)
    results, (code,) = run_and_get_code(torch.compile(waits, fullgraph=True), x)
    for result, expected in zip(results, waits(x), strict=True):
        torch.testing.assert_close(result, expected)
    calls = re.findall(
        r"^ +(?:torch\.ops\.streams\.)?(cpp_fused_mul|record|synchronize)\w*",
        code,
        re.M,
    )
    assert calls == ["cpp_fused_mul", "record", "synchronize"]


def test_inputs_are_kept_for_the_kernels_before_a_wait() -> None:
    def waits(x: Tensor) -> Tensor:
        y = x + 1
        torch.cuda.synchronize()
        return y

    x = torch.arange(4.0, device="cuda")
    result = torch.compile(waits, fullgraph=True)(x)
    torch.testing.assert_close(result, x + 1)


def test_a_first_compilation_does_not_recommend_tf32() -> None:
    x = torch.randn(8, 8, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        torch.compile(lambda y: y @ y + 1)(x)


def test_reduce_overhead_replays_graphs() -> None:
    x = torch.randn(8, 100)
    compiled = torch.compile(smooth, mode="reduce-overhead")
    for shift in range(3):
        y = compiled((x + shift).cuda())
        assert torch.allclose(y.cpu(), smooth(x + shift))
    with openreg.operator_paths() as paths:
        y = compiled(x.cuda())
    assert not any(name.startswith("compiled::") for name, _ in paths.calls)
    assert torch.allclose(y.cpu(), smooth(x))
    assert counters["inductor"]["cudagraph_skips"] == 0


def test_reduce_overhead_trains() -> None:
    models = []
    for device, mode in (("cpu", None), ("cuda", "reduce-overhead")):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
        compiled = torch.compile(model, mode=mode) if mode else model
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            compiled(torch.randn(4, 8).to(device)).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        models.append([p.detach().cpu() for p in model.parameters()])
    torch.testing.assert_close(*models)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_optimizers_are_compiled(kind: type[torch.optim.Optimizer]) -> None:
    torch.manual_seed(0)
    here = nn.Linear(4, 3)
    there = copy.deepcopy(here).cuda()
    x = torch.randn(2, 4)
    for model, y in ((here, x), (there, x.cuda())):
        step = kind(model.parameters(), lr=0.1).step
        if y.is_cuda:
            step = torch.compile(step)
        for _ in range(2):
            model.zero_grad()
            model(y).square().sum().backward()
            step()
    for mine, theirs in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(mine.cpu(), theirs)


def test_the_backend_of_graphs_alone_replays_operators() -> None:
    compiled = torch.compile(smooth, backend="cudagraphs")
    x = torch.randn(8, 100)
    for _ in range(3):
        assert torch.allclose(compiled(x.cuda()).cpu(), smooth(x))


def test_max_autotune_chooses_kernels_for_the_cpu() -> None:
    a, b = torch.randn(64, 512), torch.randn(512, 64)
    compiled = torch.compile(lambda x, y: torch.relu(x @ y), mode="max-autotune")
    for _ in range(3):
        y = compiled(a.cuda(), b.cuda())
    torch.testing.assert_close(y.cpu(), torch.relu(a @ b), rtol=1e-4, atol=1e-4)


def test_flex_attention_has_gradients() -> None:
    on_cpu = [torch.randn(1, 2, 64, 16) for _ in range(3)]
    here = [each.clone().requires_grad_() for each in on_cpu]
    there = [each.cuda().requires_grad_() for each in on_cpu]
    expected = F.scaled_dot_product_attention(*here)
    y = torch.compile(flex_attention)(*there)
    torch.testing.assert_close(y.cpu(), expected)
    expected.sum().backward()
    y.sum().backward()
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(b.grad.cpu(), a.grad)


def test_cpp_wrappers_call_the_kernels() -> None:
    x = torch.randn(8, 100)
    compiled = torch.compile(smooth, options={"cpp_wrapper": True})
    assert torch.allclose(compiled(x.cuda()).cpu(), smooth(x))


def test_models_compiled_ahead_of_time_run_on_each_device(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Softmax(-1)).eval()
    x = torch.randn(3, 4)
    expected = model(x).detach()
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(
        model.cuda(), (x.cuda(),), dynamic_shapes=({0: batch},)
    )
    path = torch._inductor.aoti_compile_and_package(
        program, package_path=str(tmp_path / "model.pt2")
    )
    for index in (0, 1):
        loaded = torch._inductor.aoti_load_package(path, device_index=index)
        y = loaded(x.to(f"cuda:{index}"))
        assert y.device == torch.device("cuda", index)
        assert torch.allclose(y.cpu(), expected)


def test_the_loader_of_cuda_builds_names_the_one_for_packages() -> None:
    with pytest.raises(NotImplementedError, match="aoti_load_package"):
        torch._export.aot_load("model.so", "cuda")
