# SPDX-License-Identifier: BSD-3-Clause
"""Compares a device with the CPU on PyTorch's databases, without a runner."""
