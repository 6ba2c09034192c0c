# SPDX-License-Identifier: BSD-3-Clause
"""Times of works on a device: the fitted constants, corrections and intervals."""
