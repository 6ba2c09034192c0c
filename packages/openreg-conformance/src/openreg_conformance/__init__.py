# SPDX-License-Identifier: BSD-3-Clause
"""Checks any PyTorch device against the CPU, and reports what to fix next."""

__version__ = "0.1.0"
