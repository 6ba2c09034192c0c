// SPDX-License-Identifier: BSD-3-Clause
// How to declare variables of a thread that every call reads.
#pragma once

/// A thread_local that is read without a call of the dynamic linker. All
/// libraries together have room for a few hundred bytes of them.
#ifdef __ELF__
#define OPENREG_THREAD_LOCAL \
  thread_local __attribute__((tls_model("initial-exec")))
#else
#define OPENREG_THREAD_LOCAL thread_local
#endif
