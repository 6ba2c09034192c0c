// SPDX-License-Identifier: BSD-3-Clause
// The "Errors:" lists of openreg.h, for tests of all functions.
#pragma once

#include <openreg/openreg.h>

#include <map>
#include <set>
#include <string>

/// The codes that the header lists for each function.
const std::map<std::string, std::set<orError_t>>& documented_codes();

/// True if the header lists `code` for `function`.
bool documents(const std::string& function, orError_t code);
