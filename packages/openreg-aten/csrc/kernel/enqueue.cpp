// SPDX-License-Identifier: BSD-3-Clause
// Enqueued operators: what they hold, and how their results get into place.
#include "kernel/enqueue.h"

#include "device/device.h"
#include "kernel/cpu_allocator.h"
#include "kernel/kernel.h"
#include "kernel/structured.h"

#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;

constexpr size_t kInlineBytes = size_t{64} << 10;

size_t read_inline_bytes() {
  const char* blocking = std::getenv("OPENREG_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) == "1") {
    return std::numeric_limits<size_t>::max(); // so errors keep their types
  }
  const char* text = std::getenv("OPENREG_INLINE_BYTES");
  if (text == nullptr) {
    return kInlineBytes;
  }
  size_t number = 0;
  const char* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, number);
  TORCH_CHECK(
      parsed.ec == std::errc() && parsed.ptr == end,
      "OPENREG_INLINE_BYTES is '",
      text,
      "', but has to be a number of bytes, 0 or more");
  return number;
}

/// Operators with at most this many bytes of operands run on the calling thread
/// if their stream is idle.
size_t inline_bytes() {
  static const size_t value = read_inline_bytes();
  return value;
}

/// Lets a kernel have as many threads as the thread that enqueued it: the
/// number decides in which order it sums.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : previous_(at::get_num_threads()) {
    if (previous_ != count) {
      at::set_num_threads(count);
      changed_ = true;
    }
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() {
    if (changed_) {
      at::set_num_threads(previous_);
    }
  }

 private:
  int previous_;
  bool changed_ = false;
};

/// Drops what a kernel made while the memory of its results is known as such.
struct StackCleaner {
  Stack& stack;
  ~StackCleaner() {
    stack.clear();
  }
};

/// A tensor of the host that the kernel reads later, when the caller may have
/// changed it.
void keep_host_tensor(c10::IValue& value, const DeviceViews& views) {
  const at::Tensor& tensor = value.toTensor();
  if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
      !views.presents(tensor)) {
    value = tensor.clone();
  }
}

class EnqueuedCall {
 public:
  EnqueuedCall(
      const c10::OperatorHandle& op,
      DeviceViews& views,
      Stack&& stack,
      const std::vector<at::Tensor>& results)
      : op_(op), stack_(std::move(stack)), threads_(at::get_num_threads()) {
    const size_t first = stack_.size() - op.schema().arguments().size();
    for (size_t i = first; i < stack_.size(); ++i) {
      keep(stack_[i], views);
    }
    for (const at::Tensor& result : results) {
      results_.push_back(result.defined() ? view_of(result) : at::Tensor());
      if (result.defined() && result.nbytes() > 0) {
        memory_.push_back(
            {results_.back().data_ptr(), result.storage().nbytes(), false});
      }
    }
    views_ = views.take_views();
  }

  void operator()() {
    const ThreadCount threads(threads_);
    const EnqueuedKernelScope scope(memory_);
    const StackCleaner cleaner{stack_};
    try {
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
      put_results();
    } catch (const c10::Error& error) {
      throw std::runtime_error(
          toString(op_.operator_name()) + ": " +
          error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw std::runtime_error(
          toString(op_.operator_name()) + ": " + error.what());
    }
  }

 private:
  static void keep(c10::IValue& value, const DeviceViews& views) {
    if (value.isTensor()) {
      keep_host_tensor(value, views);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> tensors = value.toTensorList();
      for (size_t i = 0; i < tensors.size(); ++i) {
        c10::IValue each(tensors.get(i));
        keep_host_tensor(each, views);
        tensors.set(i, std::move(each).toTensor());
      }
    } else if (value.isOptionalTensorList()) {
      auto tensors = value.toOptionalTensorList();
      for (size_t i = 0; i < tensors.size(); ++i) {
        if (const std::optional<at::Tensor> tensor = tensors.get(i)) {
          c10::IValue each(*tensor);
          keep_host_tensor(each, views);
          tensors.set(i, std::move(each).toTensor());
        }
      }
    }
  }

  static at::Tensor view_of(const at::Tensor& result) {
    DeviceViews views(result.device().index());
    return views.present(result, /*written=*/true);
  }

  /// Copies what the kernel did not put into the results' memory by itself.
  void put_results() {
    std::vector<at::Tensor> made;
    for (const c10::IValue& value : stack_) {
      if (value.isTensorList()) {
        for (at::Tensor& each : value.toTensorVector()) {
          made.push_back(std::move(each));
        }
      } else if (value.isTensor()) {
        made.push_back(value.toTensor());
      } else {
        made.emplace_back(); // an undefined tensor
      }
    }
    if (results_.empty()) {
      return; // it only wrote to arguments
    }
    TORCH_CHECK(
        made.size() == results_.size(), "made other results than before");
    std::vector<std::pair<size_t, at::Tensor>> elsewhere;
    for (size_t i = 0; i < made.size(); ++i) {
      const at::Tensor& result = results_[i];
      TORCH_CHECK(
          made[i].defined() == result.defined() &&
              (!result.defined() ||
               (made[i].sizes() == result.sizes() &&
                made[i].dtype() == result.dtype())),
          "result ",
          i,
          " does not look as it did in an earlier call with the same metadata");
      if (result.defined() &&
          (made[i].data_ptr() != result.data_ptr() ||
           made[i].strides() != result.strides())) {
        // It may lie where another result has to go.
        elsewhere.emplace_back(
            i, to_device(made[i].data_ptr()) ? made[i].clone() : made[i]);
      }
    }
    for (const auto& [i, tensor] : elsewhere) {
      results_[i].copy_(tensor);
    }
  }

  c10::OperatorHandle op_;
  Stack stack_;
  int threads_;
  std::vector<ViewPtr> views_;
  std::vector<at::Tensor> results_; // as the kernel sees them
  std::vector<ResultMemory> memory_;
};

} // namespace

bool enqueues(c10::DeviceIndex device, size_t bytes) {
  return bytes > inline_bytes() ||
      orStreamQuery(current_handle(device)) == orErrorNotReady;
}

std::vector<at::Tensor> make_results(
    c10::DeviceIndex device,
    at::ArrayRef<TensorLook> looks) {
  std::vector<at::Tensor> results;
  results.reserve(looks.size());
  for (const TensorLook& look : looks) {
    results.push_back(
        look.defined ? make_output(
                           look.sizes,
                           look.strides,
                           at::TensorOptions()
                               .dtype(look.dtype)
                               .device(c10::kPrivateUse1, device))
                     : at::Tensor());
  }
  return results;
}

void enqueue(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    DeviceViews& views,
    Stack&& stack,
    const std::vector<at::Tensor>& results) {
  enqueue_on_current_stream(
      device, EnqueuedCall(op, views, std::move(stack), results));
}

} // namespace openreg::aten
