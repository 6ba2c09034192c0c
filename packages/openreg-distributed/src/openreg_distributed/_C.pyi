from collections.abc import Sequence
from datetime import timedelta

from torch._C._distributed_c10d import Backend

class Options(Backend.Options):
    share_memory: bool
    def __init__(self, timeout: timedelta = ..., share_memory: bool = True) -> None: ...

class OcclBackend(Backend):
    shares_memory: bool

def create(
    gloo: Backend,
    timeout: timedelta,
    group_name: str,
    global_ranks: Sequence[int],
    share_memory: bool,
) -> OcclBackend: ...
def flight_record(reason: str) -> str: ...
def write_flight_record(reason: str, path: str) -> str: ...
def register_symmetric_memory() -> None: ...
