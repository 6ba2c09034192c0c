// SPDX-License-Identifier: BSD-3-Clause
// Reads operator schemas once, and caches the results.
#include "facts/operator_info.h"

#include "facts/operators.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace openreg::aten {
namespace {

using Kind = OperatorInfo::Kind;

bool has(const OperatorInfo& info, Kind kind) {
  return std::any_of(
      info.arguments.begin(),
      info.arguments.end(),
      [kind](const OperatorInfo::Argument& argument) {
        return argument.kind == kind;
      });
}

/// Only PyTorch's own operators: others may have kernels in Python, which a
/// worker must not wait for.
bool follow_from_metadata(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const OperatorFacts& facts) {
  const c10::FunctionSchema& schema = op.schema();
  const auto is_tensor = [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::TensorType::get());
  };
  const auto& results = schema.returns();
  const bool only_tensors =
      std::all_of(results.begin(), results.end(), is_tensor) ||
      (results.size() == 1 &&
       results[0].type()->isSubtypeOf(*c10::ListType::ofTensors()));
  // Each result is either a new tensor or an argument, as for all but a few
  // operators.
  const auto is_new = [](int32_t source) { return source < 0; };
  const bool one_kind =
      std::all_of(info.returned.begin(), info.returned.end(), is_new) ||
      std::none_of(info.returned.begin(), info.returned.end(), is_new);
  // The result of a factory is on the device that it names.
  const bool names_device =
      has(info, Kind::kDevice) && !(info.arguments.size() == 1);
  const auto space = op.operator_name().getNamespace();
  // This library defines the namespace "openreg".
  const bool is_known = space == "aten" || space == "openreg";
  return is_known && only_tensors && one_kind && !names_device &&
      (!op.hasTag(at::Tag::dynamic_output_shape) ||
       facts.has(kIsDynamicWithMasks)) && // a CallKey refuses masks
      !op.hasTag(at::Tag::data_dependent_output) &&
      (!op.hasTag(at::Tag::nondeterministic_seeded) || info.uses_generator ||
       facts.has(kDrawsNoNumbers)) &&
      !facts.has(kReadsValues);
}

/// ADInplaceOrView has no kernel for an operator without a return value. On the
/// CPU a composite kernel increments the versions through the in-place
/// operators that it calls. A CPU kernel without them, such as _fused_adam_,
/// increments none.
bool increments_versions_itself(const c10::OperatorHandle& op) {
  return op.schema().returns().empty() &&
      op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

std::optional<Kind> kind_of(const c10::Argument& argument) {
  const auto& type = argument.type();
  const auto is = [&](const c10::TypePtr& other) {
    return type->isSubtypeOf(*other);
  };
  if (is(c10::OptionalType::create(c10::TensorType::get()))) {
    return Kind::kTensor;
  }
  if (is(c10::OptionalType::create(c10::ListType::ofTensors()))) {
    return Kind::kTensorList;
  }
  if (is(c10::ListType::ofOptionalTensors())) {
    return Kind::kOptionalTensorList;
  }
  if (is(c10::OptionalType::create(c10::GeneratorType::get()))) {
    return Kind::kGenerator;
  }
  if (is(c10::OptionalType::create(c10::DeviceObjType::get()))) {
    return Kind::kDevice;
  }
  return std::nullopt;
}

OperatorInfo make_info(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const OperatorFacts facts = facts_of(schema.name(), schema.overload_name());
  OperatorInfo info;
  info.reads_requires_grad = facts.has(kReadsRequiresGrad);
  info.returns_custom_class = facts.has(kReturnsCustomClass);
  info.argument_count = static_cast<uint32_t>(schema.arguments().size());
  const auto writes = [](const c10::Argument& argument) {
    return argument.alias_info() && argument.alias_info()->isWrite();
  };
  const bool takes_numbers = !checks_devices(schema.name());
  for (uint32_t i = 0; i < info.argument_count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (const auto kind = kind_of(argument)) {
      const bool from_host = takes_host(schema.name(), argument.name());
      info.arguments.push_back(
          {i, *kind, writes(argument), from_host, from_host || takes_numbers});
    }
  }
  for (const c10::Argument& result : schema.returns()) {
    info.returns_custom_class |=
        result.type()->kind() == c10::TypeKind::ClassType;
    int32_t source = -1;
    if (writes(result)) {
      for (size_t i = 0; i < info.arguments.size(); ++i) {
        const auto& argument = info.arguments[i];
        const auto* alias = schema.arguments()[argument.index].alias_info();
        if (argument.written &&
            alias->afterSets() == result.alias_info()->afterSets()) {
          source = static_cast<int32_t>(i);
        }
      }
    }
    info.returned.push_back(source);
  }
  info.returns_all_written =
      std::count_if(
          info.arguments.begin(),
          info.arguments.end(),
          [](const auto& argument) { return argument.written; }) ==
      std::count_if(
          info.returned.begin(), info.returned.end(), [](int32_t source) {
            return source >= 0;
          });
  info.uses_generator = has(info, Kind::kGenerator);
  info.results_follow_from_metadata = follow_from_metadata(op, info, facts);
  info.refuses_floats = facts.has(kRefusesFloats);
  info.skips_resize_warning = facts.has(kSkipsResizeWarning);
  info.increments_versions = increments_versions_itself(op);
  info.may_raise_for_values = info.uses_generator || facts.has(kRefusesValues);
  info.takes_any_size = facts.has(kTakesAnySize);
  info.reads_numbers = info.uses_generator || facts.has(kReadsNumbers);
  info.stays_on_host = facts.has(kStaysOnHost);
  info.promotes = op.hasTag(at::Tag::pointwise) || facts.has(kPromotes);
  info.mixes_dtypes = facts.has(kMixesDtypes);
  info.follows_parameters = facts.has(kFollowsParameters);
  info.slow_dtypes = facts.slow_dtypes;
  info.widened_dtypes = facts.missing_dtypes | info.slow_dtypes;
  return info;
}

} // namespace

const OperatorInfo& info_of(const c10::OperatorHandle& op) {
  struct Known {
    c10::OperatorHandle op;
    OperatorInfo info;
  };
  // Programs call the same few operators repeatedly.
  static std::array<std::atomic<const Known*>, 1024> recent;
  const size_t hash = std::hash<c10::OperatorHandle>{}(op);
  auto& slot = recent[(hash >> 4) % recent.size()];
  const Known* known = slot.load(std::memory_order_acquire);
  if (C10_LIKELY(known != nullptr && known->op == op)) {
    return known->info;
  }
  static std::mutex mutex;
  static auto* all = new std::unordered_map<c10::OperatorHandle, const Known*>;
  const std::lock_guard lock(mutex);
  auto found = all->find(op);
  if (found == all->end()) {
    found = all->emplace(op, new Known{op, make_info(op)}).first;
  }
  slot.store(found->second, std::memory_order_release);
  return found->second->info;
}

} // namespace openreg::aten
