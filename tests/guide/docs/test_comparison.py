# SPDX-License-Identifier: BSD-3-Clause
"""tools/comparison.py: its page is current and complete."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from support.programs import Load


@pytest.fixture
def comparison(load_tool: Load) -> ModuleType:
    return load_tool("comparison")


def test_page_is_current(comparison: ModuleType) -> None:
    assert comparison.PAGE.read_text(encoding="utf-8") == comparison.page()


def test_name_without_a_reason_is_an_error(comparison: ModuleType) -> None:
    del comparison.REASONS["nvtx"]
    with pytest.raises(ValueError, match=r"no nvtx, and REASONS has no entry for it"):
        comparison.page()


def test_reason_for_a_name_that_is_there_is_an_error(comparison: ModuleType) -> None:
    comparison.REASONS["synchronize"] = ("no", "never waits")
    with pytest.raises(ValueError, match="has synchronize now: delete its reason"):
        comparison.page()


def test_reason_for_a_name_that_torch_lacks_is_an_error(comparison: ModuleType) -> None:
    comparison.REASONS["warp_drive"] = ("no", "too fast")
    with pytest.raises(ValueError, match="warp_drive"):
        comparison.page()


def replayed_sum() -> float:
    x = torch.ones(2, device="openreg")
    graph = torch.accelerator.Graph()
    with torch.Stream(device="openreg"), graph:
        y = x.sum()
    graph.replay()
    return y.item()


BY_ACCELERATOR: dict[str, Callable[[], object]] = {
    "Graph": replayed_sum,
    "current_accelerator": lambda: torch.accelerator.current_accelerator().type,
    "current_device_idx": lambda: torch.accelerator.current_device_idx(),
    "current_device_index": lambda: torch.accelerator.current_device_index(),
    "device_index": lambda: torch.accelerator.device_index(1).__enter__(),
    "empty_host_cache": lambda: torch.accelerator.empty_host_cache(),
    "get_memory_info": lambda: torch.accelerator.get_memory_info(1)[1] > 0,
    "set_device_idx": lambda: torch.accelerator.set_device_idx(0),
    "set_device_index": lambda: torch.accelerator.set_device_index(0),
}


def test_names_by_the_accelerator_are_all_called_here(comparison: ModuleType) -> None:
    names = comparison.names(torch.accelerator) - set(torch.openreg.__all__)
    assert names - comparison.REASONS.keys() == BY_ACCELERATOR.keys()


@pytest.mark.filterwarnings("ignore:Use `.*_index` instead:FutureWarning")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("Graph", 2, marks=pytest.mark.differs_in_process("graphs")),
        ("current_accelerator", "openreg"),
        ("current_device_idx", 0),
        ("current_device_index", 0),
        ("device_index", None),
        ("empty_host_cache", None),
        ("get_memory_info", True),
        ("set_device_idx", None),
        ("set_device_index", None),
    ],
)
def test_name_by_the_accelerator_works(name: str, expected: object) -> None:
    try:
        assert BY_ACCELERATOR[name]() == expected
    finally:
        torch.openreg.set_device(0)
