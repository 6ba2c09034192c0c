# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of all tests: programs in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

Fork = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fork]:
    """Runs a file, or source as by ``python -c``, as a fresh interpreter does.

    The function takes ``path`` or ``source``, and all of the ``environment``. The
    process has PyTorch already (see fork_server.py).
    """
    folder = tmp_path_factory.mktemp("programs")
    out, err = folder / "out", folder / "err"
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    requests, replies = server.stdin, server.stdout

    def run(
        *, environment: Mapping[str, str], path: Path | None = None, source: str = ""
    ) -> subprocess.CompletedProcess[str]:
        request = {
            "path": str(path) if path else None,
            "source": source,
            "environment": dict(environment),
            "out": str(out),
            "err": str(err),
            "seconds": 50,
        }
        requests.write(json.dumps(request) + "\n")
        requests.flush()
        status = int(replies.readline())
        return subprocess.CompletedProcess(
            [str(path or "-c")], status, out.read_text("utf-8"), err.read_text("utf-8")
        )

    yield run
    requests.close()
    server.wait()
    replies.close()
