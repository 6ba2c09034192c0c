# SPDX-License-Identifier: BSD-3-Clause
"""Programs that must observe the same on the CPU and on the device."""
