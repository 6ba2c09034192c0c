# SPDX-License-Identifier: BSD-3-Clause
"""torch.multiprocessing sends device tensors; processes share the memory."""

from __future__ import annotations

import gc
import select
import textwrap
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

from support.programs import Program, variables
from torch_openreg import _sharing

Script = Callable[..., list[str]]

# Without shared memory one of the processes would wait forever.
not_shared = pytest.mark.differs_in_process("shared memory", run=False)


@pytest.fixture
def script(fork: Program, tmp_path: Path) -> Script:
    """Runs functions and a main part as a file, which a spawned process can import."""

    def start(functions: str, main: str, **environment: str) -> list[str]:
        path = tmp_path / "program.py"
        path.write_text(
            "import os, queue, sys, torch\nimport torch.multiprocessing as mp\n"
            + textwrap.dedent(functions)
            + "\nif __name__ == '__main__':\n    spawn = mp.get_context('spawn')\n"
            + textwrap.indent(textwrap.dedent(main), "    ")
        )
        result = fork(path=path, environment=variables(**environment))
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    return start


def sent(value: Any) -> Any:
    """Sends a value through a pipe of this process."""
    here, there = mp.Pipe()
    here.send(value)
    return there.recv()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(6.0, device="openreg:1"),
        lambda: torch.arange(12, device="openreg").view(3, 4).T[1:, ::2],
        lambda: torch.ones((), dtype=torch.bfloat16, device="openreg"),
        lambda: torch.tensor([True, False], device="openreg"),
        lambda: torch.tensor([1 + 2j], device="openreg:1"),
        lambda: torch.ones(3, device="openreg").expand(4, 3),
        lambda: torch.ones(3, device="openreg", requires_grad=True),
    ],
)
@pytest.mark.differs_in_process("shared memory")
def test_tensor_arrives_as_it_was(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    y = sent(x)
    assert type(y) is torch.Tensor
    assert (y.dtype, y.device, y.size(), y.stride(), y.storage_offset()) == (
        (x.dtype, x.device, x.size(), x.stride(), x.storage_offset())
    )
    assert y.requires_grad == x.requires_grad
    assert torch.equal(y, x)
    assert y.data_ptr() == x.data_ptr()


def test_empty_tensor_arrives() -> None:
    y = sent(torch.empty(0, 3, device="openreg:1"))
    assert (y.device, y.size()) == (torch.device("openreg:1"), (0, 3))


@pytest.mark.differs_in_process("shared memory")
def test_parameters_modules_and_lists_arrive() -> None:
    model = torch.nn.Linear(3, 2).openreg()
    weight, copied = sent([model.weight, model])
    assert isinstance(weight, torch.nn.Parameter)
    assert weight.requires_grad
    assert weight.data_ptr() == copied.weight.data_ptr() == model.weight.data_ptr()


@pytest.mark.differs_in_process("shared memory")
@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta state")
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    "layout",
    [
        torch.sparse_coo,
        torch.sparse_csr,
        torch.sparse_csc,
        torch.sparse_bsr,
        torch.sparse_bsc,
    ],
)
def test_sparse_tensor_arrives(layout: torch.layout, requires_grad: bool) -> None:
    blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    x = torch.eye(4).to_sparse(layout=layout, blocksize=blocks).to("openreg:1")
    x.requires_grad_(requires_grad)
    y = sent(x)
    assert (y.layout, y.device, y.shape) == (layout, x.device, x.shape)
    assert y.requires_grad is requires_grad
    assert torch.equal(y.detach().to_dense(), x.detach().to_dense())
    values = [v._values() if layout is torch.sparse_coo else v.values() for v in (x, y)]
    assert values[0].data_ptr() == values[1].data_ptr()


@pytest.mark.differs_in_process("shared memory")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
def test_nested_tensor_arrives() -> None:
    x = torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)], device="openreg")
    y = sent(x)
    assert y.is_nested
    for a, b in zip(y.unbind(), x.unbind(), strict=True):
        assert torch.equal(a, b)
        assert a.data_ptr() == b.data_ptr()


@pytest.mark.differs_in_process("shared memory")
def test_jagged_tensor_arrives() -> None:
    x = torch.nested.nested_tensor(
        [torch.ones(2), torch.zeros(3)], device="openreg", layout=torch.jagged
    )
    y = sent(x)
    assert y.layout is torch.jagged
    assert torch.equal(y.values(), x.values())
    assert torch.equal(y.offsets(), x.offsets())


def test_tensors_of_the_cpu_go_as_before() -> None:
    x = torch.arange(3.0)
    assert torch.equal(sent(x), x)
    assert x.is_shared()


def test_tensor_of_a_graph_is_refused() -> None:
    x = torch.ones(2, device="openreg", requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"send tensor\.detach\(\)"):
        ForkingPickler.dumps(x)


def test_storage_is_refused() -> None:
    storage = torch.ones(2, device="openreg").untyped_storage()
    with pytest.raises(RuntimeError, match="Cannot pickle openreg storage"):
        ForkingPickler.dumps(storage)


def test_spawned_process_writes_to_the_memory_of_its_parent_by_messages(
    script: Script,
) -> None:
    lines = script(
        """
        import openreg_aten

        def work(x, done):
            x.add_(1)
            positive = x[x > 2]  # described first, then placed
            torch.openreg.synchronize()
            counts = openreg_aten._C.message_counts()
            unsent = [name for name, sent, unsent in counts if unsent]
            done.put((positive.cpu().tolist(), unsent, len(counts) > 2))
        """,
        """
        x = torch.arange(4.0, device="openreg")
        done = spawn.Queue()
        process = spawn.Process(target=work, args=(x, done))
        process.start()
        print(done.get())
        process.join()
        print(x.tolist())
        """,
        OPENREG_ISOLATION="loopback",
    )
    assert lines == ["([3.0, 4.0], [], True)", "[1.0, 2.0, 3.0, 4.0]"]


@pytest.mark.differs_in_process("shared memory")
def test_unread_message_keeps_the_memory_and_reading_frees_it() -> None:
    gc.collect()
    torch.openreg.ipc_collect()
    before = torch.openreg.memory_allocated()
    here, there = mp.Pipe()
    here.send(torch.ones(1000, device="openreg"))
    torch.openreg.ipc_collect()
    assert torch.openreg.memory_allocated() > before
    readers = [sent.reader for sent in _sharing._sent.values()]
    assert there.recv().sum().item() == 1000
    for reader in readers:  # a thread of multiprocessing releases it last
        select.select([reader], [], [], 30)
    torch.openreg.ipc_collect()
    assert torch.openreg.memory_allocated() == before
    assert _sharing._sent == {}


ECHO = """
def echo(tasks, results):
    for x in iter(tasks.get, None):
        results.put((str(x.device), x.tolist(), x.stride(), x.requires_grad))
        with torch.no_grad():
            x.add_(1)
        torch.openreg.synchronize(x.device)
        del x
        results.put("done")
"""


@not_shared
def test_other_process_reads_and_writes_the_same_memory(script: Script) -> None:
    main = """
    tasks, results = spawn.Queue(), spawn.Queue()
    worker = spawn.Process(target=echo, args=(tasks, results))
    worker.start()
    base = torch.arange(12.0, device="openreg:1")
    model = torch.nn.Linear(2, 1, bias=False).openreg()
    for x in (base.view(3, 4).T[2:], model.weight, torch.ones((), device="openreg")):
        before = x.tolist()
        tasks.put(x)
        device, values, stride, grad = results.get()
        assert results.get() == "done"
        assert (device, values, stride, grad) == (
            str(x.device), before, x.stride(), x.requires_grad
        )
        assert torch.equal(x.detach().cpu(), torch.tensor(before) + 1)
    print(base.tolist())
    tasks.put(None)
    worker.join()
    """
    assert script(ECHO, main) == [
        str([0.0, 1.0, 3.0, 4.0, 4.0, 5.0, 7.0, 8.0, 8.0, 9.0, 11.0, 12.0]),
    ]


@not_shared
def test_memory_is_kept_until_the_receiver_releases_it_or_dies(script: Script) -> None:
    functions = """
    def hold(tasks, results, go):
        x = tasks.get()
        y = tasks.get()
        results.put(x.sum().item() + y.sum().item())
        go.wait()
        del x
        results.put("one is gone")
        os.kill(os.getpid(), 9)
    """
    main = """
    tasks, results, go = spawn.Queue(), spawn.SimpleQueue(), spawn.Event()
    worker = spawn.Process(target=hold, args=(tasks, results, go))
    worker.start()
    before = torch.openreg.memory_allocated()
    def left():
        torch.openreg.ipc_collect()
        return (torch.openreg.memory_allocated() - before) // 4000
    tasks.put(torch.ones(1000, device="openreg"))
    tasks.put(torch.ones(1000, device="openreg"))
    print(results.get(), left())
    go.set()
    print(results.get(), left())
    worker.join()
    print(worker.exitcode, left())
    """
    assert script(functions, main) == ["2000.0 2", "one is gone 1", "-9 0"]


@not_shared
def test_memory_is_kept_until_enqueued_copies_have_used_it(script: Script) -> None:
    functions = """
    def copy(connection, results):
        results.put("ready")
        target = torch.empty(2**22).pin_memory()
        target.copy_(connection.recv(), non_blocking=True)
        results.put("sent back")
        torch.openreg.synchronize()
        results.put(target.sum().item())
    """
    main = """
    here, there = spawn.Pipe()
    results = spawn.SimpleQueue()
    worker = spawn.Process(target=copy, args=(there, results))
    worker.start()
    assert results.get() == "ready"
    here.send(torch.full((2**22,), 2.0, device="openreg"))
    assert results.get() == "sent back"
    torch.openreg.ipc_collect()
    torch.zeros(2**22, device="openreg")  # in the same memory, if it is free
    print(results.get() == 2.0 * 2**22)
    worker.join()
    """
    assert script(functions, main, OPENREG_FAILURES="launch:period=1:delay=20000") == [
        "True"
    ]


@not_shared
def test_received_tensor_outlives_its_sender(script: Script) -> None:
    functions = """
    def send(results, go):
        results.put(torch.full((1000,), 7.0, device="openreg"))
        go.wait()
    """
    main = """
    results, go = spawn.Queue(), spawn.Event()
    worker = spawn.Process(target=send, args=(results, go))
    worker.start()
    x = results.get()
    go.set()
    worker.join()
    print(x.sum().item(), (x + 1).sum().item(), worker.exitcode)
    """
    assert script(functions, main) == ["7000.0 8000.0 0"]


@not_shared
def test_arguments_of_processes_and_pools_are_carried(script: Script) -> None:
    functions = """
    def fill(x, value):
        x.fill_(value)
        torch.openreg.synchronize(x.device)
    def total(x):
        return x.sum().item()
    """
    main = """
    x = torch.zeros(4, device="openreg:1")
    worker = spawn.Process(target=fill, args=(x, 3.0))
    worker.start()
    worker.join()
    print(x.tolist())
    torch.openreg.ipc_collect()
    with spawn.Pool(1) as pool:
        print(pool.map(total, [x, x + 1, torch.ones(2, device="openreg")]))
    del x
    torch.openreg.ipc_collect()
    print(torch.openreg.memory_allocated(1), torch.openreg.memory_allocated(0))
    """
    assert script(functions, main) == [
        "[3.0, 3.0, 3.0, 3.0]",
        "[12.0, 16.0, 2.0]",
        "0 0",
    ]


@not_shared
def test_received_tensor_can_not_be_sent_on_but_its_copy_can(script: Script) -> None:
    functions = """
    from multiprocessing.reduction import ForkingPickler
    def forward(tasks, results):
        x = tasks.get()
        try:
            ForkingPickler.dumps(x)
        except RuntimeError as error:
            results.put(str(error).splitlines()[0])
        results.put(x.clone())
        tasks.get()
    """
    main = """
    tasks, results = spawn.Queue(), spawn.Queue()
    worker = spawn.Process(target=forward, args=(tasks, results))
    worker.start()
    tasks.put(torch.ones(3, device="openreg"))
    print(results.get())
    print(results.get().tolist())
    tasks.put(None)
    worker.join()
    """
    refusal, copy = script(functions, main)
    assert "received from another process" in refusal
    assert "tensor.clone()" in refusal
    assert copy == "[1.0, 1.0, 1.0]"


# Reports the error of a receive.
RECEIVE = """
    def receive(connection, results):
        try:
            connection.recv()
        except RuntimeError as error:
            results.put(str(error))
"""


@not_shared
def test_receiver_without_the_device_reports_it(script: Script) -> None:
    main = """
    torch.openreg.init()
    here, there = spawn.Pipe()
    results = spawn.Queue()
    os.environ["OPENREG_DEVICE_COUNT"] = "2"
    worker = spawn.Process(target=receive, args=(there, results))
    worker.start()
    here.send(torch.ones(3, device="openreg:2"))
    print(results.get())
    worker.join()
    """
    (error,) = script(RECEIVE, main, OPENREG_DEVICE_COUNT="3")
    assert error.startswith("Invalid device id 2: ")
    assert "expected 0 to 1 (2 openreg devices)" in error


@not_shared
def test_forked_receiver_is_told_to_spawn(script: Script) -> None:
    main = """
    torch.openreg.init()
    fork = mp.get_context("fork")
    here, there = fork.Pipe()
    results = fork.SimpleQueue()
    worker = fork.Process(target=receive, args=(there, results))
    worker.start()
    here.send(torch.ones(3, device="openreg"))
    print(results.get())
    worker.join()
    """
    (error,) = script(RECEIVE, main)
    assert error.startswith("Cannot re-initialize openreg in forked")
    assert "spawn" in error


@not_shared
def test_loader_with_spawned_workers_returns_device_tensors(
    script: Script,
) -> None:
    functions = """
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 6
        def __getitem__(self, index):
            return torch.full((2,), float(index), device="openreg:1")
    """
    main = """
    loader = torch.utils.data.DataLoader(
        Data(), batch_size=3, num_workers=1, multiprocessing_context="spawn"
    )
    for batch in loader:
        print(batch.device, batch.sum().item())
    """
    assert script(functions, main) == ["openreg:1 6.0", "openreg:1 24.0"]


@not_shared
def test_fork_after_sending_does_not_change_memory_or_message(script: Script) -> None:
    main = """
    here, there = mp.Pipe()
    here.send(torch.full((1000,), 3.0, device="openreg"))
    child = os.fork()
    if child == 0:
        import gc
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    torch.zeros(1000, device="openreg")
    import select
    from torch_openreg import _sharing
    (sent,) = _sharing._sent.values()
    print(there.recv().sum().item())
    select.select([sent.reader], [], [], 30)
    torch.openreg.ipc_collect()
    print(_sharing._sent)
    """
    assert script("", main) == ["3000.0", "{}"]


def test_reader_gets_the_error_of_a_sender_that_cannot_share(script: Script) -> None:
    lines = script(
        """
        def send(queue):
            queue.put(torch.ones(3, device="openreg"))
            queue.put(1)
        """,
        """
        values = spawn.Queue()
        process = spawn.Process(target=send, args=(values,))
        process.start()
        try:
            values.get(timeout=40)
        except RuntimeError as error:
            print("could not share it" in str(error), "OPENREG_ISOLATION" in str(error))
        print(values.get(timeout=40))
        process.join()
        try:
            spawn.Process(target=send, args=(torch.ones(3, device="openreg"),)).start()
        except torch.AcceleratorError as error:
            print("OPENREG_ISOLATION" in str(error))
        """,
        OPENREG_ISOLATION="process",
    )
    assert lines == ["True True", "1", "True"]
