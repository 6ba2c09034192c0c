# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer reports accesses that no stream, event or wait orders."""
