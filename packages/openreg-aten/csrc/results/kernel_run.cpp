// SPDX-License-Identifier: BSD-3-Clause
// Moves the results of a kernel to the memory that was allocated for them.
#include "results/kernel_run.h"

#include "device/device.h"
#include "platform/library.h"

#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/from_blob.h>

#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;
using Place = ResultPlaces::Place;

void set_threads(int count) {
  if (C10_LIKELY(count == at::get_num_threads())) {
    return;
  }
  // From OpenMP, which a build of PyTorch may not use.
  static const auto set = reinterpret_cast<void (*)(int)>(
      platform::find_function("omp_set_num_threads"));
  if (set != nullptr) {
    set(count);
  }
}

/// Frees the results of a kernel before EnqueuedKernelScope ends, which
/// identifies their memory.
struct StackCleaner {
  Stack& stack;
  ~StackCleaner() {
    stack.clear();
  }
};

template <typename Visit>
void for_each_result(const Stack& stack, const Visit& visit) {
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& each : value.toTensorVector()) {
        visit(each);
      }
    } else {
      visit(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
}

/// Throws the error about a result that differs from its prediction.
[[noreturn]] C10_NOINLINE void throw_mispredicted(
    const c10::OperatorHandle& op,
    size_t index,
    const TensorMetadata& made,
    const TensorMetadata& predicted) {
  const auto text_of = [](const TensorMetadata& metadata) {
    return metadata.defined ? c10::str(
                                  "shape ",
                                  c10::IntArrayRef(metadata.sizes),
                                  ", strides ",
                                  c10::IntArrayRef(metadata.strides),
                                  " and dtype ",
                                  toString(metadata.dtype))
                            : std::string("no tensor");
  };
  TORCH_CHECK(
      false,
      op.operator_name(),
      ": result ",
      index,
      " has ",
      text_of(made),
      ", but the cached metadata predicted ",
      text_of(predicted));
}

/// Throws the error about a wrong number of results.
[[noreturn]] C10_NOINLINE void throw_wrong_count(
    const c10::OperatorHandle& op,
    const char* amount,
    size_t predicted) {
  TORCH_CHECK(
      false,
      op.operator_name(),
      ": returned ",
      amount,
      " than the ",
      predicted,
      " results that the cached metadata predicted");
}

/// Copies each result that the kernel did not write to its predicted memory.
void put_results(
    const c10::OperatorHandle& op,
    const Stack& stack,
    ResultPlaces& results,
    c10::function_ref<void(std::vector<TensorMetadata>)> report) {
  for (ResultMemory& each : results.memory) {
    each.taken = true; // the copies below must not allocate from it
  }
  size_t count = 0;
  bool reported = false;
  c10::SmallVector<std::pair<const Place*, at::Tensor>, 1> elsewhere;
  for_each_result(stack, [&](const at::Tensor& made) {
    if (count >= results.places.size()) {
      throw_wrong_count(op, "more", results.places.size());
    }
    const Place& result = results.places[count];
    const bool fits = made.defined() == result.metadata.defined &&
        (!made.defined() ||
         (made.sizes() == result.metadata.sizes &&
          made.scalar_type() == result.metadata.dtype));
    const bool has_strides =
        !made.defined() || made.strides() == result.metadata.strides;
    if (C10_UNLIKELY(!(fits && has_strides)) &&
        !std::exchange(reported, true)) {
      std::vector<TensorMetadata> all;
      for_each_result(stack, [&](const at::Tensor& each) {
        all.push_back(metadata_of(each));
      });
      report(std::move(all));
    }
    if (C10_UNLIKELY(!fits)) {
      throw_mispredicted(op, count, metadata_of(made), result.metadata);
    }
    count += 1;
    if (made.defined() && (made.data_ptr() != result.data || !has_strides)) {
      // Its memory may be the place of another result.
      elsewhere.emplace_back(
          &result, to_device(made.data_ptr()) ? made.clone() : made);
    }
  });
  if (count != results.places.size()) {
    throw_wrong_count(op, "fewer", results.places.size());
  }
  for (const auto& [result, tensor] : elsewhere) {
    at::from_blob(
        result->data,
        result->metadata.sizes,
        result->metadata.strides,
        tensor.options())
        .copy_(tensor);
  }
}

} // namespace

ThreadCount::ThreadCount(int count) : previous_(at::get_num_threads()) {
  set_threads(count);
}

ThreadCount::~ThreadCount() {
  set_threads(previous_);
}

void ResultPlaces::add(TensorMetadata metadata, void* data, size_t nbytes) {
  places.push_back({std::move(metadata), data});
  if (data != nullptr) {
    memory.push_back({data, nbytes, false});
  }
}

void ResultPlaces::add(const at::Tensor& result) {
  void* data = result.defined() ? to_kernel(result.data_ptr()) : nullptr;
  add(metadata_of(result),
      data,
      data != nullptr ? result.storage().nbytes() : 0);
}

void run_into(
    const c10::OperatorHandle& op,
    c10::DispatchKey key,
    Stack& stack,
    ResultPlaces& results,
    c10::function_ref<void(std::vector<TensorMetadata>)> report) {
  const EnqueuedKernelScope scope(results.memory);
  const StackCleaner cleaner{stack};
  op.redispatchBoxed(c10::DispatchKeySet(key), &stack);
  if (!results.places.empty()) { // else it only wrote to arguments
    put_results(op, stack, results, report);
  }
}

} // namespace openreg::aten
