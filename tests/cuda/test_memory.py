# SPDX-License-Identifier: BSD-3-Clause
"""The caching allocator of ``torch.cuda``."""

from __future__ import annotations

import gc
import pickle
import threading
from pathlib import Path

import pytest
import torch

from support.programs import Program

SIZE = 4 << 20


def test_statistics_count_bytes() -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() - before == SIZE
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == SIZE
    assert torch.cuda.memory_reserved() >= SIZE
    torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == torch.cuda.max_memory_allocated()
    assert stats["num_ooms"] >= 0
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    assert torch.cuda.get_allocator_backend() == "native"


def test_host_statistics() -> None:
    pinned = torch.empty(100, pin_memory=True)
    stats = torch.cuda.host_memory_stats()
    assert stats["active_bytes.current"] >= pinned.nbytes
    torch.cuda.reset_peak_host_memory_stats()
    torch.cuda.reset_accumulated_host_memory_stats()


def test_too_much_memory_is_refused() -> None:
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate"):
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    assert torch.ones(2, device="cuda").sum().item() == 2


def test_a_fraction_limits_the_process() -> None:
    torch.cuda.set_per_process_memory_fraction(0.001)
    try:
        fraction = torch.cuda.get_per_process_memory_fraction()
        assert fraction == pytest.approx(0.001)
        with pytest.raises(torch.cuda.OutOfMemoryError):
            torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_memory_history(tmp_path: Path) -> None:
    torch.cuda.memory._record_memory_history()
    try:
        x = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        frames = torch.cuda.memory._allocation_traceback(x.data_ptr())
        file = tmp_path / "snapshot.pickle"
        torch.cuda.memory._dump_snapshot(str(file))
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    assert any("test_memory" in frame["filename"] for frame in frames)
    assert pickle.loads(file.read_bytes())["segments"]
    traces = snapshot["device_traces"][0]
    assert any(t["action"] == "alloc" and t["size"] >= SIZE for t in traces)
    assert any(s["total_size"] >= SIZE for s in torch.cuda.memory_snapshot())


def test_raw_memory() -> None:
    before = torch.cuda.memory_allocated()
    address = torch.cuda.caching_allocator_alloc(SIZE)
    assert torch.cuda.memory_allocated() - before == SIZE
    torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.memory_allocated() == before
    with pytest.raises(ValueError, match="must be an address from"):
        torch.cuda.caching_allocator_delete(address)


def test_the_cache_is_bypassed() -> None:
    before = torch.cuda.memory_stats()
    with torch.cuda.caching_allocator_disabled():
        free, _ = torch.cuda.mem_get_info()
        x = torch.full((SIZE,), 3, dtype=torch.uint8, device="cuda")
        assert torch.cuda.mem_get_info()[0] <= free - SIZE
        with pytest.raises(torch.cuda.OutOfMemoryError, match="Tried to allocate"):
            torch.empty(2**50, dtype=torch.uint8, device="cuda")
    y = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    after = torch.cuda.memory_stats()
    name = "requested_bytes.all.allocated"
    assert after[name] - before[name] == SIZE  # y
    assert x.sum().item() == 3 * SIZE
    free, _ = torch.cuda.mem_get_info()
    del x
    assert torch.cuda.mem_get_info()[0] >= free + SIZE
    del y


def test_the_text_of_out_of_memory_is_that_of_cuda() -> None:
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(2**50, dtype=torch.int8, device="cuda:1")
    assert "CUDA out of memory. Tried to allocate" in str(caught.value)
    assert "GPU 1 has a total capacity of" in str(caught.value)
    with pytest.raises(torch.OutOfMemoryError, match="more than 1EB memory"):
        torch.empty(2**60, dtype=torch.int8, device="cuda")


def test_an_observer_is_called_when_memory_is_short(interpreter: Program) -> None:
    source = """
        import torch
        seen = []
        torch._C._cuda_attach_out_of_memory_observer(lambda *each: seen.append(each))
        free, total = torch.cuda.mem_get_info(1)
        try:
            torch.empty(2**50, dtype=torch.uint8, device="cuda:1")
        except torch.cuda.OutOfMemoryError:
            print(seen == [(1, 2**50, total, free)])

        def fail(*each):
            raise ValueError("of the observer")

        torch._C._cuda_attach_out_of_memory_observer(fail)
        try:
            torch.empty(2**50, dtype=torch.uint8, device="cuda:1")
        except ValueError as error:
            print(error)
    """
    ended = interpreter(source)
    assert ended.stdout == "True\nof the observer\n", ended.stderr


def test_the_history_has_the_metadata_of_the_thread() -> None:
    torch.cuda.memory._record_memory_history()
    try:
        torch.cuda.memory._set_memory_metadata("the first layer")
        x = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        torch.cuda.memory._set_memory_metadata("")
        y = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    texts = [each["user_metadata"] for each in trace if each["action"] == "alloc"]
    assert texts == ["the first layer", ""]
    assert torch.cuda.memory._get_memory_metadata() == ""
    del x, y


def test_host_memory_is_registered() -> None:
    cudart = torch.cuda.cudart()
    x = torch.ones(20)
    assert not x.is_pinned()
    assert cudart.cudaHostRegister(x.data_ptr(), x.nbytes, 0) == 0
    assert x.is_pinned()
    assert cudart.cudaHostRegister(x.data_ptr(), x.nbytes, 0) == 712
    assert torch.equal(x.to("cuda", non_blocking=True).cpu(), x)
    assert cudart.cudaHostUnregister(x.data_ptr()) == 0
    assert not x.is_pinned()
    assert cudart.cudaHostUnregister(x.data_ptr()) == 713
    assert cudart.cudaHostRegister(0, 0, 0) == 1


def test_codes_of_errors_have_texts() -> None:
    torch.cuda.check_error(0)
    with pytest.raises(torch.cuda.CudaError, match=r"out of memory \(2\)"):
        torch.cuda.check_error(2)
    with pytest.raises(torch.cuda.CudaError, match=r"unrecognized error code \(1234\)"):
        torch.cuda.check_error(1234)


def test_the_history_has_the_ranges_of_all_threads() -> None:
    def work() -> None:
        with torch.profiler.record_function("step"):
            torch.ones(2, device="cuda")

    torch.cuda.memory._record_memory_history(global_record_annotations=True)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        ranges = torch.cuda.memory._snapshot()["external_annotations"]
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    assert [(each["name"], each["stage"]) for each in ranges] == [
        ("step", "START"),
        ("step", "END"),
    ]
