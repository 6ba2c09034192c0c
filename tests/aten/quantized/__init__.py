# SPDX-License-Identifier: BSD-3-Clause
"""Quantized tensors run the CPU's kernels on the device's bytes and parameters."""
