// SPDX-License-Identifier: BSD-3-Clause
// How much work kernels are of late, and whether the next one is worth a change
// of threads.
//
// To enqueue a kernel costs the host about a microsecond, and more if a worker
// has to be woken. In return the host goes on while the kernel runs. That is a
// gain if kernels take longer, if the host does not wait soon, and if a core is
// free.
#pragma once

#include <cstddef>
#include <cstdint>

namespace openreg::aten::pace {

/// Whether nothing is enqueued, so that errors keep their types: with
/// OPENREG_LAUNCH_BLOCKING=1.
bool is_blocking();

/// Whether an operator over `bytes` bytes of operands is worth enqueueing on an
/// idle stream. To be asked once per operator. A small one that `may_raise` is
/// not, so that its exception is the call's.
bool is_worth_enqueueing(size_t bytes, bool may_raise);

/// Measures the kernel that it encloses, or nothing: it takes samples.
class Timer {
 public:
  Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

 private:
  int64_t start_; // nanoseconds; 0 without a measurement
};

} // namespace openreg::aten::pace
