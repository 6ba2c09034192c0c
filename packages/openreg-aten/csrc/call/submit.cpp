// SPDX-License-Identifier: BSD-3-Clause
// The call path: decide, predict metadata, enqueue or run, adopt, remember.
#include "call/submit.h"

#include "base/keys.h"
#include "call/device_name.h"
#include "call/enqueue.h"
#include "codec/components.h"
#include "codec/generators.h"
#include "device/activity.h"
#include "device/device.h"
#include "device/trace.h"
#include "memory/cpu_allocator.h"
#include "message/message.h"
#include "results/first_call.h"
#include "results/kernel_run.h"
#include "stream/capture.h"
#include "stream/launch.h"
#include "stream/pace.h"

#include <ATen/Context.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace openreg::aten {
namespace {

void count(const Call& call, DispatchPath path) {
  if (counts_paths() && call.path() != DispatchPath::kPart) {
    count_path(call.op().operator_name(), path);
  }
}

using pace::Verdict;

Verdict decide(const Call& call, size_t bytes) {
  return pace::decide(call.device(), call.place, bytes, call.may_raise);
}

/// Returns the predicted metadata of the results, or null if only the kernel
/// can determine it.
std::shared_ptr<const OutputMetadata>
find_outputs(const Call& call, const CallKey& key, Verdict verdict) {
  if (auto outputs = find_output_metadata(key)) {
    return outputs;
  }
  if (at::globalContext().deterministicAlgorithms()) {
    return nullptr; // the caller gets the error of the kernel
  }
  // On an idle stream, running the call is faster than a dry run.
  return verdict == Verdict::kEnqueue
      ? nullptr
      : dry_run(call.target(), call.info(), key, call.arguments());
}

/// Describes a call with `bytes` bytes of operands for activity records.
orLaunchInfo info_of(const Call& call, size_t bytes) {
  return describe_launch(call.op().schema().name().c_str(), bytes);
}

void enqueue_call(
    Call& call,
    std::vector<at::Tensor>&& results,
    uint64_t digest,
    size_t bytes) {
  count(call, DispatchPath::kEnqueued);
  const bool by_message = call.may_be_sent && sends_messages();
  // The replay of a graph may be recorded, and errors of a lost device name its
  // messages.
  std::optional<orLaunchInfo> described;
  if (records_activity() || captures_underway() || by_message) {
    described = info_of(call, bytes);
  }
  auto arguments = call.alias_for_later();
  enqueue(
      call.target(),
      call.device(),
      call.aliases(),
      std::move(arguments),
      results,
      digest,
      by_message,
      described ? &*described : nullptr);
  call.take(std::move(results));
}

/// Whether the kernel reads an argument before it resizes it. `addbmm_` expands
/// its first argument and then writes to it.
bool resizes_inputs(const Call& call, const OutputMetadata& outputs) {
  if (C10_LIKELY(outputs.resized.empty())) {
    return false;
  }
  const auto& declared = call.op().schema().arguments();
  const auto& arguments = call.info().arguments;
  return std::any_of(
      arguments.begin(), arguments.end(), [&](const auto& argument) {
        return argument.written && !declared[argument.index].is_out();
      });
}

/// Resizes written arguments as predicted, with PyTorch's warning if they had
/// elements.
void resize_written(const Call& call, const OutputMetadata& outputs) {
  if (C10_LIKELY(outputs.resized.empty())) {
    return;
  }
  const auto written = call.written();
  for (size_t i = 0; i < outputs.resized.size(); ++i) {
    const TensorMetadata& metadata = outputs.resized[i];
    at::native::resize_output(written[i], metadata.sizes);
    written[i].unsafeGetTensorImpl()->set_sizes_and_strides(
        metadata.sizes, metadata.strides);
  }
}

bool has_bytes(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return false;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!codec::has_components(impl)) {
    return impl.has_storage() && impl.storage().data() != nullptr;
  }
  const auto components = codec::components_of(impl);
  return std::any_of(components.begin(), components.end(), &has_bytes);
}

/// Whether an argument has metadata alone, as in FakeTensorMode.
bool is_fake(const torch::jit::Stack& stack) {
  bool has_tensors = false;
  return std::none_of(
             stack.begin(),
             stack.end(),
             [&](const c10::IValue& value) {
               has_tensors |= value.isTensor();
               return value.isTensor() ? has_bytes(value.toTensor())
                                       : value.isList();
             }) &&
      has_tensors;
}

/// Throws for a call that cannot be encoded if only messages reach device
/// memory.
void check_may_run_here(const Call& call) {
  require_reachable_memory(
      call.target().operator_name(),
      " has arguments or results that cannot be sent to the device process");
}

/// Runs `work`. An error about a dtype without a kernel names the device.
template <typename Work>
void with_device_name(const Work& work) {
  try {
    work();
  } catch (const c10::NotImplementedError& error) {
    std::string text = name_device(error.msg());
    if (text == error.msg()) {
      throw;
    }
    throw c10::NotImplementedError(std::move(text), error.backtrace());
  }
}

/// Runs a call on this thread by a message to the executor, or directly if its
/// arguments or results cannot be encoded. `info` describes the launch, and may
/// be null.
void run_by_message(Call& call, const orLaunchInfo* info) {
  ResultPlaces results;
  const bool allocates_first = call.allocates_first();
  if (allocates_first) {
    for (const at::Tensor& made : call.made()) {
      results.add(made);
    }
  }
  torch::jit::Stack stack = call.alias_for_later();
  codec::Bytes message;
  codec::NumberedObjects objects;
  bool sent = write_call(
      message,
      call.target(),
      call.key(),
      call.device(),
      stack,
      allocates_first ? &results : nullptr,
      objects);
  std::optional<LaunchDescription> description;
  orLaunchInfo here = OPENREG_LAUNCH_INFO_INIT;
  if (info != nullptr) {
    here = *info;
    if (sent) { // messages replace the kernels
      here.kind = orActivityHostFunc;
      description.emplace(*info);
    }
  }
  const auto work = [&] {
    const KernelScope scope(call.device());
    if (sent) {
      codec::Bytes reply;
      exchange(info_of(call, /*bytes=*/0), message, reply);
      codec::note_arrival(objects.generators);
      if (allocates_first) {
        read_done(reply, results.places.size(), [](auto) {});
        return;
      }
      if (auto made = read_described(reply, call.target(), stack, objects)) {
        stack = std::move(*made);
        return;
      }
      sent = false;
    }
    if (!is_fake(stack)) {
      check_may_run_here(call);
    }
    if (allocates_first) {
      run_into(call.target(), call.key(), stack, results, [](auto) {});
    } else {
      call.target().redispatchBoxed(c10::DispatchKeySet(call.key()), &stack);
    }
  };
  run_on_current_stream(call.device(), work, info != nullptr ? &here : nullptr);
  count_message(call.target().operator_name(), sent);
  objects = {}; // or adopt() would see the references
  if (!allocates_first) {
    call.receive(std::move(stack));
  }
}

/// Runs a call on this thread. Returns whether it resized arguments, or null if
/// an enqueued call may behave differently.
std::optional<bool> run(Call& call, size_t bytes) {
  if (is_captured(call.device())) {
    reject_capture(call.op(), call.device(), call.place != Call::Place::kAny);
  }
  count(call, call.path());
  std::optional<orLaunchInfo> described;
  if (records_activity()) {
    described = info_of(call, bytes);
  }
  const orLaunchInfo* info = described ? &*described : nullptr;
  with_device_name([&] {
    if (C10_UNLIKELY(call.may_be_sent && sends_messages())) {
      run_by_message(call, info);
      return;
    }
    check_may_run_here(call);
    call.alias();
    run_on_current_stream(
        call.device(),
        [&] {
          const KernelScope scope(call.device());
          call.run();
        },
        info);
  });
  note_inline_run(call.device());
  return call.finish();
}

/// Runs a call with a key, and caches the metadata of its results.
void run_and_remember(Call& call, const CallKey& key) {
  const auto& op = call.op();
  if (kIsCuda && !key.usable() &&
      (op.hasTag(at::Tag::dynamic_output_shape) ||
       op.hasTag(at::Tag::data_dependent_output))) {
    // CUDA waits for the shapes of the results.
    trace(
        &c10::impl::PyInterpreterVTable::trace_gpu_stream_synchronization,
        trace_id(current_handle(call.device())));
  }
  const auto changed = run(call, key.bytes());
  if (!key.usable() || was_seen(key)) {
    return;
  }
  if (!changed) {
    remember_seen(key); // else each similar call would start with a dry run
    return;
  }
  if (*changed && !call.info().returns_all_written) {
    return;
  }
  const auto resized = *changed ? call.written() : std::vector<at::Tensor>();
  const bool share_memory =
      std::any_of(resized.begin(), resized.end(), [](const at::Tensor& tensor) {
        return tensor.storage().use_count() > 1;
      });
  cache_output_metadata(key, call.made(), resized, share_memory);
}

} // namespace

void reject_capture(
    const c10::OperatorHandle& op,
    c10::DeviceIndex device,
    bool host_waits) {
  try {
    run_on_current_stream(device, [] {}); // the runtime rejects it
  } catch (c10::Error& error) {
    error.add_context(
        toString(op.operator_name()) +
        (host_waits
             ? " cannot be captured in a graph: the host waits for it"
             : " cannot be captured in a graph: the shapes of its results are "
               "not known before it runs. If they do not depend on values, "
               "call the operator once with the same shapes before the "
               "capture"));
    throw;
  }
}

// [docs: submit]
void submit(Call& call) {
  if (call.bytes_if_known) {
    if (decide(call, *call.bytes_if_known) == Verdict::kRun) {
      run(call, *call.bytes_if_known);
    } else {
      enqueue_call(call, call.made(), /*digest=*/0, *call.bytes_if_known);
    }
    return;
  }
  CallKey key(call.op(), call.info());
  call.add_to(key);
  call.may_raise = call.info().may_raise_for_values || key.may_raise();
  const Verdict verdict =
      key.usable() ? decide(call, key.bytes()) : Verdict::kRun;
  const auto outputs =
      verdict == Verdict::kRun ? nullptr : find_outputs(call, key, verdict);
  if (outputs == nullptr || resizes_inputs(call, *outputs)) {
    run_and_remember(call, key);
    return;
  }
  resize_written(call, *outputs);
  enqueue_call(
      call,
      call.allocates_first() ? call.made()
                             : make_results(call.device(), outputs->made),
      digest_of(key),
      key.bytes());
}
// [docs: end]

} // namespace openreg::aten
