# SPDX-License-Identifier: BSD-3-Clause
"""Predictions as text, as a page and as a trace."""
