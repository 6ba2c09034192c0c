// SPDX-License-Identifier: BSD-3-Clause
// The log of the stress test.
#include "stress_log.h"

#include "documented.h"

#include <cstdarg>
#include <cstdio>

namespace stress {
namespace {

std::atomic<int> g_failures{0};

} // namespace

void fail(const char* format, ...) {
  constexpr int kPrinted = 50; // later ones add nothing
  if (++g_failures > kPrinted) {
    return;
  }
  char text[1024];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof(text), format, values);
  va_end(values);
  std::fprintf(stderr, "FAILED: %s\n", text);
}

int failure_count() {
  return g_failures;
}

void Log::note(const char* function, orError_t error) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  ++counts_[function].at(error);
  if (error != orSuccess && !documents(function, error)) {
    fail(
        "%s returned %s, which the header does not list: %s",
        function,
        orGetErrorName(error),
        orGetErrorMessage());
  }
}

void Log::add_to(Counts& counts) const {
  for (const auto& [function, codes] : counts_) {
    for (std::size_t code = 0; code < codes.size(); ++code) {
      if (codes[code] > 0) {
        counts[function][static_cast<orError_t>(code)] += codes[code];
      }
    }
  }
}

} // namespace stress
