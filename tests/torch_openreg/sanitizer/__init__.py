# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer reports use of memory that no stream, event or wait has ordered."""
