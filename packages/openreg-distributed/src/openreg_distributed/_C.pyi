from collections.abc import Sequence
from datetime import timedelta

from torch._C._distributed_c10d import Backend

class Options(Backend.Options):
    def __init__(self, timeout: timedelta = ...) -> None: ...

class OcclBackend(Backend): ...

def create(
    gloo: Backend,
    timeout: timedelta,
    group_name: str,
    global_ranks: Sequence[int],
) -> OcclBackend: ...
