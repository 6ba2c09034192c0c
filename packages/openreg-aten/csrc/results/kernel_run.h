// SPDX-License-Identifier: BSD-3-Clause
// Runs a CPU kernel whose results are already allocated.
#pragma once

#include "memory/cpu_allocator.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace openreg::aten {

/// Sets the number of threads of a kernel to that of the thread that enqueued
/// it, because the number determines the order of sums. at::set_num_threads()
/// would change it for the whole process.
class ThreadCount {
 public:
  explicit ThreadCount(int count);
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount();

 private:
  int previous_;
};

/// The memory for the tensors that a kernel creates.
struct ResultPlaces {
  struct Place {
    TensorMetadata metadata;
    void* data; // a kernel pointer, or null
  };
  c10::SmallVector<Place, 1> places;
  c10::SmallVector<ResultMemory, 1> memory;

  void add(TensorMetadata metadata, void* data, size_t nbytes);
  /// Adds the memory of an allocated device tensor.
  void add(const at::Tensor& result);
  void clear() {
    places.clear();
    memory.clear();
  }
};

/// Runs the kernel of `op` for `key` with the arguments on `stack`, which is
/// empty afterwards, and moves the results to `results`. Calls `report` with
/// the actual metadata if it differs from the prediction. A different shape or
/// dtype is an error, and different strides are not. Throws the exception of
/// the kernel.
void run_into(
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    torch::jit::Stack& stack,
    ResultPlaces& results,
    c10::function_ref<void(std::vector<TensorMetadata>)> report);

} // namespace openreg::aten
