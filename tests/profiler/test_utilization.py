# SPDX-License-Identifier: BSD-3-Clause
"""utilization() of programs with a known inefficiency, and its parts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile, schedule

import openreg_profiler
from openreg_profiler import _page_style, _utilization
from profiler.conftest import BOTH
from support.programs import variables
from support.versions import TORCH

HOST_BOUND = """
import time
import torch
x = torch.rand(64, 64, device="openreg")
for _ in range(10):
    x = torch.tanh(x @ x)
    time.sleep(0.02)  # the waste
"""

NEEDLESS_ITEM = """
import time
import torch
w = torch.rand(400, 400, device="openreg") / 200
x = torch.rand(400, 400, device="openreg")
seen = []
for _ in range(10):
    x = torch.tanh(x @ w @ w @ w)
    loss = x.sum()
    seen.append(loss.item())  # the waste
    time.sleep(0.01)  # work of the host in each step
"""

PAGEABLE_COPY = """
import torch
data = torch.zeros(3000, 3000)
y = torch.empty(3000, 3000, device="openreg")
for _ in range(30):
    y.copy_(data)  # the waste
    z = y[:8].sum()
"""

COLLECTIVE = """
import torch
import torch.distributed as dist
dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
grads = torch.rand(20_000_000, device="openreg")
x = torch.rand(64, 64, device="openreg")
for _ in range(5):
    x = torch.tanh(x @ x)
    dist.all_reduce(grads, async_op=False)  # the waste
dist.destroy_process_group()
"""


def report(source: str, folder: Path) -> dict[str, object]:
    """Runs ``python -m torch_openreg profile`` on a program; returns its JSON."""
    script = folder / "script.py"
    script.write_text(source, encoding="utf-8")
    out, page = folder / "report.json", folder / "report.html"
    command = [sys.executable, "-m", "torch_openreg", "profile"]
    files = ["--json", str(out), "--html", str(page)]
    done = subprocess.run(
        [*command, *files, str(script)],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "changes that would save most" in done.stdout
    assert page.read_text(encoding="utf-8").count("<svg") >= 1
    found: dict[str, object] = json.loads(out.read_text(encoding="utf-8"))
    return found


def line_of_waste(source: str) -> str:
    (line,) = (
        number
        for number, text in enumerate(source.splitlines(), 1)
        if text.endswith("# the waste")
    )
    return f"script.py:{line}"


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (HOST_BOUND, "host"),
        (NEEDLESS_ITEM, "synchronize"),
        (PAGEABLE_COPY, "copy"),
        pytest.param(
            *(COLLECTIVE, "collective"),
            marks=pytest.mark.differs_in_process("occl"),
        ),
    ],
    ids=["host-bound", "needless item", "pageable copy", "collective"],
)
def test_waste_of_a_program_is_named_first_with_its_line(
    tmp_path: Path, source: str, cause: str
) -> None:
    changes = report(source, tmp_path)["changes"]
    assert isinstance(changes, list)
    assert (changes[0]["cause"], changes[0]["line"]) == (cause, line_of_waste(source))
    assert len(changes) <= 10
    assert changes == sorted(changes, key=lambda change: -change["seconds"])


def profiled(*words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Runs ``python -m torch_openreg profile``, after some code if that is given."""
    start = ["-m", "torch_openreg"]
    if code:
        run = "import runpy; runpy.run_module('torch_openreg', run_name='__main__')"
        start = ["-c", f"{code}; {run}"]
    return subprocess.run(
        [sys.executable, *start, "profile", *words],
        env=variables(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)  # two programs, one after the other
def test_profile_also_predicts_the_script_on_a_described_device(tmp_path: Path) -> None:
    pytest.importorskip("openreg_predict")
    script = tmp_path / "script.py"
    script.write_text(NEEDLESS_ITEM, encoding="utf-8")
    done = profiled("--predict", "t4", str(script))
    assert done.returncode == 0, done.stderr
    measured, predicted = done.stdout.split("\nprediction for t4\n")
    assert "launches" in measured
    assert "80 %:" in predicted
    assert "fits" in predicted


@pytest.mark.parametrize(
    ("device", "code", "status", "error"),
    [
        (
            "t4",
            "import sys; sys.modules['openreg_predict'] = None",
            2,
            "argument --predict: needs openreg-predict, which is not installed; run: "
            "pip install openreg-predict",
        ),
        ("t5", "", 1, "'t5'"),
    ],
    ids=["package", "device"],
)
def test_predict_is_refused_before_the_script_runs(
    tmp_path: Path, device: str, code: str, status: int, error: str
) -> None:
    if not code:
        pytest.importorskip("openreg_predict")
    script = tmp_path / "script.py"
    script.write_text("print('the script runs')", encoding="utf-8")
    done = profiled("--predict", device, str(script), code=code)
    assert done.returncode == status
    assert error in done.stderr
    assert "the script runs" not in done.stdout


def test_shares_and_rates_are_those_of_the_kernels() -> None:
    x = torch.rand(300, 300, device="openreg")
    with profile(activities=BOTH, with_flops=True, record_shapes=True) as result:
        for _ in range(5):
            x = (x @ x).div_(300)
        torch.openreg.synchronize()
    found = torch.openreg.utilization(result)
    kernels = sum(each.end - each.start for each in found.work) * 1e-9
    whole = next(row for row in found.busy if row.stream is None)
    assert whole.seconds == pytest.approx(kernels, rel=1e-6)
    assert 0 < whole.share <= 1
    (product,) = (row for row in found.operators if row.name == "aten::mm")
    assert product.flops == pytest.approx(5 * 2 * 300**3 / product.seconds)
    # With messages, a first call requests its results' metadata, which is one more
    # copy.
    placed = [each for each in found.work if each.kind == "memcpy"]
    assert product.launches == 5 + len(placed)
    moved = 5 * 2 * 300 * 300 * 4 + sum(each.bytes for each in placed)
    assert product.bandwidth == pytest.approx(moved / product.seconds)
    assert product.flops is not None
    assert product.bandwidth is not None
    machine = found.machine
    assert product.share == max(
        product.flops / machine.flops, product.bandwidth / machine.bandwidth
    )
    idle = sum(gap.end - gap.start for gap in found.gaps) * 1e-9
    assert idle + whole.seconds <= found.seconds + 1e-6


def test_operations_of_attention_are_counted_in_both_directions() -> None:
    b, h, s, t, d = 2, 4, 64, 96, 32
    query = torch.rand(b, h, s, d, device="openreg", requires_grad=True)
    key, value = (
        torch.rand(b, h, t, d, device="openreg", requires_grad=True) for _ in "kv"
    )
    with profile(activities=BOTH, with_flops=True, record_shapes=True) as result:
        scaled_dot_product_attention(query, key, value).sum().backward()
        torch.openreg.synchronize()
    rows = {row.name: row for row in torch.openreg.utilization(result).operators}
    name = "aten::_scaled_dot_product_flash_attention_for_cpu"
    product = 2 * b * h * s * t * d
    # Scores and their product with the values; and five products with gradients.
    for row, products in ((rows[name], 2), (rows[f"{name}_backward"], 5)):
        assert row.flops == pytest.approx(products * product / row.seconds)


def test_names_of_python_functions_are_not_read() -> None:
    class Freed:
        """An event of a function whose code was freed during the profile."""

        def activity_type(self) -> str:
            return "python_function"

        def name(self) -> str:
            raise UnicodeDecodeError("utf-8", b"\xae", 0, 1, "invalid start byte")

    assert _utilization._attention_flops(Freed()) == 0


def test_launches_are_counted_by_step() -> None:
    x = torch.rand(8, device="openreg")
    with profile(
        activities=BOTH, schedule=schedule(wait=0, warmup=1, active=3, repeat=1)
    ) as p:
        for _ in range(4):
            x = (x + 1) * 2
            p.step()
    found = torch.openreg.utilization(p)
    assert (found.steps, found.launches) == (3, 6)
    assert found.launches_per_step == 2


def test_report_names_the_owners_of_memory() -> None:
    model = torch.nn.Linear(64, 64).to("openreg")
    x = torch.rand(32, 64, device="openreg")
    with profile(
        activities=BOTH, record_shapes=True, profile_memory=True, with_stack=True
    ) as result:
        model(x).sum().backward()
    memory = torch.openreg.utilization(result).memory
    assert memory["parameter"] >= sum(p.nbytes for p in model.parameters())
    assert memory["gradient"] > 0


def test_report_is_text_json_and_a_page() -> None:
    x = torch.rand(100, 100, device="openreg")
    with profile(activities=BOTH, with_flops=True) as result:
        (x @ x).sum().item()
    found = torch.openreg.utilization(result)
    assert isinstance(found, openreg_profiler.Utilization)
    assert "aten::mm" in found.table()
    assert json.loads(json.dumps(found.to_dict()))["launches"] == len(found.work)
    kernels = [each.name for each in found.work if each.kind == "kernel"]
    assert kernels == ["mm_kernel", "sum_kernel"]
    page = found.html()
    assert len(re.findall('<svg viewBox="0 0 900', page)) == 2
    assert "<circle" in page
    assert _page_style.STYLE in page
    assert "http" not in page  # needs no other file


# PyTorch warns once if a program requests events during a cycle.
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_report_leaves_the_trace_to_the_program(tmp_path: Path) -> None:
    """PyTorch prints it once."""
    x = torch.rand(100, device="openreg")
    reports = []

    def look(p: profile) -> None:
        reports.append(torch.openreg.utilization(p))
        p.export_chrome_trace(str(tmp_path / f"{len(reports)}.json"))
        reports.append(torch.openreg.utilization(p))

    with profile(
        activities=BOTH,
        schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=look,
    ) as p:
        for _ in range(4):
            x = x + 1
            p.step()
    assert len(list(tmp_path.iterdir())) == 2
    for one, other in (reports[:2], reports[2:]):
        assert one == other
        assert [row.name for row in one.operators] == ["aten::add"]
        assert one.operators[0].bandwidth is not None
    assert reports[0] != reports[2]


def test_code_that_is_gone_does_no_harm() -> None:
    """PyTorch keeps the addresses of its names, as for an imported module."""
    x = torch.rand(8, device="openreg")

    def call_and_forget() -> None:
        name = "".join(["gone"] * 30)
        code = compile("x.exp()\n", f"{name}.py", "exec").replace(co_name=name)
        exec(code, {"x": x})

    with profile(activities=BOTH, with_stack=True, with_flops=True) as result:
        call_and_forget()
        taken = [b"\xae" * size for size in range(100, 300) for _ in range(20)]
    if TORCH < (2, 14):  # later versions raise no error here
        with pytest.raises(UnicodeDecodeError):  # otherwise nothing is tested
            result.events()
    del taken
    found = torch.openreg.utilization(result)
    assert [row.name for row in found.operators] == ["aten::exp"]


def test_profile_without_work_is_refused() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as result:
        torch.ones(2)
    with pytest.raises(ValueError, match="has no device work"):
        torch.openreg.utilization(result)


def test_profile_of_an_old_trace_is_refused() -> None:
    x = torch.ones(4, device="openreg")
    profiles = []
    for _ in range(9):
        with profile(activities=BOTH) as result:
            x + 1
        profiles.append(result)
    torch.openreg.utilization(profiles[1])
    with pytest.raises(ValueError, match="too old: expected one of the last eight"):
        torch.openreg.utilization(profiles[0])


def test_missing_script_is_named() -> None:
    command = [sys.executable, "-m", "torch_openreg", "profile", "nowhere.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "script nowhere.py is not a file" in done.stderr
