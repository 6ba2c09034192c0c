from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist

class Options(dist.Backend.Options):  # type: ignore[name-defined, misc]
    def __init__(self, timeout: timedelta = ...) -> None: ...

class OcclBackend(dist.Backend): ...

def create(
    gloo: dist.Backend,
    timeout: timedelta,
    group_name: str,
    global_ranks: Sequence[int],
) -> OcclBackend: ...
