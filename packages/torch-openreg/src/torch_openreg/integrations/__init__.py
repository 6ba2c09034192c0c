# SPDX-License-Identifier: BSD-3-Clause
"""Classes that other libraries want to be given for a device they do not know.

Each module is named after its library and imports it; nothing else does.
"""
