# SPDX-License-Identifier: BSD-3-Clause
"""Makes the backend of a group, and gloo under it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from importlib.metadata import version
from typing import Any

from torch._C._distributed_c10d import (
    Backend,
    PrefixStore,
    ProcessGroupGloo,
    Store,
)
from torch.distributed.distributed_c10d import GroupName

# Before ours: the library of the device and its operators.
try:
    import openreg_aten  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "openreg_aten":
        raise
    raise ImportError(
        "openreg-distributed needs openreg-aten, which is not installed: "
        f"pip install openreg-aten=={version('openreg-distributed')}",
        name=error.name,
    ) from error
import openreg_runtime
from openreg_distributed import _C as _C

Options = _C.Options


def create(options: Any, backend_options: Any) -> Backend:
    """Makes the backend of a group.

    Args:
        options: What ``torch.distributed`` tells of the group: store, rank, size, time
            limit, name, and the ranks; those are none for the default group.
        backend_options: Options of the group, or None.

    Returns:
        The backend of this rank, connected to all others.

    Raises:
        TypeError: If ``backend_options`` are those of another backend.
        RuntimeError: If the other ranks cannot be reached in time, or if devices are in
            processes of their own, whose memory gloo cannot reach.
    """
    if openreg_runtime.setting("OPENREG_ISOLATION").value == "process":
        raise RuntimeError(
            "occl needs device memory in the process of the rank, which "
            "OPENREG_ISOLATION=process does not give: set it to thread or loopback, "
            "or copy tensors to the CPU and use gloo"
        )
    if backend_options is not None and not isinstance(backend_options, Options):
        raise TypeError(
            f"occl takes openreg_distributed.Options, not {type(backend_options)}"
        )
    ranks = list(options.global_ranks_in_group) or list(range(options.group_size))
    name = options.group_id
    gloo = make_engine(options.store, options.group_rank, ranks, options.timeout, name)
    share = backend_options is None or backend_options.share_memory
    return _C.create(gloo, options.timeout, name, ranks, share)


def make_engine(
    store: Store, rank: int, ranks: Sequence[int], timeout: timedelta, name: str
) -> Backend:
    """Makes gloo, which moves the data between the memories of hosts.

    Args:
        store: Where the ranks meet.
        rank: The number of this rank in the group.
        ranks: The ranks of the group, as the default group counts them.
        timeout: The limit for connecting, and of each collective.
        name: The name of the group.

    Raises:
        RuntimeError: If the other ranks cannot be reached in time.
    """
    prefixed = PrefixStore(f"occl{_restart()}", store)
    gloo = ProcessGroupGloo(prefixed, rank, len(ranks), timeout=timeout)
    gloo.options.global_ranks_in_group = list(ranks)
    gloo.options.group_name = GroupName(name)
    return gloo


def _restart() -> str:
    """Tells the ranks that torchrun has started again from those before.

    It gives all of them one store, which still has the addresses of those before. The
    number of restarts is that of a host, and all ranks have the same on one host only.
    """
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if shared and os.environ.get("GROUP_WORLD_SIZE") == "1":
        return "/" + os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return ""
