# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of several packages: pytest plugins and helpers.

Tests of the runtime run without torch, and those of the guide's site without the
runtime: a plugin imports neither. The other modules may.
"""
