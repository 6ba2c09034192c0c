// SPDX-License-Identifier: BSD-3-Clause
// AOTInductor's runtime includes it; all is in cuda.h.
#pragma once
