# SPDX-License-Identifier: BSD-3-Clause
"""The resources of the process."""

from __future__ import annotations

from typing import NamedTuple

from . import _C


class ResourceUsage(NamedTuple):
    """The resources of the process. A test without leaks does not change them.

    Attributes:
        device_blocks: Blocks of device memory.
        device_bytes: Their bytes, as requested.
        host_blocks: Blocks of pinned memory.
        host_bytes: Their bytes, as requested.
        host_registrations: Other host memory that is pinned.
        unprotected_blocks: Blocks that are open to the host.
        ipc_mappings: Blocks of other processes.
        streams: Streams, without default streams.
        events: Events.
        failures: Injected failures, including ``OPENREG_FAILURES``.
        threads: Workers of all streams.
        graphs: Graphs.
    """

    device_blocks: int
    device_bytes: int
    host_blocks: int
    host_bytes: int
    host_registrations: int
    unprotected_blocks: int
    ipc_mappings: int
    streams: int
    events: int
    failures: int
    threads: int
    graphs: int


def resource_usage() -> ResourceUsage:
    """Counts the resources of the process; does not initialize devices.

    Raises:
        OpenRegError: In a child that was forked while the devices were in use.
    """
    return ResourceUsage(*_C.resource_usage())
