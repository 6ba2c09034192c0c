# SPDX-License-Identifier: BSD-3-Clause
# Linux: files of POSIX, and files for interfaces that only Linux has.
set(OPENREG_PLATFORM_SOURCES
  linux/channel.cpp
  linux/fault_signals.cpp
  linux/library.cpp
  linux/memory_file.cpp
  linux/process_id.cpp
  linux/reservation.cpp
  linux/sharing.cpp
  linux/thread_number.cpp
  linux/wait.cpp
  posix/child.cpp
  posix/fault.cpp
  posix/file.cpp
  posix/host_pages.cpp
  posix/machine.cpp
  posix/mapping.cpp
  posix/own_library.cpp
  posix/process.cpp
  posix/result.cpp
  posix/socket.cpp
  posix/thread.cpp
)
# Claims are locks, which leave their room empty. It fills the note up to 64 bytes.
set(OPENREG_CLAIMS 4)
