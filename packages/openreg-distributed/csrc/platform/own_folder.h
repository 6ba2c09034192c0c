// SPDX-License-Identifier: BSD-3-Clause
// Folders of this user.
#pragma once

#include <string>

namespace openreg::distributed {

/// Creates a folder that only this user owns, because names in the folder of
/// temporary files can be guessed. Throws c10::Error.
void make_own_folder(const std::string& path);

} // namespace openreg::distributed
