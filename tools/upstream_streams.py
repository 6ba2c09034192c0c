# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's tests of CUDA streams on CUDA devices of openreg, under schedules.

    OPENREG_DEVICE=cuda python tools/upstream_streams.py pytorch/test --seeds 50

The folder is part of PyTorch's sources, and no wheel contains it. The tests have
"stream" or "event" in their names, in ``test_cuda.py`` and ``test_cuda_multigpu.py``.
They run in one process, once in the default order, then under the schedule
``lazy`` and under each seed. A test that fails in the default order is left out of the
others. The exit status is 1 if a test fails in the default order or under ``lazy``, or
under a seed without the error of a known reason, or if no test passes.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
import time
import unittest
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENREG_DEVICE", "cuda")

_FILES = ("test_cuda", "test_cuda_multigpu")
_WORDS = ("stream", "event")


class _Known(NamedTuple):
    """A failure that is expected under some seeds, and is not counted."""

    error: str  # a regular expression of the error's line
    reason: str


_RUNS_AT_QUERY = _Known(
    r"AssertionError: True is not false",
    "expects that a sleep still runs at a query",
)
_RUNS_AT_ALLOCATION = _Known(
    r"AssertionError: AssertionError not raised( : allocation re-used to soon)?",
    "expects that a sleep still keeps a freed block at the next allocation",
)
_EXPECTED = {
    "test_copy_streams": _Known(
        r"AssertionError: Tensor-likes are not close!",
        "copies tensors of the default stream on other streams, without a wait",
    ),
    "test_events": _RUNS_AT_QUERY,
    "test_events_multi_gpu_query": _RUNS_AT_QUERY,
    "test_events_wait": _RUNS_AT_QUERY,
    "test_record_stream": _RUNS_AT_ALLOCATION,
    "test_record_stream_on_shifted_view": _RUNS_AT_ALLOCATION,
    "test_stream_event_nogil": _Known(
        r"AssertionError: \S+ not greater than \S+",
        "expects that two kernels run at the same time",
    ),
    "test_streams_multi_gpu_query": _RUNS_AT_QUERY,
}


def _names(folder: Path) -> list[str]:
    """Returns the names of the tests, such as ``test_cuda.TestCuda.test_streams``."""
    sys.path.insert(0, str(folder))
    sys.argv = sys.argv[:1]  # PyTorch's tests parse it
    loader = unittest.defaultTestLoader
    return [
        f"{file}.{case.__name__}.{name}"
        for file in _FILES
        for case in vars(importlib.import_module(file)).values()
        if isinstance(case, type)
        and issubclass(case, unittest.TestCase)
        and case.__module__ == file
        for name in loader.getTestCaseNames(case)
        if any(word in name for word in _WORDS)
    ]


def _run(name: str) -> tuple[str, str]:
    """Returns ``passed``, ``skipped`` or ``failed``, and the line of the error."""
    result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(
        unittest.defaultTestLoader.loadTestsFromName(name)
    )
    for _, text in (*result.failures, *result.errors):
        named = [each for each in text.splitlines() if re.match(r"[\w.]+Error", each)]
        return "failed", (named or [text.strip()])[-1]
    return ("skipped" if result.skipped else "passed"), ""


def _reason(name: str, order: str, error: str) -> str | None:
    """Returns why a failure is expected, or None. Only seeds excuse a failure."""
    known = _EXPECTED.get(name.rpartition(".")[2])
    if known is None or not order.startswith("random:"):
        return None
    return known.reason if re.fullmatch(known.error, error) else None


def main() -> int:
    """Runs the tests and prints one line for each schedule and each failure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder test of PyTorch")
    parser.add_argument("--seeds", type=int, default=50, help="random schedules")
    parser.add_argument("--first-seed", type=int, default=0, help="0 by default")
    parser.add_argument("--leave-out", nargs="*", default=[], help="parts of names")
    arguments = parser.parse_args()
    for file in _FILES:
        if not (arguments.folder / f"{file}.py").is_file():
            parser.error(f"folder {arguments.folder} has no {file}.py")

    import torch

    from torch_openreg.testing import schedule

    names = [
        name
        for name in _names(arguments.folder)
        if not any(part in name for part in arguments.leave_out)
    ]
    passed = unexpected = 0
    first = arguments.first_seed
    seeds = range(first, first + arguments.seeds)
    for order in ("eager", "lazy", *(f"random:{seed}" for seed in seeds)):
        began = time.monotonic()
        outcomes = {}
        for name in names:
            with schedule(order):
                outcomes[name], error = _run(name)
            if outcomes[name] == "failed":
                reason = _reason(name, order, error)
                if reason is not None:
                    outcomes[name] = "expected to fail"
                print(f"{order}: {name}: {reason or error}", flush=True)
        counts = [
            f"{list(outcomes.values()).count(each)} {each}"
            for each in ("passed", "skipped", "expected to fail", "failed")
        ]
        torch.cuda.empty_cache()  # the tests of each order use other streams
        seconds = time.monotonic() - began
        print(f"{order}: {', '.join(counts)}, {seconds:.0f} s", flush=True)
        passed += list(outcomes.values()).count("passed")
        unexpected += list(outcomes.values()).count("failed")
        if order == "eager":
            names = [name for name in names if outcomes[name] != "failed"]
    print(f"{unexpected} unexpected failures" + ("" if passed else ", no test passed"))
    return 1 if unexpected or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
