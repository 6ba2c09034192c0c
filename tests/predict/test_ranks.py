# SPDX-License-Identifier: BSD-3-Clause
"""Tests of several ranks: their collectives start when the last rank arrives."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import openreg_predict
from openreg_predict import Call, Prediction, Record, TensorFacts
from openreg_predict.__main__ import main
from openreg_predict._records.record import HostOps, Meet, Op
from support.ranks import run_ranks

GROUP = "0,1:0"


def tensor(storage: int, size: int = 1024) -> TensorFacts:
    return TensorFacts((size, size), (size, 1), "f32", storage, "openreg")


def products(count: int) -> list[Op]:
    arguments = {"self": tensor(1), "mat2": tensor(2)}
    return [Op(Call("mm", arguments, [tensor(3)])) for _ in range(count)]


def collective(group: str = GROUP) -> Op:
    call = Call("all_reduce", {"tensors": [tensor(3)]}, [])
    return Op(call, ranks=2, group=group)


def collectives_of(prediction: Prediction) -> list[tuple[float, float]]:
    spans = prediction.timeline.spans
    return [(s.start, s.end) for s in spans if s.work.kind == "collective"]


def test_collectives_start_with_the_last_rank() -> None:
    fast = Record([*products(1), collective(), *products(1)], rank=0)
    slow = Record([*products(9), collective(), *products(1)], rank=1)
    both = openreg_predict.predict_ranks([fast, slow], "h100-sxm")
    first, second = both.ranks.values()
    assert collectives_of(first) == collectives_of(second)
    alone = slow.predict("h100-sxm")
    assert collectives_of(second) == collectives_of(alone)
    (start, _), (early, _) = (
        *collectives_of(first),
        *collectives_of(fast.predict("h100-sxm")),
    )
    waited = start - early
    assert waited > 0
    assert first.bound["waiting"] == pytest.approx(waited)
    assert second.bound["waiting"] == 0
    assert both.step.value == second.step.value == alone.step.value


def test_a_change_of_the_device_concerns_all_ranks() -> None:
    fast = Record([*products(1), collective()], rank=0)
    slow = Record([*products(9), collective()], rank=1)
    both = openreg_predict.predict_ranks([fast, slow], "h100-sxm")
    first, second = (p.what_if for p in both.ranks.values())
    assert first == pytest.approx(second)
    assert first["infinite link"] < both.step.value


def test_collectives_on_host_tensors_hold_the_threads() -> None:
    events = [Meet(0, GROUP), *products(1)]
    early = Record([HostOps(0, 1), *events], rank=0)
    late = Record([HostOps(0, 1000), *events], rank=1)
    both = openreg_predict.predict_ranks([early, late], "t4")
    starts = [p.timeline.spans[0].start for p in both.ranks.values()]
    assert starts[0] == starts[1] > early.predict("t4").timeline.spans[0].start


def test_groups_of_some_ranks_do_not_hold_the_others() -> None:
    records = [
        Record([*products(1), collective("0,1:a")], rank=0),
        Record([*products(9), collective("0,1:a")], rank=1),
        Record([*products(1), collective("2,3:b")], rank=2),
        Record([*products(1), collective("2,3:b")], rank=3),
    ]
    ranks = openreg_predict.predict_ranks(records, "t4").ranks
    starts = [collectives_of(p)[0][0] for p in ranks.values()]
    assert starts[0] == starts[1] > starts[2] == starts[3]


def test_ranks_in_different_orders_are_refused() -> None:
    first = Record([collective("0,1:a"), collective("0,1:b")], rank=0)
    second = Record([collective("0,1:b"), collective("0,1:a")], rank=1)
    with pytest.raises(openreg_predict.RanksError, match=r"same order"):
        openreg_predict.predict_ranks([first, second], "t4")


def test_records_of_one_rank_are_refused() -> None:
    with pytest.raises(openreg_predict.RanksError, match=r"different ranks, got: 0, 0"):
        openreg_predict.predict_ranks([Record(), Record()], "t4")


def step(rank: int, folder: Path) -> None:
    """Trains with unequal work, and writes the record of the rank."""
    torch.set_num_threads(1)
    weight = torch.rand(256, 256, device="openreg")
    with openreg_predict.record() as record:
        x = weight
        for _ in range(20 if rank else 2):
            x = x @ weight
        dist.all_reduce(x)
        dist.all_reduce(torch.ones(1))  # by gloo, on the host
        x.sum().item()
    record.save(folder / f"rank{rank}.jsonl")


@pytest.mark.timeout(300)
def test_two_real_ranks_are_predicted_together(tmp_path: Path) -> None:
    run_ranks(partial(step, folder=tmp_path), 2, seconds=240)
    records = [Record.load(tmp_path / f"rank{rank}.jsonl") for rank in (0, 1)]
    assert [record.rank for record in records] == [0, 1]
    for record in records:
        (op,) = (op for op in record.ops() if op.ranks)
        assert (op.call.name, op.ranks, op.group) == ("all_reduce", 2, GROUP)
        assert [e.group for e in record.events if isinstance(e, Meet)] == [GROUP]
    both = openreg_predict.predict_ranks(records, "h100-sxm")
    fast, slow = both.ranks.values()
    assert collectives_of(fast) == collectives_of(slow)
    assert fast.bound["waiting"] > slow.bound["waiting"]
    again = openreg_predict.predict_ranks(records[::-1], "h100-sxm")
    assert again.to_dict() == both.to_dict()


SCRIPT = """
import torch
import torch.distributed as dist
dist.init_process_group("occl")
rank = dist.get_rank()
x = torch.rand(256, 256, device=f"openreg:{rank % torch.openreg.device_count()}")
for _ in range(30 * rank + 1):
    x = x @ x
dist.all_reduce(x)
dist.destroy_process_group()
"""


@pytest.mark.timeout(300)
def test_command_runs_a_script_on_several_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out, records = (tmp_path / n for n in ("s.py", "out.json", "records"))
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "openreg_predict", "run", "--device", "t4"]
    files = ["--json", str(out), "--record", str(records)]
    done = subprocess.run(
        [*command, "--ranks", "2", *files, str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    waiting = [found["ranks"][rank]["bound"]["waiting"] for rank in ("0", "1")]
    assert waiting[0] > waiting[1]
    assert main(["run", "--device", "t4", str(records)]) == 0
    assert capsys.readouterr().out == done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--ranks", "0", "s.py"], "argument --ranks: 0 is not 1 or more"),
        (["--ranks", "2", "--dry", "s.py"], "argument --ranks: a dry run"),
        (["--ranks", "2", "none.py"], "argument script: 'none.py' is not a file"),
        (["."], "argument script: '.' has no rank0.jsonl"),
    ],
)
def test_wrong_ranks_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    error: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.py").touch()
    assert main(["run", "--device", "t4", *words]) == 2
    assert error in capsys.readouterr().err
