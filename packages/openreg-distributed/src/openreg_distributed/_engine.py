# SPDX-License-Identifier: BSD-3-Clause
"""Creates the backend of a group, and gloo below it."""

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

# Loads the device library and the operators before openreg_distributed._C.
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
    """Creates the backend of a group.

    Args:
        options: The group's data from ``torch.distributed``: store, rank, size, time
            limit, name, and the ranks, which are empty for the default group.
        backend_options: Options of the group, or None.

    Returns:
        The backend of this rank, connected to all others.

    Raises:
        TypeError: If ``backend_options`` belong to another backend.
        RuntimeError: If the other ranks cannot be reached in time, or if devices are in
            separate processes, whose memory gloo cannot access.
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
    """Creates gloo, which moves data between the memories of hosts.

    Args:
        store: The store through which the ranks connect.
        rank: The number of this rank in the group.
        ranks: The ranks of the group, as numbers in the default group.
        timeout: The limit for connecting, and for each collective.
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
    """Returns a store prefix that separates restarted ranks from earlier ones.

    torchrun gives all of them one store, which still contains the earlier ranks'
    addresses. The restart count is per host, so all ranks have the same count only on a
    single host.
    """
    shared = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if shared and os.environ.get("GROUP_WORLD_SIZE") == "1":
        return "/" + os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return ""
