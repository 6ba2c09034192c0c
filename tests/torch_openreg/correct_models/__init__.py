# SPDX-License-Identifier: BSD-3-Clause
"""Correct programs under schedules: the same bits, and no false alarm."""
