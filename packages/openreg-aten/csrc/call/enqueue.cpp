// SPDX-License-Identifier: BSD-3-Clause
// Holds enqueued operators, and moves their results to their memory.
#include "call/enqueue.h"

#include "call/default_dtype.h"
#include "call/device_asserts.h"
#include "call/dispatch_paths.h"
#include "codec/generators.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/error.h"
#include "memory/tensor.h"
#include "message/message.h"
#include "message/warnings.h"
#include "results/kernel_run.h"
#include "stream/capture.h"
#include "stream/stream.h"

#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;

/// Whether a tensor is a scalar without a Python object.
bool is_plain_number(const c10::TensorImpl& tensor) {
  return tensor.is_wrapped_number() &&
      tensor.pyobj_slot()->load_pyobj() == nullptr;
}

/// Replaces host tensor arguments with copies, because the caller may change
/// them before the kernel runs. A worker must not drop the last reference to a
/// tensor with a Python object either: that needs the GIL, which a worker
/// cannot take at the end of the program.
void copy_host_tensors(c10::IValue& value, const CpuAliases& aliases) {
  const auto copied = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || aliases.is_alias(tensor) ||
        is_plain_number(*tensor.unsafeGetTensorImpl())) {
      return tensor;
    }
    at::Tensor copy = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      copy.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return copy;
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

class EnqueuedCall;
/// Takes a call that has run.
void complete(EnqueuedCall* call);

/// An operator that waits in a stream. After it has run, the object is reused:
/// host threads allocate these objects and all that they hold, and memory that
/// one thread allocates and another frees slows both down.
class EnqueuedCall {
 public:
  void prepare(
      const c10::OperatorHandle& op,
      c10::DeviceIndex device,
      CpuAliases& aliases,
      Stack&& stack,
      const std::vector<at::Tensor>& results,
      uint64_t digest,
      bool by_message) {
    op_.emplace(op);
    digest_ = digest;
    captured_ = is_captured(device);
    for (const at::Tensor& result : results) {
      results_.add(result);
    }
    if (C10_UNLIKELY(by_message) && write_message(device, stack)) {
      return;
    }
    require_reachable_memory(
        op.operator_name(),
        " has arguments that cannot be sent to the device process");
    stack_ = std::move(stack);
    if (has_default_dtype(op, results_, stack_)) {
      default_dtype_ = c10::get_default_dtype_as_scalartype();
    }
    threads_ = at::get_num_threads();
    if (C10_UNLIKELY(aliases.has_host_tensors())) {
      for (c10::IValue& value : stack_) {
        copy_host_tensors(value, aliases);
      }
    }
    aliases.move_aliases(aliases_);
  }

  /// Launches the call on the stream.
  void launch(orStream_t stream, const orLaunchInfo* info) {
    const auto cleanup = [](void* args) {
      complete(static_cast<EnqueuedCall*>(args));
    };
    if (C10_UNLIKELY(!message_.empty())) {
      OPENREG_CHECK(orLaunchMessageWithInfo(
          stream,
          message_.data(),
          message_.size(),
          [](void* args, const void* reply, size_t size) {
            static_cast<EnqueuedCall*>(args)->read_reply(
                {static_cast<const std::uint8_t*>(reply), size});
          },
          this,
          cleanup,
          info));
      return;
    }
    OPENREG_CHECK(orLaunchKernelWithInfo(
        stream,
        [](void* args) { static_cast<EnqueuedCall*>(args)->run(); },
        this,
        cleanup,
        info));
  }

  void run() {
    const KernelOperators hidden;
    try {
      const ThreadCount threads(threads_);
      // [docs: again]
      Stack again; // a graph runs the call more than once
      if (C10_UNLIKELY(captured_)) {
        again = stack_;
        for (ResultMemory& each : results_.memory) {
          each.taken = false;
        }
      }
      // [docs: end]
      Stack& arguments = captured_ ? again : stack_;
      if (C10_UNLIKELY(default_dtype_.has_value())) {
        apply_default_dtype(*op_, *default_dtype_, arguments);
      }
      run_into(
          *op_,
          c10::DispatchKey::CPU,
          arguments,
          results_,
          [this](std::vector<TensorMetadata> made) {
            report_to_next_call(std::move(made));
          });
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  /// Clears the object for reuse, on a host thread, and returns its aliases to
  /// the pool.
  void reset() {
    for (const CpuAliasPtr& alias : aliases_) {
      leave_shared_storage(*alias);
    }
    for (CpuAliasPtr& alias : aliases_) {
      recycle(std::move(alias));
    }
    aliases_.clear();
    results_.clear();
    stack_.clear();
    default_dtype_.reset();
    if (message_.capacity() > kKeptBytes) {
      message_ = {};
    }
    message_.clear();
    generators_.clear();
    sent_generators_.clear();
  }

  EnqueuedCall* next = nullptr; // in the list that holds the call

 private:
  [[noreturn]] void fail(const char* what) const {
    if (digest_ != 0) {
      forget_output_metadata(digest_);
    }
    assert_on_device(*op_, current_device(), what);
    throw std::runtime_error(toString(op_->operator_name()) + ": " + what);
  }

  /// Returns false if an argument cannot be encoded.
  bool write_message(c10::DeviceIndex device, Stack& stack) {
    codec::NumberedObjects objects;
    const bool written = write_call(
        message_,
        *op_,
        c10::DispatchKey::CPU,
        device,
        stack,
        &results_,
        objects);
    count_message(op_->operator_name(), written);
    if (!written) {
      message_.clear();
      return false;
    }
    for (const c10::IValue& value : stack) {
      codec::collect_generators(value, generators_);
    }
    sent_generators_ = std::move(objects.generators);
    stack.clear();
    return true;
  }

  void read_reply(codec::ByteSpan reply) {
    codec::note_arrival(sent_generators_);
    try {
      read_done(
          repeat_warnings(reply),
          results_.places.size(),
          [this](std::vector<TensorMetadata> made) {
            report_to_next_call(std::move(made));
          });
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  /// Stores the metadata that the kernel returned, for the next call with this
  /// digest.
  void report_to_next_call(std::vector<TensorMetadata> made) const {
    if (counts_paths()) {
      count_path(op_->operator_name(), DispatchPath::kCorrected);
    }
    if (digest_ != 0) {
      correct_output_metadata(digest_, std::move(made));
    }
  }

  static constexpr size_t kKeptBytes = size_t{1} << 16; // of a message

  std::optional<c10::OperatorHandle> op_;
  uint64_t digest_ = 0;
  bool captured_ = false; // in a graph
  Stack stack_;
  int threads_ = 0;
  std::optional<c10::ScalarType> default_dtype_; // of the call, if it matters
  std::vector<CpuAliasPtr> aliases_;
  ResultPlaces results_;
  codec::Bytes message_; // used instead of the stack and its aliases
  std::vector<at::Generator> generators_; // kept alive until it has run
  std::vector<codec::SentGenerator> sent_generators_;
};

// The calls that have run, on all threads.
std::atomic<EnqueuedCall*> g_completed{nullptr};

void complete(EnqueuedCall* call) {
  call->next = g_completed.load(std::memory_order_relaxed);
  while (!g_completed.compare_exchange_weak(
      call->next, call, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

/// The free calls of a host thread. reset() has not cleared them yet.
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
  /// Takes all calls that have run, and keeps some.
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
    uint64_t digest,
    bool by_message,
    const orLaunchInfo* info) {
  EnqueuedCall* call = take_call();
  try {
    call->prepare(
        op, device, aliases, std::move(stack), results, digest, by_message);
    call->launch(current_handle(device), info);
  } catch (...) {
    complete(call);
    throw;
  }
}

} // namespace openreg::aten
