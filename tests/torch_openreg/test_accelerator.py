# SPDX-License-Identifier: BSD-3-Clause
"""torch.accelerator: every public name, on the device."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from support.isolation import marked

accelerator = torch.accelerator

INDEXED: list[int | str | torch.device] = [1, "openreg:1", torch.device("openreg", 1)]


def current_accelerator() -> None:
    for check_available in (False, True):
        assert accelerator.current_accelerator(check_available) == torch.device(
            "openreg"
        )


def is_available() -> None:
    assert accelerator.is_available()


def device_count() -> None:
    assert accelerator.device_count() == torch.openreg.device_count() == 2


def current_device_index() -> None:
    assert accelerator.current_device_index() == torch.openreg.current_device() == 0


def current_device_idx() -> None:
    with pytest.warns(FutureWarning, match="current_device_index"):
        assert accelerator.current_device_idx() == 0


def set_device_index() -> None:
    for device in INDEXED:
        accelerator.set_device_index(device)
        assert torch.ones(1, device="openreg").get_device() == 1
        accelerator.set_device_index(0)
    accelerator.set_device_index(-1)  # nothing happens
    assert torch.openreg.current_device() == 0


def set_device_idx() -> None:
    with pytest.warns(FutureWarning, match="set_device_index"):
        accelerator.set_device_idx(1)
    assert torch.openreg.current_device() == 1
    accelerator.set_device_index(0)


def device_index() -> None:
    with accelerator.device_index(1):
        assert torch.openreg.current_device() == 1
        with accelerator.device_index(None):
            assert torch.openreg.current_device() == 1
    assert torch.openreg.current_device() == 0


def get_device_capability() -> None:
    dtypes = accelerator.get_device_capability("openreg:1")["supported_dtypes"]
    for dtype in (torch.float64, torch.bfloat16, torch.complex64, torch.bool):
        assert dtype in dtypes
        assert torch.empty(2, dtype=dtype, device="openreg").dtype == dtype


def current_stream() -> None:
    for device in INDEXED:
        assert accelerator.current_stream(device) == torch.openreg.default_stream(1)
    assert accelerator.current_stream() == torch.openreg.default_stream(0)


def set_stream() -> None:
    stream = torch.Stream("openreg:1")
    accelerator.set_stream(stream)
    assert torch.openreg.current_device() == 1
    assert torch.openreg.current_stream() == stream
    accelerator.set_stream(torch.openreg.default_stream(1))
    accelerator.set_device_index(0)


def synchronize() -> None:
    x = torch.ones(300, 300, device="openreg:1")
    for device in INDEXED:
        for _ in range(5):
            x = x @ x / 300
        accelerator.synchronize(device)
        assert torch.openreg.default_stream(1).query()
    accelerator.synchronize()


def empty_cache() -> None:
    torch.empty(64 << 20, dtype=torch.uint8, device="openreg")
    reserved = accelerator.memory_reserved()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() <= reserved - (64 << 20)


def empty_host_cache() -> None:
    accelerator.empty_host_cache()
    before = torch.openreg.host_memory_stats()["allocated_bytes.current"]
    torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)
    cached = torch.openreg.host_memory_stats()["allocated_bytes.current"]
    accelerator.empty_host_cache()
    after = torch.openreg.host_memory_stats()["allocated_bytes.current"]
    assert (cached - before, after) == (1 << 20, before)


def get_memory_info() -> None:
    for device in INDEXED:
        assert accelerator.get_memory_info(device) == torch.openreg.mem_get_info(1)


def memory_allocated() -> None:
    before = accelerator.memory_allocated("openreg:1")
    x = torch.empty(1000, device="openreg:1")
    assert accelerator.memory_allocated("openreg:1") == before + 4096
    assert accelerator.memory_allocated(x.device) == torch.openreg.memory_allocated(1)


def max_memory_allocated() -> None:
    accelerator.reset_peak_memory_stats()
    before = accelerator.memory_allocated()
    torch.empty(1000, device="openreg")
    assert accelerator.max_memory_allocated() == before + 4096


def memory_reserved() -> None:
    x = torch.empty(30 << 20, dtype=torch.uint8, device="openreg")
    assert accelerator.memory_reserved() == torch.openreg.memory_reserved()
    assert accelerator.memory_reserved() >= x.nbytes


def max_memory_reserved() -> None:
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()
    before = accelerator.memory_reserved()
    torch.empty(30 << 20, dtype=torch.uint8, device="openreg")
    accelerator.empty_cache()
    assert accelerator.max_memory_reserved() == before + (30 << 20)


def memory_stats() -> None:
    assert accelerator.memory_stats(1) == torch.openreg.memory_stats("openreg:1")


def reset_peak_memory_stats() -> None:
    torch.empty(1 << 20, device="openreg")
    accelerator.reset_peak_memory_stats()
    stats = accelerator.memory_stats()
    for name in ("allocated_bytes", "reserved_bytes", "active"):
        assert stats[f"{name}.all.peak"] == stats[f"{name}.all.current"]


def reset_accumulated_memory_stats() -> None:
    torch.empty(1 << 20, device="openreg")
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.memory_stats()["allocated_bytes.all.allocated"] == 0


def graph() -> None:
    x = torch.ones(2, device="openreg")
    with torch.Stream("openreg"):
        graph = accelerator.Graph()
        with graph:
            y = x + 1
        x.fill_(2)
        graph.replay()
        assert y.tolist() == [3, 3]


CALLS: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        *(current_accelerator, is_available, device_count, current_device_index),
        *(current_device_idx, set_device_index, set_device_idx, device_index),
        *(get_device_capability, current_stream, set_stream, synchronize),
        *(empty_cache, empty_host_cache, get_memory_info, memory_allocated),
        *(max_memory_allocated, memory_reserved, max_memory_reserved, memory_stats),
        *(reset_peak_memory_stats, reset_accumulated_memory_stats),
    )
} | {"Graph": graph}


def test_every_public_name_is_called_here() -> None:
    assert set(CALLS) == set(accelerator.__all__)


@pytest.mark.parametrize("name", marked(CALLS, {"Graph": "graphs"}))
def test_public_name_works_on_the_device(name: str) -> None:
    torch.openreg.init()
    CALLS[name]()


@pytest.mark.parametrize(
    "function",
    [
        accelerator.set_device_index,
        accelerator.current_stream,
        accelerator.synchronize,
        accelerator.memory_stats,
        accelerator.get_memory_info,
        accelerator.get_device_capability,
    ],
)
@pytest.mark.parametrize(
    ("device", "text"),
    [
        (9, "9 is not a number from 0 to 1"),
        ("cpu", "cpu .*doesn't match the current accelerator openreg"),
    ],
)
def test_wrong_device_is_refused(
    function: Callable[[object], object], device: object, text: str
) -> None:
    with pytest.raises((RuntimeError, ValueError)) as caught:
        function(device)
    assert re.search(text, str(caught.value)), caught.value
