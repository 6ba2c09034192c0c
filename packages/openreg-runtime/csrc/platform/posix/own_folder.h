// SPDX-License-Identifier: BSD-3-Clause
// The folder in which processes of one user find each other. Each process has a
// file there, which it locks, and a socket once it shares files.
#pragma once

#include "platform/process.h"
#include "platform/result.h"

#include <string>

namespace openreg::platform {

/// Makes the folder, which only this user can open.
Result make_own_folder();
/// The paths of a process's file and socket.
std::string file_of(ProcessId process);
std::string socket_of(ProcessId process);
/// Removes the files of processes that have ended.
void clean_own_folder() noexcept;
/// Whether another open file holds the lock of the file: its process runs.
bool is_locked(int descriptor) noexcept;

} // namespace openreg::platform
