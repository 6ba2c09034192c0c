# SPDX-License-Identifier: BSD-3-Clause
"""Which operators may wait for their stream when they are called, and why."""

from __future__ import annotations

WAITS: dict[str, tuple[str, ...]] = {}


def reason_to_wait(operator: str) -> str | None:
    """Why an operator of ATen may wait for the stream, if it may."""
    name = operator.partition(".")[0]
    return next((why for why, names in WAITS.items() if name in names), None)
