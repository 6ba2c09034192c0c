# SPDX-License-Identifier: BSD-3-Clause
"""``OPENREG_UNINITIALIZED=nan`` fills memory that is allocated or freed."""

from __future__ import annotations

import pytest

from support.programs import Program

NAN = {"OPENREG_UNINITIALIZED": "nan"}

pytestmark = pytest.mark.differs_in_process("uninitialized", run=False)

# Work that the test releases. Without it a stream runs small operators immediately.
BUSY = """
import threading
from openreg_runtime import Stream
gate = threading.Event()
Stream.from_handle(torch.accelerator.current_stream().native_handle).launch(
    gate.wait, 30
)
"""


def run_filled(interpreter: Program, source: str) -> list[str]:
    ended = interpreter(f'import torch\nD = "openreg"\n{source}', **NAN)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "float8_e4m3fn",
        "float8_e5m2",
        "complex64",
        "complex128",
    ],
)
def test_empty_is_nan_in_each_dtype_of_numbers_with_a_fraction(
    interpreter: Program, dtype: str
) -> None:
    source = f"""
x = torch.empty(1000, dtype=torch.{dtype}, device=D).cpu()
print(x.to(torch.complex128 if x.is_complex() else torch.float64).isnan().all().item())
"""
    assert run_filled(interpreter, source) == ["True"]


def test_empty_is_no_index_in_each_dtype_of_indices(interpreter: Program) -> None:
    source = """
for dtype in torch.int16, torch.int32, torch.int64:
    print(torch.empty(2, dtype=dtype, device=D).min().item())
"""
    assert run_filled(interpreter, source) == [
        "32767",
        "2147450879",
        "9223231297218904063",
    ]


def test_every_function_for_new_memory_fills_it(interpreter: Program) -> None:
    source = """
x = torch.ones(3, device=D)
for new in (
    torch.empty_like(x),
    x.new_empty(5),
    torch.empty_strided((2, 2), (1, 2), device=D),
    torch.empty(3, pin_memory=True),
    x.clone().resize_(8)[3:],
    torch.nn.Linear(2, 2, device="meta").to_empty(device=D).weight,
):
    print(new.isnan().all().item())
"""
    assert run_filled(interpreter, source) == ["True"] * 6


def test_memory_is_filled_in_the_order_of_the_stream(interpreter: Program) -> None:
    source = f"""
x = torch.full((1000,), 2.0, device=D)
first = x.data_ptr()
torch.accelerator.synchronize()
{BUSY}
y = x * 2
del x
z = torch.empty(1000, device=D)
w = torch.ones(1000, device=D)
gate.set()
print(y.sum().item(), z.isnan().all().item(), w.sum().item(), z.data_ptr() == first)
"""
    assert run_filled(interpreter, source) == ["4000.0 True 1000.0 True"]


def test_freed_memory_is_filled(interpreter: Program) -> None:
    # The runtime reads the block, which the allocator has kept.
    source = """
import ctypes, struct
from openreg_runtime import Buffer
buffer = Buffer(8)
distance = buffer.kernel_address - buffer.address
x = torch.ones(1000, device=D)
torch.accelerator.synchronize()
address = x.data_ptr() + distance
read = lambda: struct.unpack("f", (ctypes.c_char * 4).from_address(address))[0]
print(read())
del x
print(read())
"""
    assert run_filled(interpreter, source) == ["1.0", "nan"]


def test_memory_that_another_stream_uses_is_not_filled_early(
    interpreter: Program,
) -> None:
    source = """
side = torch.Stream(D)
x = torch.ones(1000, device=D)
side.wait_stream(torch.accelerator.current_stream())
with side:
    torch.openreg._sleep(10**8)
    y = x + 1
x.record_stream(side)
del x
torch.empty(1000, device=D)
side.synchronize()
print(y.sum().item())
"""
    assert run_filled(interpreter, source) == ["2000.0"]


def test_each_replay_fills_the_memory_of_its_graph(interpreter: Program) -> None:
    source = """
x = torch.ones(4, device=D)
graph = torch.accelerator.Graph()
with torch.Stream(D), graph:
    y = torch.empty(4, device=D)
    y[:2] = x[:2]
    z = y * 1
for value in 1, 2:
    x.fill_(value)
    graph.replay()
    print(z.tolist())
"""
    assert run_filled(interpreter, source) == [
        "[1.0, 1.0, nan, nan]",
        "[2.0, 2.0, nan, nan]",
    ]


def test_replay_does_not_fill_memory_of_other_pools(interpreter: Program) -> None:
    source = """
side = torch.Stream(D)
graph = torch.accelerator.Graph()
with side:
    x = torch.full((64,), 3.0, device=D)
torch.accelerator.synchronize()
address = x.data_ptr()
with side, graph:
    y = x * 2
    del x
with side:
    z = torch.full((64,), 5.0, device=D)
torch.accelerator.synchronize()
graph.replay()
torch.accelerator.synchronize()
print(z.data_ptr() == address, z.sum().item())
"""
    assert run_filled(interpreter, source) == ["True 320.0"]


def test_training_has_the_results_of_the_cpu(interpreter: Program) -> None:
    source = """
def train(device):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.LayerNorm(144), torch.nn.Linear(144, 10)
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 1, 8, 8).to(device)).square().mean()
        loss.backward()
        optimizer.step()
    return [each.tolist() for each in [loss, *model.parameters()]]
print(train(D) == train("cpu"))
"""
    assert run_filled(interpreter, source) == ["True"]


def test_default_leaves_the_bytes(interpreter: Program) -> None:
    source = """
import torch
x = torch.full((1000,), 7.0, device="openreg")
del x
print(torch.empty(1000, device="openreg").sum().item())
"""
    assert interpreter(source).stdout.split() == ["7000.0"]


@pytest.mark.parametrize(
    ("environment", "accepted"),
    [
        ({"OPENREG_UNINITIALIZED": "0"}, "none or nan"),
        (NAN | {"OPENREG_ISOLATION": "process"}, "none with OPENREG_ISOLATION=process"),
    ],
)
def test_wrong_value_is_refused(
    interpreter: Program, environment: dict[str, str], accepted: str
) -> None:
    ended = interpreter('import torch; torch.ones(2, device="openreg")', **environment)
    assert ended.returncode != 0
    assert f"is not valid: expected {accepted}" in ended.stderr


def test_block_that_other_streams_still_read_keeps_its_values(
    interpreter: Program,
) -> None:
    """The stream of the block does nothing before it waits for the readers."""
    source = """
main, side = torch.accelerator.current_stream(), torch.Stream(D)
w = torch.ones(1 << 10, device=D)
torch.accelerator.synchronize()
for factor in range(1, 4):
    side.wait_stream(main)
    with side:
        x = w * factor
    main.wait_stream(side)
    gate = threading.Event()
    Stream.from_handle(main.native_handle).launch(gate.wait, 30)
    y = x + 0
    del x
    gate.set()
    print(y.sum().item())
"""
    imports = "import threading\nfrom openreg_runtime import Stream\n"
    shown = run_filled(interpreter, imports + source)
    assert shown == ["1024.0", "2048.0", "3072.0"]


def test_forked_stream_is_captured_although_its_memory_is_freed(
    interpreter: Program,
) -> None:
    source = """
a, out = torch.ones(1000, device=D), torch.zeros(1000, device=D)

def body():
    current, side = torch.accelerator.current_stream(), torch.Stream(D)
    side.wait_stream(current)
    with side:
        x = a * 2
    current.wait_stream(side)
    out.copy_(x)

stream, graph = torch.Stream(D), torch.accelerator.Graph()
stream.wait_stream(torch.accelerator.current_stream())
with stream, graph:
    body()
graph.replay()
print(out.sum().item())
"""
    assert run_filled(interpreter, source) == ["2000.0"]
