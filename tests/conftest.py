# SPDX-License-Identifier: BSD-3-Clause
"""Loads the fixtures that all tests have."""

pytest_plugins = ["support.latches", "support.programs", "support.scripts"]
