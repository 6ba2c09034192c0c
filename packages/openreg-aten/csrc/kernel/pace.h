// SPDX-License-Identifier: BSD-3-Clause
// Whether an operator on an idle stream is worth a change of threads.
//
// To enqueue a kernel costs the host about a microsecond, and more if a worker
// has to be woken. In return the host goes on while the kernel runs. For large
// operands that is a gain. For small ones it depends on the program, which may
// wait soon, and on the machine, whose cores may be taken: both are measured.
#pragma once

#include <cstddef>

namespace openreg::aten::pace {

/// Whether nothing is enqueued, so that errors keep their types: with
/// OPENREG_LAUNCH_BLOCKING=1.
bool is_blocking();

/// Whether an operator over `bytes` bytes of operands is worth enqueueing on an
/// idle stream. To be asked once per operator. A small one that `may_raise` is
/// not, so that its exception is the call's.
bool is_worth_enqueueing(size_t bytes, bool may_raise);

} // namespace openreg::aten::pace
