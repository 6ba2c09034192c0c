# SPDX-License-Identifier: BSD-3-Clause
"""The resources of the process, and the version of the library."""

from __future__ import annotations

from importlib.metadata import version

import openreg_runtime as runtime
from openreg_runtime import failures


def changes(before: runtime.ResourceUsage) -> dict[str, int]:
    """Returns the differences of fields from ``before``."""
    now = runtime.resource_usage()._asdict()
    return {k: now[k] - v for k, v in before._asdict().items() if now[k] != v}


def test_usage_counts_every_kind_of_object() -> None:
    before = runtime.resource_usage()
    blocks = [runtime.Buffer(1000, 0), runtime.Buffer(24, 1)]
    assert changes(before) == {"device_blocks": 2, "device_bytes": 1024}
    blocks.clear()
    pinned = runtime.PinnedBuffer(100)
    assert changes(before) == {"host_blocks": 1, "host_bytes": 100}
    del pinned
    event = runtime.Event()
    assert changes(before) == {"events": 1}
    del event
    with failures.inject_failure("malloc"):
        assert changes(before) == {"failures": 1}
    stream = runtime.Stream()
    assert changes(before) == {"streams": 1}
    stream.launch(int)
    assert changes(before) == {"streams": 1, "threads": 1}


def test_usage_starts_no_device(run_script) -> None:
    done = run_script(
        """
        import openreg_runtime as runtime
        print(sum(runtime.resource_usage()))
        runtime.Buffer(8)
        print(sum(runtime.resource_usage()))
        """
    )
    assert done.stdout.splitlines() == ["0", "0"], done.stderr


def test_version_is_that_of_the_package() -> None:
    assert ".".join(map(str, runtime.version())) == version("openreg-runtime")
