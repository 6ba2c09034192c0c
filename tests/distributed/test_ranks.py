# SPDX-License-Identifier: BSD-3-Clause
"""run_ranks and its fixture: results, failures, and no remaining processes."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from support.programs import ROOT, all_end, is_running, run, variables
from torch_openreg.testing import RanksFailedError, run_each_rank, run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)


def total(rank: int, more: int) -> tuple[float, int, str]:
    x = torch.full((2,), rank + 1.0, device="openreg")
    dist.all_reduce(x)
    here = torch.ones(1)
    if dist.get_backend_config() != "openreg:occl":
        dist.all_reduce(here)
    index = torch.accelerator.current_device_index()
    return x[0].item() + here.item() + more, index, os.environ["LOCAL_RANK"]


def environment(rank: int) -> tuple[str, ...]:
    assert not dist.is_initialized()
    dist.init_process_group("cpu:gloo,openreg:occl")  # like torchrun
    assert dist.get_rank() == rank
    dist.destroy_process_group()
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
    return tuple(os.environ[name] for name in names)


def one_raises(rank: int) -> None:
    if rank == 1:
        raise ValueError("a wrong value")
    if rank == 0:
        dist.all_reduce(torch.ones(1))
    if rank == 2:
        time.sleep(600)


def all_hang(rank: int) -> None:
    wait_for_ever()


def wait_for_ever() -> None:
    threading.Event().wait()


def start_and_hang(rank: int, folder: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    here = Path(folder, str(rank))
    here.with_suffix(".new").write_text(f"{os.getpid()} {child.pid}")
    here.with_suffix(".new").rename(here)
    if rank == 0:
        wait_for_ever()


def crash(rank: int) -> None:
    if rank == 0:
        import ctypes

        ctypes.string_at(0)


def end_early(rank: int) -> None:
    os._exit(3)


def leave_a_child(rank: int, folder: str, killed: bool) -> None:
    if rank == 0:
        return
    child = os.fork()  # inherits all open files of the rank
    if child == 0:
        wait_for_ever()
    Path(folder, "child").write_text(str(child))
    if killed:
        os.kill(os.getpid(), signal.SIGKILL)


def cannot_end(rank: int) -> None:
    threading.Thread(target=wait_for_ever).start()


def give_a_function(rank: int) -> object:
    return lambda: rank


@pytest.fixture(params=[pytest.param("spawn", marks=pytest.mark.slow), "forkserver"])
def start_method(request):
    """Yields each way to start ranks."""
    return request.param


def test_results_come_back_by_rank(start_method):
    found = run_ranks(total, 3, 10, start_method=start_method)
    assert found == [(17.0, 0, "0"), (17.0, 1, "1"), (17.0, 0, "2")]


def sum_on_the_host(rank: int) -> float:
    here = torch.ones(1)
    dist.all_reduce(here)
    return here.item()


def test_default_group_refuses_tensors_of_the_host_as_with_nccl():
    for each in run_each_rank(sum_on_the_host, 2, start_method="forkserver"):
        assert "No backend type associated with device type cpu" in each.failure


def test_group_of_both_backends_takes_tensors_of_both(start_method):
    both = "cpu:gloo,openreg:occl"
    found = run_ranks(total, 3, 10, backend=both, start_method=start_method)
    assert found == [(19.0, 0, "0"), (19.0, 1, "1"), (19.0, 0, "2")]


def test_a_function_can_make_the_group_as_under_torchrun(start_method, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = run_ranks(environment, 2, backend=None, start_method=start_method)
    assert found == [("0", "2", "2", "1"), ("1", "2", "2", "1")]
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.timeout(120)
def test_a_failure_names_its_rank_and_the_state_of_the_others(start_method):
    start = time.monotonic()
    with pytest.raises(RanksFailedError) as raised:
        run_ranks(
            one_raises,
            4,
            seconds=90,
            grace=6,
            backend="gloo",
            start_method=start_method,
        )
    assert time.monotonic() - start < 60
    text = str(raised.value)
    assert text.startswith("rank 1 of 4 failed first, after ")
    first, _, rest = text.partition("ValueError: a wrong value")
    assert 'raise ValueError("a wrong value")' in first
    assert "in one_raises" in first
    # Its peer reports it, and the traceback shows where the sleeping rank is.
    assert "rank 0 of 4 failed, after " in rest
    assert "dist.all_reduce" in rest
    assert "rank 2 of 4 was still running, after " in rest
    assert "in one_raises" in rest.partition("rank 2 of 4")[2]
    by_rank = raised.value.ranks
    assert [each.running for each in by_rank] == [False, False, True, False]
    assert by_rank[2].exitcode == -signal.SIGKILL
    assert by_rank[1].exitcode == 0


def test_ranks_that_hang_are_shown_and_ended_within_the_limit(start_method):
    start = time.monotonic()
    with pytest.raises(RanksFailedError) as raised:
        run_ranks(all_hang, 2, seconds=15, backend=None, start_method=start_method)
    assert time.monotonic() - start < 25
    text = str(raised.value)
    for rank in range(2):
        assert f"rank {rank} of 2 was still running, after 15." in text
    assert text.count("in wait_for_ever") == 2
    assert [each.exitcode for each in raised.value.ranks] == [-signal.SIGKILL] * 2


def test_child_processes_of_a_rank_end_with_it(start_method, tmp_path):
    ranks = run_each_rank(
        start_and_hang,
        2,
        str(tmp_path),
        seconds=15,
        backend=None,
        start_method=start_method,
    )
    assert [each.running for each in ranks] == [True, False]
    for rank in range(2):
        assert all_end(map(int, (tmp_path / str(rank)).read_text().split()))


def test_a_crash_is_shown_with_its_signal_and_stack(start_method):
    with pytest.raises(RanksFailedError) as raised:
        run_ranks(crash, 2, backend=None, start_method=start_method)
    text = str(raised.value)
    assert "rank 0 of 2 failed first" in text
    assert "The process ended with signal SIGSEGV." in text
    assert "in crash" in text
    assert "rank 1 of 2 returned, after " in text


def test_a_process_that_ends_without_a_result_is_a_failure(start_method):
    with pytest.raises(RanksFailedError, match="The process ended with 3"):
        run_ranks(end_early, 1, backend=None, start_method=start_method)


@pytest.mark.parametrize("killed", [True, False])
def test_a_rank_ends_though_its_child_lives(start_method, tmp_path, killed):
    run = partial(run_each_rank, backend=None, start_method=start_method)
    ranks = run(leave_a_child, 2, str(tmp_path), killed, seconds=40)
    assert [each.running for each in ranks] == [False, False]
    assert ranks[1].exitcode == (-signal.SIGKILL if killed else 0)
    assert ("SIGKILL" in ranks[1].failure) == killed, ranks[1].failure
    assert all_end([int((tmp_path / "child").read_text())])


@pytest.mark.timeout(90)
def test_a_process_that_cannot_end_is_a_failure(start_method):
    with pytest.raises(RanksFailedError) as raised:
        run_ranks(cannot_end, 1, seconds=15, backend=None, start_method=start_method)
    text = str(raised.value)
    assert "The process did not end." in text
    assert "in wait_for_ever" in text


def test_a_result_that_cannot_be_sent_is_a_failure(start_method):
    with pytest.raises(RanksFailedError, match="rank 0 of 1 failed first"):
        run_ranks(give_a_function, 1, backend=None, start_method=start_method)


def sees(rank: int) -> tuple[str, str, str, int, float]:
    sys.stdout.write(f"rank {rank} prints\n")
    sys.stdout.flush()
    os.write(2, b"and tells\n")
    variables = os.environ.get("OF_A_TEST", ""), os.environ["PYTEST_CURRENT_TEST"]
    return *variables, str(Path.cwd()), torch.get_num_threads(), random.random()


def test_ranks_have_the_environment_the_folder_and_the_output_of_now(
    start_method, monkeypatch, capfd, tmp_path
):
    now = os.environ["PYTEST_CURRENT_TEST"]
    for value, threads in ("one", 1), ("other", 2):
        monkeypatch.setenv("OF_A_TEST", value)
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))  # read by import torch
        for folder in tmp_path / value, tmp_path:  # of the same server
            folder.mkdir(exist_ok=True)
            monkeypatch.chdir(folder)
            first, second = run_ranks(sees, 2, backend=None, start_method=start_method)
            assert first[:4] == second[:4] == (value, now, str(folder), threads)
            assert first[4] != second[4]
            out, err = capfd.readouterr()
            assert sorted(out.splitlines()) == ["rank 0 prints", "rank 1 prints"]
            assert err == "and tells\n" * 2


def number_of_parent(rank: int) -> int:
    return os.getppid()


def kill_parent(rank: int) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    wait_for_ever()


def test_ranks_end_with_their_fork_server_and_the_next_have_another():
    run = partial(run_each_rank, backend=None, start_method="forkserver")
    (before,) = run(number_of_parent, 1)
    (again,) = run(number_of_parent, 1)
    assert before.value == again.value != os.getpid()
    (killed,) = run(kill_parent, 1)
    assert killed.failure == "The process ended without a result."
    (after,) = run(number_of_parent, 1)
    assert all_end([before.value])
    assert after.value not in (before.value, os.getpid())


def test_program_ends_although_its_forked_child_lives(run_script, tmp_path):
    ended = run_script(
        """
        import os, time
        from multiprocessing import resource_tracker
        from torch_openreg.testing import run_ranks

        def number(rank):
            return os.getpid()

        if __name__ == "__main__":
            run_ranks(number, 1, backend=None, start_method="forkserver")
            child = os.fork()
            if child == 0:
                os.closerange(0, 3)
                os.close(resource_tracker.getfd())  # inherits standard error, too
                time.sleep(600)
            with open("child", "w") as file:
                file.write(str(child))
        else:
            print("imported")
        """,
        PYTHONUNBUFFERED=None,
    )
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    # The server's output is not repeated by the rank.
    assert (ended.returncode, ended.stdout) == (0, "imported\n"), ended.stderr


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="a function of a module"):
        run_ranks(lambda rank: None, 2)
    with pytest.raises(ValueError, match="the number of ranks is 0"):
        run_ranks(end_early, 0)
    with pytest.raises(TypeError, match=r"size is 1\.5"):
        run_ranks(end_early, 1.5)
    with pytest.raises(ValueError, match="start_method is 'fork', expected \"spawn\""):
        run_ranks(end_early, 1, start_method="fork")
    with pytest.raises(TypeError, match="function is None"):
        run_ranks(None, 1)
    with pytest.raises(TypeError, match="seconds is '9'"):
        run_ranks(end_early, 1, seconds="9")
    for limits in ({"seconds": -1}, {"grace": float("inf")}, {"grace": float("nan")}):
        (name,) = limits
        with pytest.raises(ValueError, match=f"{name} is .*, expected 0 to 2000000"):
            run_ranks(end_early, 1, **limits)


SUITE = """
    import os, time
    from pathlib import Path
    import torch
    import torch.distributed as dist

    def one(rank):
        x = torch.ones(2, device="openreg")
        dist.all_reduce(x)
        return x.tolist()

    def wrong(rank):
        assert rank == 0, "not the first"

    def hangs(rank):
        Path(f"pid{rank}.new").write_text(str(os.getpid()))
        Path(f"pid{rank}.new").rename(f"pid{rank}")
        time.sleep(600)

    def test_sum(openreg_ranks):
        assert openreg_ranks(one, 2) == [[2.0, 2.0]] * 2

    def test_wrong(openreg_ranks):
        openreg_ranks(wrong, 2)

    def test_hangs(openreg_ranks):
        method = os.environ["START_METHOD"]
        openreg_ranks(hangs, 2, backend=None, seconds=600, start_method=method)
    """


def suite(folder: Path, *options: str) -> list[str]:
    (folder / "test_it.py").write_text(textwrap.dedent(SUITE))
    (folder / "pytest.ini").write_text("[pytest]\n")
    program = Path(sys.executable).with_name("pytest")
    return [str(program), "-p", "no:cacheprovider", *options]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "mode", [pytest.param("prepend", marks=pytest.mark.slow), "importlib"]
)
def test_the_fixture_runs_functions_of_a_test_file(tmp_path, mode):
    command = suite(tmp_path, f"--import-mode={mode}", "-k", "not hangs")
    ended = run(*command, environment=variables(), folder=tmp_path, seconds=100)
    assert "1 failed, 1 passed" in ended.stdout, ended.stdout + ended.stderr
    assert "rank 1 of 2 failed first" in ended.stdout
    assert 'assert rank == 0, "not the first"' in ended.stdout
    assert "rank 0 of 2 returned" in ended.stdout
    # pytest shows the test instead of the code that runs the ranks.
    assert "_ranks.py:" not in ended.stdout.partition("rank 1 of 2")[0]


def pids(folder: Path, names: list[str]) -> list[int]:
    end = time.monotonic() + 40
    while not all((folder / name).exists() for name in names):
        assert time.monotonic() < end, "the ranks have not started"
        time.sleep(0.05)
    return [int(pid) for name in names for pid in (folder / name).read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ranks_end_with_pytest(start_method, tmp_path, number):
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(
            suite(tmp_path, "-k", "hangs"),
            cwd=tmp_path,
            env=variables(START_METHOD=start_method),
            stdout=out,
            stderr=out,
            # The parent of the tests may ignore the signal, like a shell in the
            # background.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            ranks = pids(tmp_path, ["pid0", "pid1"])
            assert all(map(is_running, ranks))
            handle = os.pidfd_open(process.pid)
            process.send_signal(number)
            assert select.select([handle], [], [], 30)[0], "pytest has not ended"
            os.close(handle)
        finally:
            process.kill()
            process.wait()
    assert all_end(ranks)


def test_the_example_passes(tmp_path):
    example = ROOT / "examples" / "distributed" / "tests"
    command = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", example)
    ended = run(*command, environment=variables(), folder=tmp_path)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_without_openreg_distributed_the_pip_command_is_named(run_python):
    ended = run_python(
        """
        import importlib.util
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: (
            None if name == "openreg_distributed" else real(name, *rest)
        )
        from torch_openreg.testing import run_ranks
        run_ranks(print, 2)
        """
    )
    assert ended.returncode == 1
    assert "ImportError: ranks need openreg-distributed" in ended.stderr
    assert "pip install openreg-distributed==" in ended.stderr.splitlines()[-1]
