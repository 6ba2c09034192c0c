# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of several packages share: plugins of pytest, and helpers to import.

Tests of the runtime run without torch, and those of the guide's site without the
runtime: a plugin imports neither. The other modules may.
"""
