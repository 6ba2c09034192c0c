// SPDX-License-Identifier: BSD-3-Clause
// One run of a CPU kernel whose results have their memory.
#pragma once

#include "memory/cpu_allocator.h"
#include "results/output_metadata.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <vector>

namespace openreg::aten {

/// Lets a kernel have as many threads as the thread that enqueued it: the
/// number decides in which order it sums. at::set_num_threads() would set it
/// for the whole process too.
class ThreadCount {
 public:
  explicit ThreadCount(int count);
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount();

 private:
  int previous_;
};

/// Where the new tensors that a kernel makes have to go.
struct ResultPlaces {
  struct Place {
    TensorMetadata metadata;
    void* data; // a kernel pointer, or null
  };
  c10::SmallVector<Place, 1> places;
  c10::SmallVector<ResultMemory, 1> memory;

  void add(TensorMetadata metadata, void* data, size_t nbytes);
  /// The memory of a device tensor.
  void add(const at::Tensor& result);
  void clear() {
    places.clear();
    memory.clear();
  }
};

/// Runs the kernel of `op` for `key` with the arguments on `stack`, which is
/// empty afterwards, and puts its results into place. `tell` gets what it made
/// if that has other strides than its place, or does not fit, which is an
/// error. Throws what the kernel throws.
void run_into(
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    torch::jit::Stack& stack,
    ResultPlaces& results,
    c10::function_ref<void(std::vector<TensorMetadata>)> tell);

} // namespace openreg::aten
