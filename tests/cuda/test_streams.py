# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events of ``torch.cuda``."""

from __future__ import annotations

import ctypes
import pickle

import pytest
import torch

CYCLES = 20_000_000  # 20 ms


def test_work_of_a_stream_is_awaited_by_its_events() -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        torch.cuda._sleep(CYCLES)
        event = stream.record_event()
    assert not event.query()
    assert not stream.query()
    torch.cuda.current_stream().wait_event(event)
    torch.cuda.current_stream().synchronize()
    assert event.query()
    assert stream.query()


def test_events_measure_time() -> None:
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    torch.cuda._sleep(CYCLES)
    end.record()
    end.synchronize()
    assert 19 < start.elapsed_time(end) < 2000


def test_an_event_without_timing_measures_nothing() -> None:
    start, end = torch.cuda.Event(), torch.cuda.Event()
    start.record()
    end.record()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(end)


def test_an_event_stays_within_its_process() -> None:
    with pytest.raises(NotImplementedError, match="stays within its process"):
        torch.cuda.Event(interprocess=True)
    with pytest.raises(NotImplementedError, match="stays within its process"):
        torch.cuda.Event().ipc_handle()


def test_streams_compare_by_their_identity() -> None:
    stream = torch.cuda.Stream()
    same = torch.cuda.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )
    assert same == stream
    assert hash(same) == hash(stream)
    assert stream != torch.cuda.Stream()
    assert "<torch.cuda.Stream device=cuda:0" in repr(stream)
    assert "torch.cuda.Event" in repr(stream.record_event())


def test_a_stream_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="has the type 1, got 2"):
        torch.cuda.Stream(stream_id=3, device_index=0, device_type=2)


def test_streams_belong_to_devices() -> None:
    stream = torch.cuda.Stream(device="cuda:1")
    assert stream.device == torch.device("cuda:1")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_device() == 1
        x = torch.ones(2, device="cuda")
    assert x.device.index == 1
    assert torch.cuda.current_device() == 0


def test_an_external_stream_is_the_same_stream() -> None:
    stream = torch.cuda.Stream()
    external = torch.cuda.ExternalStream(stream.cuda_stream)
    assert external.cuda_stream == stream.cuda_stream
    got = torch.cuda.get_stream_from_external(stream.cuda_stream, 0)
    assert got == stream


def test_the_handle_of_the_default_stream_is_0() -> None:
    stream = torch.cuda.default_stream()
    assert stream.cuda_stream == torch._C._cuda_getCurrentRawStream(0) == 0
    assert torch.cuda.Stream().cuda_stream != 0
    assert torch.cuda.get_stream_from_external(0, 1) == torch.cuda.default_stream(1)


def test_the_runtime_creates_streams() -> None:
    handle = ctypes.c_void_p()
    cudart = torch.cuda.cudart()
    with torch.cuda.device(1):
        assert cudart.cudaStreamCreate(ctypes.addressof(handle)) == 0
    assert handle.value
    stream = torch.cuda.ExternalStream(handle.value, device="cuda:1")
    assert stream.cuda_stream == handle.value
    with torch.cuda.stream(stream):
        x = torch.ones(2, device="cuda") + 1
    stream.synchronize()
    assert x.tolist() == [2, 2]
    assert x.device.index == 1
    assert cudart.cudaStreamDestroy(handle.value) == 0
    assert cudart.cudaStreamDestroy(handle.value) == 400
    assert cudart.cudaStreamCreate(0) == 1


def test_priorities() -> None:
    least, greatest = torch.cuda.Stream.priority_range()
    assert torch.cuda.Stream(priority=greatest).priority == greatest < least
    assert torch.cuda.Stream().priority == 0


def test_a_stream_is_a_context() -> None:
    with torch.cuda.Stream() as stream:
        assert torch.cuda.current_stream() == stream


def test_wait_stream_orders_streams() -> None:
    x = torch.zeros(1 << 20, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        x.add_(1)
    torch.cuda.current_stream().wait_stream(stream)
    x.mul_(3)
    x.record_stream(stream)
    assert x.unique().tolist() == [3]


def test_generic_streams_are_streams_of_cuda() -> None:
    stream = torch.Stream("cuda")
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream().stream_id == stream.stream_id
    torch.cuda.current_stream().wait_event(torch.Event("cuda"))
    assert torch.accelerator.current_accelerator() == torch.device("cuda")


def test_a_device_is_pickled() -> None:
    device = pickle.loads(pickle.dumps(torch.device("cuda:1")))
    assert device == torch.device("cuda:1")
