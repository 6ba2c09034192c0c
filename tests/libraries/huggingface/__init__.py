# SPDX-License-Identifier: BSD-3-Clause
"""Architectures of the library transformers, small and random, on openreg."""

import os

# Set before the first import of transformers, to forbid downloads.
os.environ["HF_HUB_OFFLINE"] = "1"
