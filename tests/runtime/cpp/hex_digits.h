// SPDX-License-Identifier: BSD-3-Clause
// Hexadecimal digits in the expected text of a death test.
#pragma once

#if defined(_WIN32) // where GoogleTest has only simple regular expressions
#define HEX_DIGITS "\\w+"
#else
#define HEX_DIGITS "[0-9a-f]+"
#endif
