// SPDX-License-Identifier: BSD-3-Clause
// The ranges of torch.profiler.record_function in the history of the device
// allocator, so that the memory viewer shows the phases of a program.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace openreg::aten {

/// The begin or the end of a range.
struct Annotation {
  std::string name;
  bool is_begin;
  c10::DeviceIndex device; // current at that time
  int64_t time;            // microseconds since 1970
};

/// Records the ranges of the calling thread, or of all threads, from now on.
/// Keeps the latest `max_entries`.
void record_annotations(bool all_threads, size_t max_entries);
void stop_annotations();
void clear_annotations();
/// Oldest first.
std::vector<Annotation> annotations();

} // namespace openreg::aten
