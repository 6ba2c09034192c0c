// SPDX-License-Identifier: BSD-3-Clause
// Declares thread-local variables that each operator call reads.
#pragma once

/// A thread_local that is read without calling the dynamic linker. All
/// libraries of the process share a few hundred bytes for thread-locals of this
/// kind.
#ifdef __ELF__
#define OPENREG_THREAD_LOCAL \
  thread_local __attribute__((tls_model("initial-exec")))
#else
#define OPENREG_THREAD_LOCAL thread_local
#endif
