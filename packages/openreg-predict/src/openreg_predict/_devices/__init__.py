# SPDX-License-Identifier: BSD-3-Clause
"""Described devices: their files, their hardware and their host."""
