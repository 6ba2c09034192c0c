# SPDX-License-Identifier: BSD-3-Clause
"""Models compiled by AOTInductor for the device, in separate processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.programs import Program, run, variables

FILE = Path(__file__).with_name("packages.py")
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("aoti")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of both devices."""
    made: Path = tmp_path_factory.mktemp("packages")
    ended = run(sys.executable, FILE, made, environment=variables(), seconds=800)
    assert ended.returncode == 0, ended.stderr
    return made


@pytest.fixture
def loaded(run_python: Program, folder: Path):
    """Runs source after a preamble that loads packages."""
    preamble = f"""
import sys
import threading
sys.path.insert(0, {str(FILE.parent)!r})
import torch
torch.set_grad_enabled(False)
from openreg_runtime import Device
from packages import arguments, make_model

def load(device, index=-1):
    path = {str(folder)!r} + "/" + device + ".pt2"
    return torch._inductor.aoti_load_package(path, device_index=index)

def on_host(results):
    return [result.cpu() for result in results]

def equal(results, others):
    return all(map(torch.equal, on_host(results), on_host(others)))
"""

    def start(source: str, **environment: str) -> list[str]:
        ended = run_python(preamble + source, **environment)
        assert ended.returncode == 0, ended.stderr
        lines: list[str] = ended.stdout.splitlines()
        return lines

    return start


@pytest.mark.parametrize("inline_bytes", [0, 2**30])
def test_numbers_are_those_of_the_cpus_model_for_each_batch(
    loaded, inline_bytes: int
) -> None:
    assert (
        loaded(
            """
cpu, device = load("cpu"), load("openreg")
for batch in (2, 4, 17, 64):
    results = device(*arguments(batch, "openreg"))
    print(equal(results, cpu(*arguments(batch, "cpu"))), results[0].device)
""",
            OPENREG_INLINE_BYTES=str(inline_bytes),
        )
        == ["True openreg:0"] * 4
    )


def test_model_runs_on_the_device_with_the_index_it_is_loaded_for(loaded) -> None:
    assert loaded("""
cpu, device = load("cpu"), load("openreg", 1)
results = device(*arguments(4, "openreg:1"))
print(equal(results, cpu(*arguments(4, "cpu"))), results[0].device)
print(torch.accelerator.current_device_index())
try:
    device(*arguments(4, "openreg:0"))
except RuntimeError as error:
    print("a compiled kernel of device 1 got a tensor of openreg:0" in str(error))
""") == ["True openreg:1", "0", "True"]


def test_kernels_are_enqueued_behind_a_held_stream(loaded) -> None:
    assert loaded(
        """
cpu, device = load("cpu"), load("openreg")
given = arguments(8, "openreg")
device(*given)
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
with torch.openreg.operator_paths() as paths:
    results = device(*given)
print(torch.openreg.current_stream().query())
print({path for name, path in paths.calls if name.startswith("compiled::")})
gate.set()
print(equal(results, cpu(*arguments(8, "cpu"))))
""",
        OPENREG_INLINE_BYTES="0",
    ) == ["False", "{'enqueued'}", "True"]


def test_side_stream_runs_the_kernels(loaded) -> None:
    assert loaded(
        """
cpu, device = load("cpu"), load("openreg")
given = arguments(8, "openreg")
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
side = torch.Stream("openreg")
with side:
    results = device(*given)
side.synchronize()
with side:
    print(equal(results, cpu(*arguments(8, "cpu"))))
gate.set()
""",
        OPENREG_INLINE_BYTES="0",
    ) == ["True"]


def test_model_may_end_before_its_kernels(loaded) -> None:
    assert loaded(
        """
cpu, device = load("cpu"), load("openreg")
given = arguments(8, "openreg")
device(*given)  # the first call waits: it computes constants
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
results = device(*given)
threading.Timer(0.2, gate.set).start()
del device
print(equal(results, cpu(*arguments(8, "cpu"))))
""",
        OPENREG_INLINE_BYTES="0",
    ) == ["True"]


def test_model_may_be_alive_at_exit_behind_a_function_in_python(loaded) -> None:
    assert loaded(
        """
device = load("openreg")
given = arguments(8, "openreg")
device(*given)
Device(0).default_stream.launch(threading.Event().wait, 5)
results = device(*given)
print("end", flush=True)
""",
        OPENREG_INLINE_BYTES="0",
    ) == ["end"]


@pytest.mark.parametrize("inline_bytes", [0, 2**30])
def test_first_call_waits_without_the_gil(loaded, inline_bytes: int) -> None:
    assert loaded(
        """
cpu, device = load("cpu"), load("openreg")
given = arguments(8, "openreg")
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
threading.Timer(0.5, gate.set).start()
print(equal(device(*given), cpu(*arguments(8, "cpu"))))
""",
        OPENREG_INLINE_BYTES=str(inline_bytes),
    ) == ["True"]


def test_package_is_loaded_behind_a_held_stream(loaded) -> None:
    assert loaded("""
cpu = load("cpu")
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
threading.Timer(0.5, gate.set).start()
print(equal(load("openreg")(*arguments(8, "openreg")), cpu(*arguments(8, "cpu"))))
""") == ["True"]


@pytest.mark.parametrize("inline_bytes", [0, 2**30])
def test_threads_call_a_model_at_once(loaded, inline_bytes: int) -> None:
    assert loaded(
        """
cpu, device = load("cpu"), load("openreg")
batches = (2, 8, 17, 64)
expected = {batch: cpu(*arguments(batch, "cpu")) for batch in batches}
given = {batch: arguments(batch, "openreg") for batch in batches}
right = []

def work(batch):
    for _ in range(10):
        right.append(equal(device(*given[batch]), expected[batch]))

threads = [threading.Thread(target=work, args=(batch,)) for batch in batches]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(right), all(right))
""",
        OPENREG_INLINE_BYTES=str(inline_bytes),
    ) == ["40 True"]


def test_constants_are_updated_behind_a_held_stream(loaded) -> None:
    assert loaded("""
device = load("openreg")
given = arguments(8, "openreg")
device(*given)
other = make_model(0).state_dict()
new = {name: other[name].to("openreg") for name in device.get_constant_fqns()}
gate = threading.Event()
Device(0).default_stream.launch(gate.wait, 60)
threading.Timer(0.5, gate.set).start()
device.load_constants(new, check_full_update=True)
print(equal(device(*given), load("cpu")(*arguments(8, "cpu"))))
""") == ["True"]


def test_constants_are_updated(loaded) -> None:
    assert loaded("""
device = load("openreg")
given = arguments(4, "openreg")
before = on_host(device(*given))
# Constants of a few elements are numbers of the code, as for other devices.
names = device.get_constant_fqns()
other = make_model(1).state_dict()
new = {name: other[name] for name in names}
device.load_constants(
    {name: value.to("openreg") for name, value in new.items()}, check_full_update=True
)
model = make_model(0)
model.load_state_dict(new, strict=False)
after = on_host(device(*given))
expected = model(*arguments(4, "cpu"))
print("table.weight" in names)
print([a.allclose(b, atol=1e-5) for a, b in zip(after, expected)])
print(before[0].allclose(after[0]))
""") == ["True", "[True, True, True, True]", "False"]


@pytest.mark.parametrize("inline_bytes", [0, 2**30])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [("rows + 20", "index out of bounds"), ("divisors * 0", "ZeroDivisionError")],
)
def test_refused_value_is_an_error_in_the_kernels_words(
    loaded, inline_bytes: int, wrong: str, words: str
) -> None:
    changed = wrong.partition(" ")[0]
    assert loaded(
        f"""
cpu, device = load("cpu"), load("openreg")
rows, divisors = arguments(4, "openreg")
{changed} = {wrong}
try:
    device(rows, divisors)[3].cpu()
except RuntimeError as error:
    print({words!r} in str(error) or str(error))
results = device(*arguments(4, "openreg"))
print(equal(results, cpu(*arguments(4, "cpu"))))
""",
        OPENREG_INLINE_BYTES=str(inline_bytes),
    ) == ["True", "True"]


SANITIZED = """
from torch.openreg import sanitizer
device = load("openreg")
device(*arguments(4, "openreg"))  # the first call computes constants
main, side = torch.accelerator.current_stream(), torch.Stream("openreg")

def look(program):
    torch.accelerator.synchronize()
    try:
        with sanitizer.enabled():
            program(*arguments(4, "openreg"))
    except sanitizer.UnsynchronizedAccessError as error:
        names = [use.operator for use in (error.previous, error.current)]
        print([name.partition("_")[0] for name in names if "compiled" in name])
    else:
        print("not reported")
"""


def test_sanitizer_does_not_report_models_that_wait(loaded) -> None:
    assert (
        loaded(
            f"""
{SANITIZED}
def plain(rows, divisors):
    for _ in range(3):
        results = device(rows, divisors)
        rows.copy_(rows.flip(0))
    on_host(results)

def side_stream(rows, divisors):
    side.wait_stream(main)
    with side:
        results = device(rows, divisors)
    main.wait_stream(side)
    rows.zero_()
    [result.sum() for result in results]

def prefetch(rows, divisors):
    for batch in (rows.cpu().pin_memory(), rows.cpu().pin_memory()):
        with side:
            there = batch.to("openreg", non_blocking=True)
        main.wait_stream(side)
        there.record_stream(main)
        on_host(device(there, divisors))

look(plain)
look(side_stream)
look(prefetch)
"""
        )
        == ["not reported"] * 3
    )


def test_sanitizer_reports_kernels_of_a_model(loaded) -> None:
    assert (
        loaded(
            f"""
{SANITIZED}
def input_of_another_stream(rows, divisors):
    side.wait_stream(main)
    divisors.add_(1)
    with side:
        device(rows, divisors)

def result_without_a_wait(rows, divisors):
    side.wait_stream(main)
    results = device(rows, divisors)
    with side:
        results[3].sum()

def input_written_meanwhile(rows, divisors):
    side.wait_stream(main)
    results = device(rows, divisors)
    with side:
        divisors.fill_(2)

look(input_of_another_stream)
look(result_without_a_wait)
look(input_written_meanwhile)
"""
        )
        == ["['compiled::cpp']"] * 3
    )
