// SPDX-License-Identifier: BSD-3-Clause
// AOTInductor's runtime includes this header; the declarations are in cuda.h.
#pragma once
