# SPDX-License-Identifier: BSD-3-Clause
"""The result of a run, for the Cross-Repository CI Relay of PyTorch.

The relay (RFC-0050, RFC-0054) starts workflows of other repositories for changes in
PyTorch. Each job reports its result in one JSON object: the event that started the
workflow, unchanged, and a field ``workflow`` with the job's status and test counts.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .expectations import is_failure, is_skipped

SCHEMA_VERSION = "1"
_NEEDED = (
    "GITHUB_WORKFLOW",
    "GITHUB_SERVER_URL",
    "GITHUB_REPOSITORY",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_JOB",
)


def check(environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the event with which the relay started the workflow.

    Args:
        environment: The variables that GitHub sets in a job.

    Raises:
        ValueError: If the process does not run in a job that the relay started.
    """
    missing = [
        name for name in ("GITHUB_EVENT_PATH", *_NEEDED) if name not in environment
    ]
    if missing:
        raise ValueError(
            f"--payload needs the variables of a GitHub job; missing: {missing[0]}"
        )
    path = Path(environment["GITHUB_EVENT_PATH"])
    try:
        event = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    sent = event.get("client_payload") if isinstance(event, dict) else None
    if not isinstance(sent, dict) or not {
        "event_type",
        "delivery_id",
        "payload",
    } <= set(sent):
        raise ValueError(
            f"{path} is not an event of PyTorch's relay: its client_payload needs "
            "event_type, delivery_id and payload"
        )
    return sent


def document(
    report: dict[str, Any], environment: Mapping[str, str], now: datetime.datetime
) -> dict[str, Any]:
    """Creates the object that a job sends when it has completed.

    Args:
        report: The report of a run, with expectations applied.
        environment: The variables that GitHub sets in a job. ``CHECK_RUN_ID`` may hold
            the expression ``job.check_run_id``, and ``JOB_NAME`` the name of a job in a
            matrix.
        now: The time of completion, in UTC.

    Raises:
        ValueError: If the process does not run in a job that the relay started.
    """
    sent = check(environment)
    run, attempt = environment["GITHUB_RUN_ID"], environment["GITHUB_RUN_ATTEMPT"]
    server, repository = (
        environment["GITHUB_SERVER_URL"],
        environment["GITHUB_REPOSITORY"],
    )
    counts = results(report)
    return {
        **sent,
        "workflow": {
            "schema_version": SCHEMA_VERSION,
            "status": "completed",
            "conclusion": "failure" if counts["failed"] else "success",
            "name": environment["GITHUB_WORKFLOW"],
            "url": f"{server}/{repository}/actions/runs/{run}",
            "job_name": environment.get("JOB_NAME") or environment["GITHUB_JOB"],
            "check_run_id": environment.get("CHECK_RUN_ID") or f"{run}-{attempt}",
            "run_id": run,
            "run_attempt": attempt,
            "started_at": None,
            "completed_at": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "test_results": counts,
        },
    }


def results(report: dict[str, Any]) -> dict[str, int]:
    """Counts the cases as the relay does: expected failures are skipped tests."""
    cases = report["cases"]
    failed, skipped = sum(map(is_failure, cases)), sum(map(is_skipped, cases))
    return {
        "passed": len(cases) - failed - skipped,
        "failed": failed,
        "skipped": skipped,
    }
