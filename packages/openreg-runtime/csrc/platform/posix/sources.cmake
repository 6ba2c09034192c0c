# SPDX-License-Identifier: BSD-3-Clause
# macOS, and other systems that have POSIX.
set(OPENREG_PLATFORM_SOURCES
  portable/claim.cpp
  posix/channel.cpp
  posix/child.cpp
  posix/fault.cpp
  posix/fault_signals.cpp
  posix/file.cpp
  posix/host_pages.cpp
  posix/library.cpp
  posix/machine.cpp
  posix/mapping.cpp
  posix/memory_file.cpp
  posix/own_folder.cpp
  posix/own_library.cpp
  posix/passing.cpp
  posix/process.cpp
  posix/process_id.cpp
  posix/reservation.cpp
  posix/result.cpp
  posix/sharing.cpp
  posix/socket.cpp
  posix/thread.cpp
  posix/thread_number.cpp
  posix/wait.cpp
)
# Processes that can have a shared block open. A note of 512 bytes divides a page.
set(OPENREG_CLAIMS 60)
