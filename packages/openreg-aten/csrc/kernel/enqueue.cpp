// SPDX-License-Identifier: BSD-3-Clause
// Enqueued operators: what they hold, and how their results get into place.
#include "kernel/enqueue.h"

#include "device/device.h"
#include "device/error.h"
#include "device/stream.h"
#include "device/tensor.h"
#include "kernel/cpu_allocator.h"
#include "kernel/dispatch_paths.h"

#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/from_blob.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

// OpenMP's, which PyTorch's library may not use.
extern "C" __attribute__((weak)) void omp_set_num_threads(int count);

namespace openreg::aten {
namespace {

using torch::jit::Stack;

/// Lets a kernel have as many threads as the thread that enqueued it: the
/// number decides in which order it sums. at::set_num_threads() would set it
/// for the whole process too.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : previous_(at::get_num_threads()) {
    set(count);
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() {
    set(previous_);
  }

 private:
  static void set(int count) {
    if (C10_UNLIKELY(
            count != at::get_num_threads() &&
            &omp_set_num_threads != nullptr)) {
      omp_set_num_threads(count);
    }
  }
  int previous_;
};

/// Drops what a kernel made while the memory of its results is known as such.
struct StackCleaner {
  Stack& stack;
  ~StackCleaner() {
    stack.clear();
  }
};

/// Gives the kernel copies of the tensors of the host among its arguments,
/// which the caller may change before it runs.
void copy_host_tensors(c10::IValue& value, const CpuAliases& aliases) {
  const auto copied = [&](const at::Tensor& tensor) {
    const bool is_alias = !tensor.defined() ||
        tensor.unsafeGetTensorImpl()->is_wrapped_number() ||
        aliases.is_alias(tensor);
    return is_alias ? tensor : tensor.clone();
  };
  if (value.isTensor()) {
    value = copied(value.toTensor());
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> tensors = value.toTensorList();
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors.set(i, copied(tensors.get(i)));
    }
  } else if (value.isOptionalTensorList()) {
    auto tensors = value.toOptionalTensorList();
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (const std::optional<at::Tensor> tensor = tensors.get(i)) {
        tensors.set(i, copied(*tensor));
      }
    }
  }
}

/// An operator on its way through a stream. Once it has run it is used for
/// another: threads of the host make these objects and all that they hold, and
/// memory that one thread allocates and another frees costs both.
class EnqueuedCall {
 public:
  void prepare(
      const c10::OperatorHandle& op,
      CpuAliases& aliases,
      Stack&& stack,
      const std::vector<at::Tensor>& results,
      uint64_t digest) {
    op_.emplace(op);
    digest_ = digest;
    stack_ = std::move(stack);
    threads_ = at::get_num_threads();
    if (C10_UNLIKELY(aliases.has_host_tensors())) {
      for (c10::IValue& value : stack_) {
        copy_host_tensors(value, aliases);
      }
    }
    for (const at::Tensor& result : results) {
      expect(result);
    }
    aliases.move_aliases(aliases_);
  }

  void run() {
    const ThreadCount threads(threads_);
    const EnqueuedKernelScope scope(memory_);
    const StackCleaner cleaner{stack_};
    try {
      op_->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
      put_results();
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  /// Makes it as new, on a thread of the host, whose aliases it gives back.
  void reset() {
    for (const CpuAliasPtr& alias : aliases_) {
      leave_shared_storage(*alias);
    }
    for (CpuAliasPtr& alias : aliases_) {
      give_back(std::move(alias));
    }
    aliases_.clear();
    results_.clear();
    memory_.clear();
    stack_.clear();
  }

  EnqueuedCall* next = nullptr; // of the list that it is in

 private:
  struct Expected {
    TensorMetadata metadata;
    void* data; // a kernel pointer
  };

  [[noreturn]] void fail(const char* what) const {
    if (digest_ != 0) {
      forget_output_metadata(digest_);
    }
    throw std::runtime_error(toString(op_->operator_name()) + ": " + what);
  }

  void expect(const at::Tensor& result) {
    void* data = result.defined() ? to_kernel(result.data_ptr()) : nullptr;
    results_.push_back({metadata_of(result), data});
    if (data != nullptr) {
      memory_.push_back({data, result.storage().nbytes(), false});
    }
  }

  /// Copies what the kernel did not put into the results' memory by itself.
  void put_results() {
    if (results_.empty()) {
      return; // it only wrote to arguments
    }
    for (ResultMemory& each : memory_) {
      each.taken = true; // for no copy below
    }
    size_t count = 0;
    bool told = false;
    c10::SmallVector<std::pair<const Expected*, at::Tensor>, 1> elsewhere;
    const auto see = [&](const at::Tensor& made) {
      TORCH_CHECK(count < results_.size(), "made more results than before");
      const Expected& result = results_[count];
      const bool fits = made.defined() == result.metadata.defined &&
          (!made.defined() ||
           (made.sizes() == result.metadata.sizes &&
            made.scalar_type() == result.metadata.dtype));
      const bool has_strides =
          !made.defined() || made.strides() == result.metadata.strides;
      if (C10_UNLIKELY(!(fits && has_strides)) && !std::exchange(told, true)) {
        tell_next_call();
      }
      TORCH_CHECK(
          fits,
          "result ",
          count,
          " does not look as its meta kernel said, or as it did in an earlier "
          "call with the same metadata");
      count += 1;
      if (made.defined() && (made.data_ptr() != result.data || !has_strides)) {
        // It may lie where another result has to go.
        elsewhere.emplace_back(
            &result, to_device(made.data_ptr()) ? made.clone() : made);
      }
    };
    for_each_result(see);
    TORCH_CHECK(count == results_.size(), "made fewer results than before");
    for (const auto& [result, tensor] : elsewhere) {
      at::from_blob(
          result->data,
          result->metadata.sizes,
          result->metadata.strides,
          tensor.options())
          .copy_(tensor);
    }
  }

  /// Tells the next such call what the kernel made.
  void tell_next_call() const {
    if (counts_paths()) {
      count_path(op_->operator_name(), DispatchPath::kCorrected);
    }
    if (digest_ == 0) {
      return;
    }
    std::vector<TensorMetadata> outputs;
    for_each_result(
        [&](const at::Tensor& made) { outputs.push_back(metadata_of(made)); });
    correct_output_metadata(digest_, std::move(outputs));
  }

  template <typename See>
  void for_each_result(const See& see) const {
    for (const c10::IValue& value : stack_) {
      if (value.isTensorList()) {
        for (const at::Tensor& each : value.toTensorVector()) {
          see(each);
        }
      } else {
        see(value.isTensor() ? value.toTensor() : at::Tensor());
      }
    }
  }

  std::optional<c10::OperatorHandle> op_;
  uint64_t digest_ = 0;
  Stack stack_;
  int threads_ = 0;
  std::vector<CpuAliasPtr> aliases_;
  c10::SmallVector<Expected, 1> results_;
  c10::SmallVector<ResultMemory, 1> memory_;
};

// The calls that have run, from all threads.
std::atomic<EnqueuedCall*> g_completed{nullptr};

void complete(EnqueuedCall* call) {
  call->next = g_completed.load(std::memory_order_relaxed);
  while (!g_completed.compare_exchange_weak(
      call->next, call, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

/// The free calls of a thread of the host, which reset() still has to make as
/// new.
class FreeCalls {
 public:
  FreeCalls() = default;
  FreeCalls(const FreeCalls&) = delete;
  FreeCalls& operator=(const FreeCalls&) = delete;
  ~FreeCalls() {
    while (first_ != nullptr) {
      complete(pop());
    }
  }

  EnqueuedCall* take() {
    if (first_ == nullptr) {
      take_completed();
    }
    if (first_ == nullptr) {
      return new EnqueuedCall;
    }
    EnqueuedCall* call = pop();
    call->reset();
    return call;
  }

 private:
  static constexpr int kKept = 256;

  EnqueuedCall* pop() {
    return std::exchange(first_, first_->next);
  }
  /// Takes all that have run, and keeps some.
  void take_completed() {
    first_ = g_completed.exchange(nullptr, std::memory_order_acquire);
    EnqueuedCall* last = first_;
    for (int i = 1; last != nullptr && i < kKept; ++i) {
      last = last->next;
    }
    if (last == nullptr) {
      return;
    }
    for (EnqueuedCall* rest = std::exchange(last->next, nullptr);
         rest != nullptr;) {
      delete std::exchange(rest, rest->next);
    }
  }

  EnqueuedCall* first_ = nullptr;
};

EnqueuedCall* take_call() {
  static thread_local FreeCalls calls;
  return calls.take();
}

} // namespace

std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorMetadata> outputs) {
  std::vector<at::Tensor> results;
  results.reserve(outputs.size());
  for (const TensorMetadata& metadata : outputs) {
    results.push_back(
        metadata.defined
            ? make_strided_tensor(
                  device, metadata.sizes, metadata.strides, metadata.dtype)
            : at::Tensor());
  }
  return results;
}

void enqueue(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    CpuAliases& aliases,
    Stack&& stack,
    const std::vector<at::Tensor>& results,
    uint64_t digest) {
  EnqueuedCall* call = take_call();
  try {
    call->prepare(op, aliases, std::move(stack), results, digest);
  } catch (...) {
    complete(call);
    throw;
  }
  const orError_t error = orLaunchKernel(
      current_handle(device),
      [](void* args) { static_cast<EnqueuedCall*>(args)->run(); },
      call,
      [](void* args) { complete(static_cast<EnqueuedCall*>(args)); });
  if (C10_UNLIKELY(error != orSuccess)) {
    complete(call);
    OPENREG_CHECK(error);
  }
}

} // namespace openreg::aten
