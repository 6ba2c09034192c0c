// SPDX-License-Identifier: BSD-3-Clause
// A declaration for thread-local variables that every call reads.
#pragma once

/// A thread_local that is read without a call of the dynamic linker. All
/// libraries of a process share a few hundred bytes for these variables.
#ifdef __ELF__
#define OPENREG_THREAD_LOCAL \
  thread_local __attribute__((tls_model("initial-exec")))
#else
#define OPENREG_THREAD_LOCAL thread_local
#endif
