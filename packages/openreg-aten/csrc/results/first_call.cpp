// SPDX-License-Identifier: BSD-3-Clause
// First calls: meta kernels, and dry runs.
#include "results/first_call.h"

#include "device/gil.h"
#include "results/meta_trust.h"
#include "results/stand_ins.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <unordered_map>
#include <utility>

namespace openreg::aten {
namespace {

using torch::jit::Stack;

/// Batch norm in evaluation: PyTorch's decomposition, which is its meta kernel,
/// saves statistics on every device but the CPU.
bool saves_no_statistics(const std::string& name, const Stack& stack) {
  if (name != "aten::native_batch_norm" &&
      name != "aten::_native_batch_norm_legit" &&
      name != "aten::_native_batch_norm_legit.no_stats") {
    return false;
  }
  const auto training =
      std::find_if(stack.begin(), stack.end(), [](const c10::IValue& value) {
        return value.isBool();
      });
  return !training->toBool();
}

/// The gradient of batch norm without that of its input, which the
/// decomposition makes all the same.
bool makes_no_input_gradient(const std::string& name, const Stack& stack) {
  return name == "aten::native_batch_norm_backward" &&
      !stack.back().toBoolList().get(0);
}

/// Whether a meta kernel is one in Python.
bool is_in_python(const c10::OperatorHandle& op) {
  static thread_local std::unordered_map<c10::OperatorName, bool> known;
  const auto [found, is_new] = known.try_emplace(op.operator_name(), false);
  if (is_new) {
    // A line for each key: its name, and the file that registered the kernel.
    const std::string table = op.dumpComputedTable();
    const size_t line = table.find("\nMeta: ");
    const auto end = table.find('\n', line + 1);
    found->second = line != std::string::npos &&
        table.substr(line, end - line).find(".py:") != std::string::npos;
  }
  return found->second;
}

/// Whether a meta kernel answers at once. Many of those in Python import
/// torch._dynamo, which takes seconds and which optimizers do, too: a program
/// that comes to few new calls does better to wait for its stream.
bool is_worth_asking(const c10::OperatorHandle& op) {
  constexpr int kFew = 64; // calls that were not asked about
  static std::atomic<int> count{0};
  if (count.load(std::memory_order_relaxed) >= kFew || !is_in_python(op)) {
    return true;
  }
  const bool is_there = has_module("torch._dynamo");
  count.fetch_add(is_there ? kFew : 1, std::memory_order_relaxed);
  return is_there;
}

enum class Outcome { kDone, kWarned, kRaised };

Outcome run(StandInCall& call, const c10::OperatorHandle& op) {
  try {
    return call.run(op) ? Outcome::kDone : Outcome::kWarned;
  } catch (const std::exception&) {
    rethrow_interrupt();
    return Outcome::kRaised;
  }
}

/// Caches what a call of stand-ins has made; null if an enqueued call would
/// not do the same.
std::shared_ptr<const OutputMetadata> cache(
    const StandInCall& call,
    const CallKey& key,
    const std::vector<at::Tensor>& made,
    c10::DeviceType device) {
  const bool are_there =
      std::all_of(made.begin(), made.end(), [&](const at::Tensor& each) {
        return !each.defined() ||
            (each.device().type() == device && each.has_storage());
      });
  return are_there && !call.aliases_argument(made) && !call.has_hidden_change()
      ? cache_output_metadata(key, made, call.resized(), call.has_overlap())
      : nullptr;
}

} // namespace

std::shared_ptr<const OutputMetadata> ask_meta_kernel(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    Stack stack) {
  if (was_seen(key) || has_failed(key) ||
      !trusts_meta_kernel(op, info, key, stack) || !is_worth_asking(op)) {
    return nullptr;
  }
  const std::string name = toString(op.operator_name());
  const bool no_statistics = saves_no_statistics(name, stack);
  const bool no_input_gradient = makes_no_input_gradient(name, stack);
  const bool default_strides = have_default_strides(stack);
  // Meta kernels in Python warn by Python.
  StandInCall call(
      info, std::move(stack), c10::kMeta, StandInCall::Setting::kEmptyResults);
  if (!call.replace_arguments() || call.has_overlap() ||
      run(call, op) != Outcome::kDone) {
    return nullptr;
  }
  // Those of pointwise operators give what they resize default strides, and the
  // kernels those of the operands.
  if (info.promotes && !default_strides && !call.resized().empty()) {
    return nullptr;
  }
  auto made = call.made();
  if (no_statistics) {
    for (const size_t i : {1, 2}) {
      made[i] = at::Tensor(at::detail::empty_meta({0}, made[i].scalar_type()));
    }
  }
  if (no_input_gradient) {
    made[0] = at::Tensor();
  }
  return cache(call, key, made, c10::kMeta);
}

std::shared_ptr<const OutputMetadata> dry_run(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    const Stack& stack) {
  if (was_seen(key) || has_failed(key) || info.reads_requires_grad ||
      key.bytes() > kMostDryRunBytes ||
      !op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) {
    return nullptr;
  }
  using Setting = StandInCall::Setting;
  StandInCall call(info, Stack(stack), c10::kCPU, Setting::kZeros);
  if (!call.replace_arguments()) {
    return nullptr;
  }
  const Outcome outcome = run(call, op);
  if (outcome == Outcome::kDone) {
    return cache(call, key, call.made(), c10::kCPU);
  }
  // It may have warned of nothing but a result of another size. And some
  // kernels refuse to divide by zero, and others to index with one.
  const bool warned = outcome == Outcome::kWarned;
  StandInCall again(
      info,
      Stack(stack),
      c10::kCPU,
      warned ? Setting::kEmptyResults : Setting::kOnes);
  if (!again.replace_arguments() || run(again, op) != Outcome::kDone) {
    return nullptr;
  }
  // Kernels may give an empty result other strides.
  const StandInCall& right = warned ? call : again;
  return cache(right, key, right.made(), c10::kCPU);
}

} // namespace openreg::aten
