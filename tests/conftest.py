# SPDX-License-Identifier: BSD-3-Clause
"""Loads the fixtures that all tests have."""

import os

pytest_plugins = ["support.latches", "support.programs", "support.scripts"]

# Many tests count how operators run, which depends on measured times otherwise.
# tox runs tests/semantics with the default, and so does tests/integration/test_pace.py.
os.environ.setdefault("OPENREG_ENQUEUE_BURSTS", "0")
