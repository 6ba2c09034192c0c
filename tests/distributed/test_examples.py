# SPDX-License-Identifier: BSD-3-Clause
"""The examples print the documented output. One set of ranks runs all of them."""

from __future__ import annotations

import os
import re
import runpy
import sys
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest
import torch.distributed as dist

from support.programs import ROOT
from torch_openreg.testing import run_ranks

pytestmark = pytest.mark.differs_in_process("occl", run=False)

EXAMPLES = ROOT / "examples" / "distributed"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
CHECKPOINT = EXAMPLES / "checkpoint.py"
ELASTIC = EXAMPLES / "elastic.py"  # only torchrun starts its ranks again


def promised(script: Path, what: str = "") -> list[str]:
    source = script.read_text(encoding="utf-8")
    return re.findall(rf"^# prints{what}: (.*)$", source, re.MULTILINE)


def run_scripts(rank: int, folder: Path, commands: list[list[str]]) -> list[str]:
    """Runs scripts in turn, each with its own default group."""
    printed = []
    for number, command in enumerate(commands):
        size = int(os.environ["WORLD_SIZE"])
        # torchrun's store still has the keys of earlier groups.
        store = dist.FileStore(str(folder / f"{size} {number}"), size)
        init = partial(dist.init_process_group, store=store, rank=rank, world_size=size)
        output = StringIO()
        with (
            mock.patch.object(sys, "argv", command),
            mock.patch.object(dist, "init_process_group", init),
            redirect_stdout(output),
        ):
            runpy.run_path(command[0], run_name="__main__")
        printed.append(output.getvalue())
    return printed


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_prints_the_documented_output(tmp_path):
    plain = [script for script in SCRIPTS if script not in (CHECKPOINT, ELASTIC)]
    assert len(plain) >= 4
    commands = [[str(script)] for script in plain]
    saved_in = str(tmp_path / "checkpoint")
    save, load = ([str(CHECKPOINT), what, saved_in] for what in ("save", "load"))
    run = partial(run_ranks, run_scripts, seconds=120, backend=None)
    ranks = run(2, tmp_path, [*commands, save])
    *printed, saved = ("".join(each) for each in zip(*ranks, strict=True))
    for script, found in zip(plain, printed, strict=True):
        assert found.splitlines() == promised(script)
    (loaded, *_), *_ = run(4, tmp_path, [load])
    (first,), (second,) = (
        promised(CHECKPOINT, f", with {w}") for w in ("save", "load")
    )
    assert saved.startswith(first)
    assert loaded.startswith(second)
    assert saved.partition("sum")[2] == loaded.partition("sum")[2]
