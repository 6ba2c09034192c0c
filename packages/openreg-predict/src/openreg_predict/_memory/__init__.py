# SPDX-License-Identifier: BSD-3-Clause
"""The rules of CUDA's caching allocator, and the replay of a record through them."""
