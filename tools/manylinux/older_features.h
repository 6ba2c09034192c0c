// SPDX-License-Identifier: BSD-3-Clause
// Included before each source: features of libstdc++ that need a newer glibc.
#pragma once

#ifdef __cplusplus
#include <bits/c++config.h>
// libstdc++ then waits on CLOCK_REALTIME until CLOCK_MONOTONIC has advanced.
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT   // glibc 2.30
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK  // glibc 2.30
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK // glibc 2.30
#endif
