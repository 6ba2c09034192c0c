# SPDX-License-Identifier: BSD-3-Clause
"""Architectures of the library transformers, small and random, on openreg."""

import os

# Before the first import of transformers: nothing may be fetched.
os.environ["HF_HUB_OFFLINE"] = "1"
