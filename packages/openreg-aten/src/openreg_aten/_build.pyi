# SPDX-License-Identifier: BSD-3-Clause
"""Types of the module that CMake writes."""

TORCH_VERSION: str
