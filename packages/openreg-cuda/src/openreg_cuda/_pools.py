# SPDX-License-Identifier: BSD-3-Clause
"""The memory pools of ``torch.cuda.MemPool`` and of graphs, and their states."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from openreg_cuda._backend import compiled, openreg
from openreg_cuda._refused import Refusal

if TYPE_CHECKING:
    import torch

Pool = tuple[int, int]

_numbers = count(1)


def _new_pool() -> Pool:
    """Returns the number of a new pool of the user."""
    return 0, next(_numbers)


class MemPool:
    """The base of ``torch.cuda.MemPool``: a pool of the current device.

    Args:
        allocator: Must be None.
        is_user_created: Ignored: every pool that Python creates is one of the user.
        use_on_oom: Whether its free blocks serve other requests if the device is out of
            memory.
        no_split: Whether each block occupies a whole segment.

    Raises:
        NotImplementedError: If there is an allocator.
    """

    def __init__(
        self,
        allocator: object = None,
        is_user_created: bool = True,
        use_on_oom: bool = False,
        no_split: bool = False,
    ) -> None:
        del is_user_created
        if allocator is not None:
            _ALLOCATOR()
        self._device: int = openreg().current_device()
        self._id = _new_pool()
        compiled().retain_pool(self._device, self._id)
        if use_on_oom or no_split:
            compiled().set_pool_rules(self._device, self._id, no_split, use_on_oom)
        finalizer = weakref.finalize(self, _drop, self._device, self._id)
        finalizer.atexit = False

    @property
    def id(self) -> Pool:
        """The number of the pool."""
        return self._id

    @property
    def device(self) -> int:
        """The index of its device."""
        return self._device

    @property
    def allocator(self) -> None:
        """None: the caching allocator serves the pool."""
        return None

    def use_count(self) -> int:
        """Returns the number of its users: the object, and ``use_mem_pool``."""
        return int(compiled().pool_uses(self._device, self._id))


_ALLOCATOR = Refusal(
    "MemPool(allocator)", "an allocator of CUDA memory cannot allocate simulated memory"
)


def _drop(device: int, pool: Pool) -> None:
    compiled().release_pool(device, pool)
    compiled().empty_pool(pool)


class AllocatorState:
    """The blocks of a pool at some time (``_cuda_getCheckpointState``)."""

    def __init__(self, blocks: object) -> None:
        self.blocks = blocks


def _restore(
    device: int, state: AllocatorState, stale: list[int], live: list[int]
) -> None:
    compiled().restore_pool(device, state.blocks, stale, live)


def _begin(routed: str) -> Callable[[int, Pool], None]:
    return lambda device, pool: compiled().begin_allocate_to_pool(
        device, tuple(pool), routed
    )


def _disown(storage: int) -> None:
    if not compiled().owns_block(storage):
        raise RuntimeError("Expected standard deleter")
    compiled().disown_block(storage)


def _tensor(metadata: dict[str, Any], storage: torch.UntypedStorage) -> torch.Tensor:
    import torch

    tensor = torch.empty(0, dtype=metadata["dtype"], device=storage.device)
    return tensor.set_(
        storage, metadata["storage_offset"], metadata["size"], metadata["stride"]
    )


NAMES: dict[str, object] = {
    "_MemPool": MemPool,
    "_graph_pool_handle": _new_pool,
    "_cuda_beginAllocateToPool": _begin("all"),
    "_cuda_beginAllocateCurrentThreadToPool": _begin("thread"),
    "_cuda_beginAllocateCurrentStreamToPool": _begin("stream"),
    "_cuda_endAllocateToPool": lambda device, pool: compiled().end_allocate_to_pool(
        device, tuple(pool)
    ),
    "_cuda_releasePool": lambda device, pool: compiled().release_pool(
        device, tuple(pool)
    ),
    "_cuda_CUDAAllocator_AllocatorState": AllocatorState,
    "_cuda_getCheckpointState": lambda device, pool: AllocatorState(
        compiled().pool_state(device, tuple(pool))
    ),
    "_cuda_setCheckpointPoolState": _restore,
    "_cuda_checkPoolLiveAllocations": lambda device, pool, expected: (
        compiled().live_blocks(device, tuple(pool)) == set(expected)
    ),
    "_has_Standard_Deleter": lambda storage: compiled().owns_block(storage),
    "_free_And_Remove_DeleterFn": _disown,
    "_construct_CUDA_Tensor_From_Storage_And_Metadata": _tensor,
}
