# SPDX-License-Identifier: BSD-3-Clause
"""The flight record: the last collectives of ranks, and which rank blocks others."""

from __future__ import annotations

import datetime
import gc
import json
import os
import sys
import time
import types
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import openreg_runtime as runtime
from openreg_distributed import flight
from support.latches import Latch
from support.limited_groups import begin
from support.programs import run, variables
from support.ranks import run_each_rank, run_ranks
from torch_openreg.testing import RanksFailedError

pytestmark = pytest.mark.differs_in_process("occl", run=False)

DEVICE = "openreg"
PREFIX = "TORCH_FR_DUMP_TEMP_FILE"


def rank_1_does_not_come(rank: int, share_memory: bool) -> None:
    begin(2, share_memory)
    tensor = torch.ones(4, device=DEVICE)
    if rank == 1:
        flight.write()  # like a program in its last call
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
    flight.write()  # rank 1's, whose message rank 0 has received


def one_rank_asks(rank: int, folder: Path) -> None:
    tensor = torch.ones(2, device=DEVICE)
    work = [dist.all_reduce(tensor, async_op=True) for _ in range(9)]
    torch.accelerator.synchronize()
    assert all(each.is_completed() for each in work)
    found = flight.record()
    assert found["reason"] == "written on request"
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
    with pytest.raises(RuntimeError, match="cannot be written to /missing/folder/x"):
        flight.write("/missing/folder/x")
    assert flight.explain([found]).endswith("all recorded calls are complete")


@pytest.fixture
def prefix(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(PREFIX, f"{tmp_path}/rank_")
    return tmp_path


@pytest.mark.timeout(200)  # starts two interpreters in sequence, with PyTorch
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
    tokens = [each["pg_config"]["0"]["token"] for each in records]
    assert tokens[0] == tokens[1] != 0
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
    assert "rank 1 did not call number 2:" in text
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


def test_a_message_without_a_sender_is_named():
    with pytest.raises(RanksFailedError) as caught:
        run_ranks(rank_1_sends_with_another_tag, 2, backend=None)
    text = caught.value.flight
    assert "rank 0: recv 0<-1 number 1 of [3] Float with tag 5, failed" in text
    assert "rank 1 has sent nothing for it with tag 5" in text


def test_a_program_asks_for_its_record(prefix, monkeypatch):
    monkeypatch.setenv("OPENREG_FLIGHT_RECORDS", "4")
    monkeypatch.setenv("OPENREG_FLIGHT_STACKS", "0")
    run_ranks(one_rank_asks, 1, prefix, backend="occl")


# The other rank is a child of this one, and sends nothing.
FAILING = """
import datetime
import os
import signal
import sys

import torch
import torch.distributed as dist

child = os.fork()
dist.init_process_group(
    "occl",
    store=dist.FileStore(sys.argv[1], 2),
    rank=0 if child else 1,
    world_size=2,
    timeout=datetime.timedelta(seconds=2),
)
if not child:
    signal.alarm(60)
    signal.pause()
try:
    dist.recv(torch.ones(1, device="openreg"), 1)
    torch.accelerator.synchronize()
except RuntimeError as error:
    print(error)
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def failing(folder: Path, **added: str) -> str:
    environment = variables(TMPDIR=str(folder), **added)
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    store = folder.with_name("store")
    done = run(sys.executable, "-c", FAILING, store, environment=environment)
    assert "timed out after 2000 ms" in done.stdout, done.stderr
    return done.stdout


@pytest.fixture
def temporary(tmp_path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("restarts", [None, "2"])
def test_files_are_in_the_folder_for_temporary_ones(temporary, restarts):
    folder = temporary / f"openreg-flight-{os.geteuid()}-{os.getpid()}"
    added = {}
    if restarts:  # restarted ranks have the same parent
        added["TORCHELASTIC_RESTART_COUNT"] = restarts
        folder = folder.with_name(f"{folder.name}-2")
    text = failing(temporary, **added)
    file = folder / "rank_0.json"
    assert f"what this rank did last is in {file}" in text
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [*folder.iterdir()] == [file]
    (record,) = flight.load([folder])
    assert record["entries"][0]["profiling_name"] == "occl:recv 0<-1"
    assert "timed out after 2000 ms" in record["reason"]


def test_a_setting_keeps_failures_from_writing_files(temporary):
    text = failing(temporary, OPENREG_FLIGHT_FILES="0")
    assert "rank_0.json" not in text
    assert not [*temporary.glob("openreg-flight-*")]


def test_the_folder_of_another_is_not_used(temporary):
    folder = temporary / f"openreg-flight-{os.geteuid()}-{os.getpid()}"
    folder.symlink_to(temporary / "elsewhere")
    (temporary / "elsewhere").mkdir()
    assert f"{folder} is not a directory that this user owns" in failing(temporary)
    assert [*(temporary / "elsewhere").iterdir()] == []


# Creating frame objects may run the garbage collector.
FINALIZERS = """
import gc

import torch
import torch.distributed as dist

dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
tensor, other = torch.ones(4, device="openreg"), torch.ones(1, device="openreg")


class Collected:
    def __init__(self):
        self.cycle = self

    def __del__(self):
        dist.all_reduce(other)


for i in range(300):
    Collected()
    gc.set_threshold(1 + i % 7)
    dist.all_reduce(tensor)
print(tensor.tolist())
"""


def test_a_finalizer_may_call_a_collective():
    environment = variables()
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "1"
    done = run(sys.executable, "-c", FINALIZERS, environment=environment)
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0]\n", done.stderr


def code_at(number: int) -> types.CodeType:
    """Code in a separate file with two calls."""
    call = "  dist.all_reduce(tensor)\n"
    source = f"def place_{number}():\n{call}{call}place_{number}()"
    return compile(source, f"file_{number}.py", "exec")


def many_places_call(rank: int) -> None:
    names = {"dist": dist, "tensor": torch.ones(2, device=DEVICE)}
    codes = []
    for number in range(700):
        code = code_at(number)
        codes.append(weakref.ref(code))
        exec(code, names)
        del names[f"place_{number}"], code
    found = []
    for entry in flight.record()["entries"][-1400:]:
        own = [each for each in entry["frames"] if each["filename"][:5] == "file_"]
        found.append([(each["name"], each["filename"], each["line"]) for each in own])
    assert found == [
        [(f"place_{i}", f"file_{i}.py", line), ("<module>", f"file_{i}.py", 4)]
        for i in range(700)
        for line in (2, 3)
    ]
    gc.collect()
    assert codes[0]() is None


@pytest.fixture
def one_recorder(monkeypatch):
    """Turns off PyTorch's own recorder, which keeps the code too since torch 2.15."""
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "0")


@pytest.mark.usefixtures("one_recorder")
def test_each_call_has_the_frames_of_its_place():
    run_ranks(many_places_call, 1, backend="occl")


def code_calls_as_it_ends(rank: int) -> None:
    names = {"dist": dist, "tensor": torch.ones(2, device=DEVICE)}
    ended = []

    def end(code: weakref.ref) -> None:
        ended.append(code)
        exec(code_at(10_000 + len(ended)), names)

    codes = []
    for number in range(700):
        code = code_at(number)
        codes.append(weakref.ref(code, end))
        exec(code, names)
        del names[f"place_{number}"], code
    gc.collect()
    assert len(ended) > 100
    assert names["tensor"].tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("one_recorder")
def test_code_may_call_a_collective_as_it_ends():
    run_ranks(code_calls_as_it_ends, 1, backend="occl")


def only_the_last_calls_are_kept(rank: int) -> None:
    tensor = torch.ones(2, device=DEVICE)
    dist.all_reduce(tensor)
    torch.accelerator.synchronize()
    stream = torch.accelerator.current_stream()
    latch = Latch(runtime.Stream.from_handle(stream.native_handle))
    for _ in range(12):
        dist.all_reduce(tensor, async_op=True)
    found = flight.record()
    states = [(e["collective_seq_id"], e["state"]) for e in found["entries"]]
    kept = (2, 3, 4, 5, 10, 11, 12, 13)  # what came first, and what came last
    assert states == [(number, "scheduled") for number in kept]
    latch.release()
    torch.accelerator.synchronize()
    numbers = [each["collective_seq_id"] for each in flight.record()["entries"]]
    assert numbers == [10, 11, 12, 13]  # OPENREG_FLIGHT_RECORDS=4


def test_calls_that_have_not_ended_are_kept(monkeypatch):
    monkeypatch.setenv("OPENREG_FLIGHT_RECORDS", "4")
    run_ranks(only_the_last_calls_are_kept, 1, backend="occl")


def groups_come_and_go(rank: int) -> None:
    tensor = torch.ones(2, device=DEVICE)
    names = []
    for calls in (False, True, False, False, False):
        group = dist.new_group()
        names.append(group.group_name)
        if calls:
            dist.all_reduce(tensor, group=group)
        dist.destroy_process_group(group)
    del group
    group = dist.new_group()
    found = flight.record()
    kept = {
        "0",
        names[1],
        names[-1],
        group.group_name,
    }  # the last one may be released later
    assert kept - {names[-1]} <= found["pg_config"].keys() <= kept
    assert found["pg_config"]["0"]["collectives"] == 0
    assert found["pg_config"][names[1]]["collectives"] == 1
    assert len({each["token"] for each in found["pg_config"].values()}) >= 3


def test_groups_are_kept_that_are_there_or_have_a_call():
    run_ranks(groups_come_and_go, 1, backend="occl")


def one_call_has_a_limit_of_its_own(rank: int) -> None:
    tensor = torch.ones(2, device=DEVICE)
    options = dist.AllreduceOptions()
    options.timeout = datetime.timedelta(seconds=7)
    dist.group.WORLD.allreduce([tensor], options).wait()
    dist.group.WORLD.allreduce([tensor]).wait()
    limits = [each["timeout_ms"] for each in flight.record()["entries"]]
    assert limits[0] == 7000
    assert limits[1] > 7000


def test_the_limit_is_that_of_the_call():
    run_ranks(one_call_has_a_limit_of_its_own, 1, backend="occl")


def nothing_is_recorded(rank: int) -> None:
    dist.all_reduce(torch.ones(2, device=DEVICE))
    torch.accelerator.synchronize()
    assert flight.record()["entries"] == []


def test_no_call_is_recorded_with_zero_records(monkeypatch):
    monkeypatch.setenv("OPENREG_FLIGHT_RECORDS", "0")
    run_ranks(nothing_is_recorded, 1, backend="occl")


def record_of(rank: int, *, token: int, called: int, numbers: list[int]) -> Any:
    """A record with complete collectives, except for the first one of rank 0."""
    entries = [
        {
            "profiling_name": "occl:all_reduce",
            "state": "started" if (rank, place) == (0, 0) else "completed",
            "pg_id": 0,
            "process_group": ["0", ""],
            "is_p2p": False,
            "collective_seq_id": number,
            "input_sizes": [[2]],
            "output_sizes": [[2]],
            "input_dtypes": ["Float"],
            "output_dtypes": ["Float"],
            "time_created_ns": 1,
            "time_discovered_started_ns": 1,
            "time_discovered_completed_ns": 2,
            "frames": [],
        }
        for place, number in enumerate(numbers)
    ]
    config = {"name": "0", "desc": "", "ranks": "[0, 1]", "pg_id": 0}
    config |= {"token": token, "collectives": called}
    return {
        "rank": rank,
        "reason": "written on request",
        "time_ns": 10 + token,
        "pg_config": {"0": config},
        "entries": entries,
    }


def test_calls_that_are_not_kept_are_not_taken_for_missing():
    first = record_of(0, token=1, called=9, numbers=[3, 8, 9])
    second = record_of(1, token=1, called=9, numbers=[8, 9])
    text = flight.explain([first, second])
    assert "number 3 is not complete:\n        rank 0: all_reduce number 3" in text
    assert "did not call" not in text
    later = record_of(0, token=1, called=9, numbers=[8, 9])
    none = record_of(1, token=1, called=7, numbers=[])
    text = flight.explain([later, none])
    assert "rank 1 did not call number 8:" in text
    assert "rank 1: number 7, completed, its last call" in text


def test_records_of_ranks_before_they_began_again_are_not_compared():
    before = record_of(1, token=1, called=2, numbers=[1, 2])
    after = record_of(0, token=2, called=3, numbers=[3])
    text = flight.explain([before, after])
    assert "the record of rank 1 belongs to an earlier group of this name" in text
    assert "did not call" not in text
    assert "left no record" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "is not a flight record"),
        ("[]", "is not a flight record"),
        ('{"rank": 0}', "is not a flight record"),
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
    with pytest.raises(ValueError, match="is the second record of rank 3"):
        flight.load([tmp_path])
