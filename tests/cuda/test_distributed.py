# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes refuse device tensors instead of crashing."""

from __future__ import annotations

from pathlib import Path

from support.programs import Program

GLOO = """
import torch, torch.distributed as dist
store = dist.FileStore({path!r}, 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
x = torch.ones(2)
dist.all_reduce(x)
print(x.tolist())
for call in (dist.all_reduce, lambda x: dist.broadcast(x, 0)):
    try:
        call(torch.ones(2, device="cuda"))
    except RuntimeError as error:
        print(error)
dist.destroy_process_group()
"""


def test_gloo_refuses_device_tensors(interpreter: Program, tmp_path: Path) -> None:
    ended = interpreter(GLOO.format(path=str(tmp_path / "store")))
    refusal = "No backend type associated with device type cuda"
    assert ended.stdout.splitlines() == ["[1.0, 1.0]", refusal, refusal], ended.stderr


def test_gloo_for_cuda_is_refused(interpreter: Program, tmp_path: Path) -> None:
    source = GLOO.format(path=str(tmp_path / "store"))
    ended = interpreter(source.replace('"gloo"', '"cpu:gloo,cuda:gloo"'))
    assert "'cpu:gloo,cuda:gloo' assigns gloo to CUDA tensors" in ended.stderr
