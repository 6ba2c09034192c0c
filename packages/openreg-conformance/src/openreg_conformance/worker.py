# SPDX-License-Identifier: BSD-3-Clause
"""A process that runs cases, one at a time, for its parent.

It reads case names as lines of JSON and answers each with a line of JSON. Output of a
device goes to standard error, whose end the parent quotes after a crash.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import random
import signal
import sys
import time
import traceback
import unittest
import warnings
from typing import Any

from .case import BITS, Case, Inexact, SkippedError, Verdict
from .loading import UnusableError, load, module_names
from .suites import cases

ALONE = 60.0  # seconds after which a case ends itself if its parent has not ended it
NO_SAMPLES = "the database has no sample that can be called so"


def main() -> None:
    """Runs until the parent closes the pipe."""
    config = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")

    device = config["device"]
    try:
        about = load(device, config["imports"])
    except UnusableError as error:
        say({"unusable": str(error)})
        return
    import torch

    # With one thread a CPU kernel sums in a fixed order.
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {case.name: case for case in cases(config["suites"], config["level"])}
        was_usable = is_usable(device)
    modules = ["torch", *module_names(config["imports"])] if config["imports"] else []
    head = "".join(f"import {name}\n" for name in modules)
    listed = [described(case) for case in known.values()] if config["list"] else []
    say({"ready": about, "cases": listed})
    for line in sys.stdin:
        request = json.loads(line)
        case = known[request["case"]]
        if request.get("program"):
            say({"program": head + case.program(device)})
            continue
        # If the parent was killed and cannot do it.
        faulthandler.dump_traceback_later(request["limit"] + ALONE, exit=True)
        answer = judge(case, device, exact=config["exact"])
        faulthandler.cancel_dump_traceback_later()
        if answer.get("program"):
            answer["program"] = head + answer["program"]
        say(answer)
        failed = answer["outcome"] == "failed"
        say({"usable": not failed or is_usable(device) == was_usable})


def described(case: Case) -> dict[str, Any]:
    """Returns the parts of a case for the parent."""
    return {
        "name": case.name,
        "mechanism": case.mechanism,
        "subject": case.subject,
        "title": case.title,
        "users": round(case.users, 4),
    }


def is_usable(device: str) -> bool:
    """Returns whether the device still computes."""
    import torch

    try:
        ones = torch.ones(2, device=device)
        return bool((ones + ones).cpu().tolist() == [2, 2])
    except Exception:  # any exception means that it does not
        return False


def judge(case: Case, device: str, *, exact: bool = False) -> dict[str, Any]:
    """Runs a case; returns its outcome as plain values.

    Args:
        case: The case.
        device: The type of the device.
        exact: Whether values fail that are not bitwise equal to the CPU's.
    """
    import torch

    start = time.monotonic()
    random.seed(0)
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = case.run(device)
    except SkippedError as error:
        found: dict[str, Any] = {"outcome": "skipped", "message": str(error)}
    except unittest.SkipTest:  # raised by the database
        found = {"outcome": "skipped", "message": NO_SAMPLES}
    except Exception as error:
        found = {
            "outcome": "failed",
            "made": 1,
            "passed": 0,
            "message": _told(error),
            "program": case.program(device),
        }
    else:
        if exact and verdict.inexact is not None:
            verdict = demand_bits(verdict, verdict.inexact)
        failed = verdict.passed < verdict.made
        found = {
            "outcome": "failed" if failed else "passed",
            "made": verdict.made,
            "passed": verdict.passed,
        }
        if verdict.made == 0:
            found = {"outcome": "skipped", "message": verdict.message or NO_SAMPLES}
        if verdict.same_bits is not None:
            found["same_bits"] = verdict.same_bits
        if failed:
            program = verdict.program or case.program(device)
            found |= {
                "message": verdict.message,
                "check": verdict.check,
                "program": program,
            }
    return {**found, "seconds": round(time.monotonic() - start, 4)}


def demand_bits(verdict: Verdict, inexact: Inexact) -> Verdict:
    """Fails checks without bitwise equality; other failures take precedence."""
    passed = verdict.passed - inexact.made
    if verdict.message:
        return dataclasses.replace(verdict, passed=passed)
    more = inexact.made - 1
    return dataclasses.replace(
        verdict,
        passed=passed,
        message=inexact.message + f" (and {more} more)" * bool(more),
        check=BITS,
        program=inexact.program,
    )


def _told(error: Exception) -> str:
    """Formats an exception with the line of the case that raised it."""
    told = f"{type(error).__name__}: {' '.join(str(error).split())[:600]}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/suites/" in each.filename]
    return f"{told} (at: {ours[-1].line})" if ours and ours[-1].line else told


if __name__ == "__main__":
    main()
