# SPDX-License-Identifier: BSD-3-Clause
"""The result of a run for PyTorch's Cross-Repository CI Relay."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from openreg_conformance import expectations, relay

from .conftest import Command

SENT = {
    "event_type": "pull_request",
    "delivery_id": "a8f5f167-6e5b-4c3d-8a2e-4b5c6d7e8f9a",
    "payload": {
        "pull_request": {"number": 7, "head": {"sha": "a1b2c3"}},
        "repository": {"full_name": "pytorch/pytorch"},
    },
}
NOW = datetime.datetime(2026, 4, 28, 10, 45, 12, tzinfo=datetime.UTC)


@pytest.fixture
def job(tmp_path: Path) -> dict[str, str]:
    """The variables of a GitHub job that the relay started."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"action": "pull_request", "client_payload": SENT}))
    return {
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_WORKFLOW": "acme-ci",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/torch-acme",
        "GITHUB_RUN_ID": "24033272679",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_JOB": "conformance",
    }


def test_event_is_returned_with_the_result_of_the_job(
    report: dict[str, Any], job: dict[str, str]
) -> None:
    sent = relay.document(report, job, NOW)
    assert {key: sent[key] for key in SENT} == SENT
    assert sent["workflow"] == {
        "schema_version": "1",
        "status": "completed",
        "conclusion": "failure",
        "name": "acme-ci",
        "url": "https://github.com/acme/torch-acme/actions/runs/24033272679",
        "job_name": "conformance",
        "check_run_id": "24033272679-2",
        "run_id": "24033272679",
        "run_attempt": "2",
        "started_at": None,
        "completed_at": "2026-04-28T10:45:12Z",
        "test_results": {"passed": 1, "failed": 1, "skipped": 1},
    }


def test_expected_failures_are_skipped_tests_of_a_successful_job(
    report: dict[str, Any], job: dict[str, str]
) -> None:
    known = [expectations.Expectation(("operators/*",), "not yet")]
    expectations.apply(report, known)
    workflow = relay.document(report, job, NOW)["workflow"]
    assert workflow["conclusion"] == "success"
    assert workflow["test_results"] == {"passed": 1, "failed": 0, "skipped": 2}


def test_variables_name_a_job_of_a_matrix_and_its_check(
    report: dict[str, Any], job: dict[str, str]
) -> None:
    given = {**job, "JOB_NAME": "conformance-3.13", "CHECK_RUN_ID": "98765432100"}
    workflow = relay.document(report, given, NOW)["workflow"]
    assert workflow["job_name"] == "conformance-3.13"
    assert workflow["check_run_id"] == "98765432100"


def test_command_writes_the_payload_of_an_earlier_run(
    command: Command, report: dict[str, Any], job: dict[str, str], tmp_path: Path
) -> None:
    run, payload = tmp_path / "run.json", tmp_path / "payload.json"
    run.write_text(json.dumps(report))
    done = command("report", run, "--payload", payload, **job)
    assert done.status == 1, done.errors
    sent = json.loads(payload.read_text(encoding="utf-8"))
    assert sent["workflow"]["test_results"]["failed"] == 1


def test_job_that_the_relay_did_not_start_is_refused(
    command: Command, job: dict[str, str], tmp_path: Path
) -> None:
    Path(job["GITHUB_EVENT_PATH"]).write_text('{"ref": "refs/heads/main"}')
    run = ("run", "--device", "cpu", "--payload", tmp_path / "payload.json")
    done = command(*run, **job)
    assert done.status == 2
    assert "is not an event of PyTorch's relay" in done.errors
    with pytest.raises(ValueError, match="missing: GITHUB_EVENT_PATH"):
        relay.check({})
