# SPDX-License-Identifier: BSD-3-Clause
"""Small programs with bugs, and the modes that find them."""
