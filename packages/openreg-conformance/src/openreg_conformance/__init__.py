# SPDX-License-Identifier: BSD-3-Clause
"""Judges any device of PyTorch: what works as on the CPU, and what to fix next."""

__version__ = "0.1.0"
