# SPDX-License-Identifier: BSD-3-Clause
"""Predictions of programs, and virtual time inside of them."""
