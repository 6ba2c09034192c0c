# SPDX-License-Identifier: BSD-3-Clause
"""Types of the compiled module."""

launcher: object  # a capsule, for generated kernels
