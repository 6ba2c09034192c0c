// SPDX-License-Identifier: BSD-3-Clause
// How a kernel's results get into the memory that was made for them.
#include "results/kernel_run.h"

#include "device/device.h"

#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/from_blob.h>

#include <utility>

// OpenMP's, which PyTorch's library may not use.
extern "C" __attribute__((weak)) void omp_set_num_threads(int count);

namespace openreg::aten {
namespace {

using torch::jit::Stack;
using Place = ResultPlaces::Place;

void set_threads(int count) {
  if (C10_UNLIKELY(
          count != at::get_num_threads() && &omp_set_num_threads != nullptr)) {
    omp_set_num_threads(count);
  }
}

/// Drops what a kernel made while the memory of its results is known as such.
struct StackCleaner {
  Stack& stack;
  ~StackCleaner() {
    stack.clear();
  }
};

template <typename See>
void for_each_result(const Stack& stack, const See& see) {
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& each : value.toTensorVector()) {
        see(each);
      }
    } else {
      see(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
}

std::string describe(const TensorMetadata& metadata) {
  return metadata.defined ? c10::str(
                                "of shape ",
                                c10::IntArrayRef(metadata.sizes),
                                " and dtype ",
                                toString(metadata.dtype))
                          : "undefined";
}

/// Copies what the kernel did not put into the results' memory by itself.
void put_results(
    const Stack& stack,
    ResultPlaces& results,
    c10::function_ref<void(std::vector<TensorMetadata>)> tell) {
  for (ResultMemory& each : results.memory) {
    each.taken = true; // for no copy below
  }
  size_t count = 0;
  bool told = false;
  c10::SmallVector<std::pair<const Place*, at::Tensor>, 1> elsewhere;
  for_each_result(stack, [&](const at::Tensor& made) {
    TORCH_CHECK(count < results.places.size(), "made more results than before");
    const Place& result = results.places[count];
    const bool fits = made.defined() == result.metadata.defined &&
        (!made.defined() ||
         (made.sizes() == result.metadata.sizes &&
          made.scalar_type() == result.metadata.dtype));
    const bool has_strides =
        !made.defined() || made.strides() == result.metadata.strides;
    if (C10_UNLIKELY(!(fits && has_strides)) && !std::exchange(told, true)) {
      std::vector<TensorMetadata> all;
      for_each_result(stack, [&](const at::Tensor& each) {
        all.push_back(metadata_of(each));
      });
      tell(std::move(all));
    }
    TORCH_CHECK(
        fits,
        "result ",
        count,
        " is ",
        describe(metadata_of(made)),
        ", and from the metadata of the arguments it was expected to be ",
        describe(result.metadata));
    count += 1;
    if (made.defined() && (made.data_ptr() != result.data || !has_strides)) {
      // It may lie where another result has to go.
      elsewhere.emplace_back(
          &result, to_device(made.data_ptr()) ? made.clone() : made);
    }
  });
  TORCH_CHECK(count == results.places.size(), "made fewer results than before");
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
    c10::function_ref<void(std::vector<TensorMetadata>)> tell) {
  const EnqueuedKernelScope scope(results.memory);
  const StackCleaner cleaner{stack};
  op.redispatchBoxed(c10::DispatchKeySet(key), &stack);
  if (!results.places.empty()) { // else it only wrote to arguments
    put_results(stack, results, tell);
  }
}

} // namespace openreg::aten
