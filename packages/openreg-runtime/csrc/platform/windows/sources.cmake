# SPDX-License-Identifier: BSD-3-Clause
# Windows 10, version 1803, or later.
set(OPENREG_PLATFORM_SOURCES
  portable/claim.cpp
  windows/device_process.cpp
  windows/fault.cpp
  windows/file.cpp
  windows/host_pages.cpp
  windows/library.cpp
  windows/machine.cpp
  windows/mapping.cpp
  windows/process.cpp
  windows/result.cpp
  windows/sharing.cpp
  windows/system.cpp
  windows/thread.cpp
  windows/wait.cpp
)
# The files behind thread.h.
set(OPENREG_PLATFORM_THREAD_SOURCES windows/result.cpp windows/system.cpp windows/thread.cpp)
# Processes that can have a shared block open. A note of 512 bytes divides a page.
set(OPENREG_CLAIMS 60)
