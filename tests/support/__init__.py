# SPDX-License-Identifier: BSD-3-Clause
"""Pytest plugins and helpers shared by the tests of several packages.

Plugins import neither torch nor the runtime, because the runtime's tests run without
torch, and the tests of the built guide without both.
"""
