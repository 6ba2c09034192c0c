// SPDX-License-Identifier: BSD-3-Clause
// Calls of meta kernels.
#include "kernel/meta_kernel.h"

#include "device/gil.h"
#include "kernel/cpu_allocator.h"
#include "kernel/meta_trust.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/List.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace openreg::aten {
namespace {

using Kind = OperatorPlan::Kind;
using torch::jit::Stack;

/// Counts the warnings of a meta kernel.
class CountingHandler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {
    count += 1;
  }
  size_t count = 0;
};

/// While one lives, no mode or profiler of the caller's sees what this thread
/// dispatches.
class MetaScope {
 public:
  MetaScope()
      : torch_function_(at::impl::PythonTorchFunctionTLS::get_disabled_state()),
        dispatch_(
            c10::default_included_set,
            c10::default_excluded_set | kBelowAutograd),
        quiet_(&handler_) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(
        at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  MetaScope(const MetaScope&) = delete;
  MetaScope& operator=(const MetaScope&) = delete;
  bool has_warned() const {
    return handler_.count > 0;
  }
  ~MetaScope() {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(torch_function_);
  }

 private:
  at::impl::TorchFunctionDisabledState torch_function_;
  c10::impl::ForceDispatchKeyGuard dispatch_;
  at::RecordFunctionGuard no_profile_{/*is_enabled=*/false};
  CountingHandler handler_;
  c10::WarningUtils::WarningHandlerGuard quiet_;
};

/// The metadata of a call: a meta tensor for each of its tensors.
class MetaCall {
 public:
  MetaCall(const OperatorPlan& plan, Stack&& stack)
      : plan_(plan), stack_(std::move(stack)) {}

  /// Replaces the arguments; false if a written one overlaps, which only the
  /// CPU's kernel may judge.
  bool present() {
    for (const auto& argument : plan_.arguments) {
      c10::IValue& value = stack_[argument.index];
      switch (argument.kind) {
        case Kind::kTensor:
          if (value.isTensor()) {
            value = meta_of(value.toTensor(), argument.written);
          }
          break;
        case Kind::kTensorList:
        case Kind::kOptionalTensorList:
          value = meta_of_list(argument, value);
          break;
        case Kind::kGenerator:
          value = c10::IValue();
          break;
        case Kind::kDevice:
          value = c10::Device(c10::kMeta);
          break;
      }
    }
    return !overlaps_;
  }

  /// False if the meta kernel has warned.
  bool run(const c10::OperatorHandle& op) {
    for (const auto& argument : plan_.arguments) {
      if (argument.written && argument.kind == Kind::kTensor) {
        written_.push_back(stack_[argument.index].toTensor());
        before_.push_back(geometry_of(written_.back()));
      }
    }
    const MetaScope scope;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack_);
    return !scope.has_warned();
  }

  /// The results that are no arguments.
  std::vector<at::Tensor> made() const {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < stack_.size() && i < plan_.returned.size(); ++i) {
      if (plan_.returned[i] >= 0) {
        continue;
      }
      if (stack_[i].isTensorList()) {
        for (const at::Tensor& each : stack_[i].toTensorVector()) {
          tensors.push_back(each);
        }
      } else {
        tensors.push_back(
            stack_[i].isTensor() ? stack_[i].toTensor() : at::Tensor());
      }
    }
    return tensors;
  }
  /// The arguments that were written, if one has another geometry now.
  std::vector<at::Tensor> resized() const {
    for (size_t i = 0; i < written_.size(); ++i) {
      if (geometry_of(written_[i]) != before_[i]) {
        return written_;
      }
    }
    return {};
  }
  /// Whether each written argument is a result: only then are their sizes known
  /// to whoever enqueues.
  bool returns_all_written() const {
    size_t returned = 0;
    for (const int32_t source : plan_.returned) {
      returned += source >= 0 ? 1 : 0;
    }
    return returned == written_.size();
  }
  /// Whether a result shares the memory of an argument.
  bool aliases_argument(const std::vector<at::Tensor>& results) const {
    return std::any_of(
        results.begin(), results.end(), [&](const at::Tensor& result) {
          return result.defined() &&
              std::any_of(
                     tensors_.begin(), tensors_.end(), [&](const auto& entry) {
                       return entry.second.is_alias_of(result);
                     });
        });
  }

 private:
  using Geometry = std::pair<c10::DimVector, c10::DimVector>;

  static Geometry geometry_of(const at::Tensor& tensor) {
    return {c10::DimVector(tensor.sizes()), c10::DimVector(tensor.strides())};
  }

  at::Tensor meta_of(const at::Tensor& tensor, bool written) {
    if (!tensor.defined()) {
      return tensor;
    }
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    const void* storage = impl->storage().unsafeGetStorageImpl();
    const auto shared = storages_.find(storage);
    if (shared == storages_.end()) {
      storages_.emplace(storage, written);
    } else {
      overlaps_ |= written || shared->second;
    }
    overlaps_ |=
        written && at::has_internal_overlap(tensor) != at::MemOverlap::No;
    at::Tensor& meta = tensors_[impl];
    if (!meta.defined()) {
      meta = make_meta(*impl);
    }
    return meta;
  }

  c10::IValue meta_of_list(
      const OperatorPlan::Argument& argument,
      const c10::IValue& value) {
    if (value.isNone()) {
      return value;
    }
    if (argument.kind == Kind::kTensorList) {
      c10::List<at::Tensor> tensors;
      for (const at::Tensor& each : value.toTensorVector()) {
        tensors.push_back(meta_of(each, argument.written));
      }
      return tensors;
    }
    c10::List<std::optional<at::Tensor>> tensors;
    for (const c10::IValue& each : value.toListRef()) {
      tensors.push_back(
          each.isTensor()
              ? std::optional(meta_of(each.toTensor(), argument.written))
              : std::nullopt);
    }
    return tensors;
  }

  static at::Tensor make_meta(const c10::TensorImpl& from) {
    const c10::Device device(c10::kMeta);
    at::Tensor meta = at::detail::make_tensor<c10::TensorImpl>(
        c10::make_intrusive<c10::StorageImpl>(
            c10::StorageImpl::use_byte_size_t(),
            from.storage().nbytes(),
            c10::DataPtr(nullptr, device),
            c10::GetAllocator(c10::kMeta),
            /*resizable=*/true),
        c10::DispatchKeySet(c10::DispatchKey::Meta),
        from.dtype());
    c10::TensorImpl& to = *meta.unsafeGetTensorImpl();
    to.set_sizes_and_strides(
        from.sizes(), from.strides(), from.storage_offset());
    to._set_conj(from.is_conj());
    to._set_neg(from.is_neg());
    if (from.is_wrapped_number()) {
      to.set_wrapped_number(true);
    }
    return meta;
  }

  const OperatorPlan& plan_;
  Stack stack_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> tensors_;
  std::unordered_map<const void*, bool> storages_; // whether written
  bool overlaps_ = false;
  std::vector<at::Tensor> written_;
  std::vector<Geometry> before_;
};

/// Batch norm in evaluation: PyTorch's decomposition, which is its meta kernel,
/// saves statistics on every device but the CPU.
bool saves_no_statistics(const std::string& name, const Stack& stack) {
  if (name != "aten::native_batch_norm" &&
      name != "aten::_native_batch_norm_legit") {
    return false;
  }
  const auto training =
      std::find_if(stack.begin(), stack.end(), [](const c10::IValue& value) {
        return value.isBool();
      });
  return !training->toBool();
}

bool are_meta(const std::vector<at::Tensor>& tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const at::Tensor& each) {
        return !each.defined() || each.is_meta();
      });
}

} // namespace

std::shared_ptr<const KnownResults> infer_results(
    const c10::OperatorHandle& op,
    const OperatorPlan& plan,
    const CallKey& key,
    Stack stack) {
  if (was_met(key) || has_failed(key) ||
      !trusts_meta_kernel(op, plan, key, stack)) {
    return nullptr;
  }
  const bool no_statistics =
      saves_no_statistics(op.operator_name().name, stack);
  MetaCall call(plan, std::move(stack));
  if (!call.present()) {
    return nullptr;
  }
  try {
    if (!call.run(op)) {
      return nullptr; // the CPU's kernel warns in the caller's thread
    }
  } catch (const std::exception&) {
    rethrow_interrupt();
    return nullptr; // the CPU's kernel says what is wrong, or does it
  }
  auto made = call.made();
  if (no_statistics) {
    for (const size_t i : {1, 2}) {
      made[i] = at::Tensor(at::detail::empty_meta({0}, made[i].scalar_type()));
    }
  }
  const auto resized = call.resized();
  if (!are_meta(made) || call.aliases_argument(made) ||
      (!resized.empty() && !call.returns_all_written())) {
    return nullptr;
  }
  return remember_results(key, made, resized);
}

} // namespace openreg::aten
