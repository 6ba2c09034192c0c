# SPDX-License-Identifier: BSD-3-Clause
"""Records of a run, and the hooks that write them."""
