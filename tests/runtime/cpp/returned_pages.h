// SPDX-License-Identifier: BSD-3-Clause
// Tests of memory that returns to the system; see platform/file.h.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#define NEEDS_PAGES_TO_RETURN()                      \
  if (std::string_view(OPENREG_PLATFORM) != "linux") \
  GTEST_SKIP() << "only Linux returns pages of a file to the system"
