# SPDX-License-Identifier: BSD-3-Clause
"""The flight record: what ranks did last, and which of them is in the others' way."""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from openreg_distributed import Options, flight
from support.programs import run, variables
from torch_openreg.testing import RanksFailedError, run_each_rank, run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"
PREFIX = "TORCH_FR_DUMP_TEMP_FILE"


def begin(seconds: float, share_memory: bool = True) -> None:
    dist.init_process_group(
        "occl",
        timeout=datetime.timedelta(seconds=seconds),
        pg_options=Options(share_memory=share_memory),
    )
    dist.all_reduce(torch.ones(4, device=DEVICE))
    torch.accelerator.synchronize()


def rank_1_does_not_come(rank: int, share_memory: bool) -> None:
    begin(2, share_memory)
    tensor = torch.ones(4, device=DEVICE)
    if rank == 1:
        flight.write()  # as its program can, with its last call
        time.sleep(10)
        return
    dist.all_gather_single(torch.ones(8, device=DEVICE), tensor)
    dist.broadcast(tensor, 0)
    with pytest.raises(RuntimeError, match="what this rank did last is in /"):
        torch.accelerator.synchronize()


def rank_1_calls_something_else(rank: int) -> None:
    begin(60)
    tensor = torch.ones(4, 2, device=DEVICE, dtype=torch.int32)
    if rank == 0:
        dist.all_reduce(tensor)
    else:
        dist.broadcast(tensor, 0)
    torch.accelerator.synchronize()


def rank_1_sends_with_another_tag(rank: int) -> None:
    begin(2)
    tensor = torch.ones(3, device=DEVICE)
    if rank == 0:
        work = dist.irecv(tensor, 1, tag=5)
    else:
        work = dist.isend(torch.ones(1 << 20, device=DEVICE), 0, tag=6)
    work.wait()
    torch.accelerator.synchronize()
    flight.write()  # of rank 1, whose message rank 0 has taken in


def one_rank_asks(rank: int, folder: Path) -> None:
    tensor = torch.ones(2, device=DEVICE)
    work = [dist.all_reduce(tensor, async_op=True) for _ in range(9)]
    torch.accelerator.synchronize()
    assert all(each.is_completed() for each in work)
    found = flight.record()
    assert found["reason"] == "asked for"
    numbers = [each["collective_seq_id"] for each in found["entries"]]
    assert numbers == [6, 7, 8, 9]  # OPENREG_FLIGHT_RECORDS=4
    last = found["entries"][-1]
    assert last["state"] == "completed"
    assert last["frames"] == []  # OPENREG_FLIGHT_STACKS=0
    times = [last[f"time_{what}_ns"] for what in ("created", "discovered_started")]
    times += [last["time_discovered_completed_ns"], found["time_ns"], time.time_ns()]
    assert times == sorted(times)
    path = folder / 'with "quotes" and ünicode.json'
    assert flight.write(path) == path
    assert flight.load([path])[0]["entries"] == found["entries"]
    assert [*folder.iterdir()] == [path]
    with pytest.raises(RuntimeError, match="cannot be written to /no/such/folder/x"):
        flight.write("/no/such/folder/x")
    assert flight.explain([found]).endswith("all that the records have is complete")


@pytest.fixture
def prefix(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(PREFIX, f"{tmp_path}/rank_")
    return tmp_path


@pytest.mark.parametrize("share_memory", [True, False], ids=["shared memory", "gloo"])
def test_the_rank_that_does_not_come_is_named(prefix, share_memory):
    first, _ = run_each_rank(
        rank_1_does_not_come, 2, share_memory, seconds=40, grace=20, backend=None
    )
    assert not first.failure, first.failure
    assert sorted(each.name for each in prefix.iterdir()) == [
        "rank_0.json",
        "rank_1.json",
    ]
    records = flight.load([prefix])
    assert [each["rank"] for each in records] == [0, 1]
    entries = records[0]["entries"]
    states = [(each["profiling_name"], each["state"]) for each in entries]
    assert states == [
        ("occl:all_reduce", "completed"),
        ("occl:_all_gather_base", "failed"),
        ("occl:broadcast", "scheduled"),  # when the other failed
    ]
    assert entries[1]["input_sizes"] == [[4]]
    assert entries[1]["output_sizes"] == [[8]]
    assert entries[1]["output_dtypes"] == ["Float"]
    text = flight.explain(records)
    assert "group '0' (default_pg) of ranks 0 and 1:" in text
    assert "rank 1 did not come to number 2:" in text
    assert (
        "rank 0: _all_gather_base number 2 of [4] Float to [8] Float, failed after"
        in text
    )
    assert "rank 1: all_reduce number 1 of [4] Float, completed after" in text
    assert f"called at {__file__}:" in text
    command = (sys.executable, "-m", "openreg_distributed", "flight")
    done = run(*command, prefix, environment=variables())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(text)
    flight.to_pytorch(records, prefix / "pytorch")
    command = (sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace")
    done = run(*command, prefix / "pytorch", environment=variables())
    assert done.returncode == 0, done.stderr
    assert "Not all ranks joining collective, sequence number: 2" in done.stderr
    assert "missing ranks: {1}" in done.stderr


def test_ranks_that_call_different_collectives_are_shown_by_the_helper():
    with pytest.raises(RanksFailedError) as caught:
        run_ranks(rank_1_calls_something_else, 2, backend=None)
    text = caught.value.flight
    assert str(caught.value).endswith(text)
    assert "the ranks called different collectives as number 2:" in text
    assert "rank 0: all_reduce number 2 of [4, 2] Int, failed" in text
    assert "rank 1: broadcast number 2 of [4, 2] Int, failed" in text


def test_a_message_that_nobody_sends_is_named():
    with pytest.raises(RanksFailedError) as caught:
        run_ranks(rank_1_sends_with_another_tag, 2, backend=None)
    text = caught.value.flight
    assert "rank 0: recv 0<-1 number 1 of [3] Float with tag 5, failed" in text
    assert "rank 1 has sent nothing for it with tag 5" in text


def test_a_program_asks_for_its_record(prefix, monkeypatch):
    monkeypatch.setenv("OPENREG_FLIGHT_RECORDS", "4")
    monkeypatch.setenv("OPENREG_FLIGHT_STACKS", "0")
    run_ranks(one_rank_asks, 1, prefix, backend="occl")


FAILING = """
import torch
import torch.distributed as dist
dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(1, device="openreg")
(work,) = dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, 0)])
try:
    work.wait()
    torch.accelerator.synchronize()
    flight.write()  # of rank 1, whose message rank 0 has taken in
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("files", ["1", "0"])
def test_files_are_in_the_folder_for_temporary_ones(tmp_path, files):
    environment = variables(TMPDIR=str(tmp_path), OPENREG_FLIGHT_FILES=files)
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    done = run(sys.executable, "-c", FAILING, environment=environment)
    assert "has no send in its batch" in done.stdout, done.stderr
    folder = tmp_path / f"openreg-flight-{os.geteuid()}-{os.getpid()}"
    if files == "0":
        assert not folder.exists()
        assert "rank_0.json" not in done.stdout
        return
    file = folder / "rank_0.json"
    assert f"what this rank did last is in {file}" in done.stdout
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [*folder.iterdir()] == [file]
    (record,) = flight.load([folder])
    assert record["entries"][0]["profiling_name"] == "occl:recv 0<-0"
    assert "has no send in its batch" in record["reason"]


def test_the_folder_of_another_is_not_used(tmp_path):
    folder = tmp_path / f"openreg-flight-{os.geteuid()}-{os.getpid()}"
    folder.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    environment = variables(TMPDIR=str(tmp_path))
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    done = run(sys.executable, "-c", FAILING, environment=environment)
    assert f"{folder} is no folder of this user" in done.stdout, done.stderr
    assert [*(tmp_path / "elsewhere").iterdir()] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "is no flight record"),
        ("[]", "is no flight record"),
        ('{"rank": 0}', "is no flight record"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    file = tmp_path / "rank_0.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        flight.load([file])


def test_two_files_of_one_rank_are_refused(tmp_path):
    record = {"rank": 3, "entries": [], "pg_config": {}, "time_ns": 0}
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(record))
    with pytest.raises(ValueError, match="is of rank 3, as another file is"):
        flight.load([tmp_path])
