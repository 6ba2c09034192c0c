# SPDX-License-Identifier: BSD-3-Clause
"""Accesses to freed memory, which another stream may have reused, are found."""

from __future__ import annotations

import pytest
import torch

from .programs import (
    DEVICE,
    Access,
    new,
    use_after_free_of,
    use_by_another_stream,
)


def smaller_part_of_the_memory(main: torch.Stream, side: torch.Stream) -> None:
    x = new(15_000)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    del x  # freed
    y = new(14_000)  # again  # second
    y.sum()


def stream_that_waits_after_it_was_recorded(
    main: torch.Stream, side: torch.Stream
) -> None:
    x, other = new(100), torch.Stream(DEVICE)  # allocated
    side.wait_stream(main)
    with side:
        x.sum()  # first
    x.record_stream(other)
    del x  # freed
    other.wait_stream(side)
    y = torch.empty(100, device=DEVICE)  # again
    y.zero_()  # second


def memory_of_a_stream_used_by_another(main: torch.Stream, side: torch.Stream) -> None:
    x = new(100)  # allocated
    x.mul_(2)  # first
    del x  # freed
    y = torch.empty(100, device=DEVICE)  # again
    with side:
        y.zero_()  # second


@pytest.mark.parametrize(
    "program",
    [
        use_by_another_stream,
        smaller_part_of_the_memory,
        stream_that_waits_after_it_was_recorded,
        memory_of_a_stream_used_by_another,
    ],
    ids=lambda program: program.__name__,
)
def test_use_after_free_is_found_with_the_lines_of_its_memory(
    program: Access, main: torch.Stream, side: torch.Stream
) -> None:
    error = use_after_free_of(program, main, side)
    by_record_stream = program is not memory_of_a_stream_used_by_another
    assert ("record_stream" in str(error)) == by_record_stream
