// SPDX-License-Identifier: BSD-3-Clause
// CPU kernels that compute 16-bit floats in float32 and round once.
#include "kernel/wider.h"

#include <torch/library.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace openreg::aten {
namespace {

using c10::ScalarType;
using torch::jit::Stack;

struct Wide {
  c10::OperatorHandle of;
  bool follows_parameters;
  bool keeps_float32;
};

struct Table {
  std::unordered_map<c10::OperatorHandle, c10::OperatorHandle> wide;
  std::unordered_map<c10::OperatorHandle, Wide> narrow; // by the wide operator
};

Table& table() {
  static auto* value = new Table;
  return *value;
}

bool is_narrow(const at::Tensor& tensor) {
  return tensor.defined() &&
      (tensor.scalar_type() == ScalarType::Half ||
       tensor.scalar_type() == ScalarType::BFloat16);
}

/// Runs the float32 CPU kernel on copies of the tensors.
void run_in_float32(const c10::OperatorHandle& op, Stack* stack) {
  const Wide& wide = table().narrow.at(op);
  const OperatorInfo& info = info_of(op);
  const size_t base = stack->size() - info.argument_count;
  const std::vector<c10::IValue> originals(
      stack->begin() + static_cast<std::ptrdiff_t>(base), stack->end());
  if (info_of(wide.of).promotes) { // as in the iterator of pointwise operators
    check_overlap(info, originals);
  }
  ScalarType dtype = ScalarType::Undefined;
  bool mixed = false;
  for (size_t i = 0; i < originals.size(); ++i) {
    if (!originals[i].isTensor()) {
      continue;
    }
    const at::Tensor& tensor = originals[i].toTensor();
    if (is_narrow(tensor)) {
      dtype = tensor.scalar_type();
      (*stack)[base + i] = tensor.to(ScalarType::Float);
    } else {
      mixed |= tensor.defined() && tensor.scalar_type() == ScalarType::Float;
    }
  }
  const std::vector<c10::IValue> widened(
      stack->begin() + static_cast<std::ptrdiff_t>(base), stack->end());
  constexpr c10::DispatchKeySet kCpu(c10::DispatchKey::CPU);
  try {
    wide.of.redispatchBoxed(kCpu, stack);
  } catch (const c10::Error&) {
    // The kernel for the narrow dtype raises an error that names this dtype.
    stack->resize(base);
    stack->insert(stack->end(), originals.begin(), originals.end());
    wide.of.redispatchBoxed(kCpu, stack);
    return;
  }
  copy_back(info, originals, widened);
  const size_t first = stack->size() - info.returned.size();
  for (size_t i = 0; i < info.returned.size(); ++i) {
    c10::IValue& result = (*stack)[first + i];
    const int32_t source = info.returned[i];
    if (source >= 0) {
      result = originals[info.arguments[static_cast<size_t>(source)].index];
    } else if (
        i == 0 || !(wide.keeps_float32 || (wide.follows_parameters && mixed))) {
      const at::Tensor& made = result.toTensor();
      if (made.defined() && made.scalar_type() == ScalarType::Float) {
        result = made.to(dtype);
      }
    }
  }
}

} // namespace

void add_float32_kernels(const std::vector<std::string>& names) {
  static torch::Library library(
      torch::Library::FRAGMENT, "openreg", std::nullopt, __FILE__, __LINE__);
  std::unordered_set<std::string> variants;
  for (const std::string& name : names) {
    variants.insert({name, name + "_"});
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& known : dispatcher.getAllOpNames()) {
    if (variants.count(known.name) == 0) {
      continue;
    }
    const auto op = dispatcher.findOp(known);
    if (!op || !op->hasSchema() ||
        !op->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU) ||
        op->hasKernelForDispatchKey(
            c10::DispatchKey::CompositeImplicitAutograd)) {
      continue;
    }
    std::string own =
        "openreg::float32_" + known.name.substr(known.name.find("::") + 2);
    if (known.getNamespace() == "openreg") {
      own += "_own";
    }
    library.def(op->schema().cloneWithName(own, known.overload_name));
    library.impl(
        toString(c10::OperatorName(own, known.overload_name)).c_str(),
        c10::DispatchKey::CPU,
        torch::CppFunction::makeFromBoxedFunction<&run_in_float32>());
    const auto wide =
        dispatcher.findSchemaOrThrow(own.c_str(), known.overload_name.c_str());
    const OperatorFacts facts = facts_of(known.name, known.overload_name);
    table().wide.emplace(*op, wide);
    table().narrow.emplace(
        wide,
        Wide{*op, facts.has(kFollowsParameters), facts.has(kKeepsFloat32)});
  }
}

const c10::OperatorHandle* float32_kernel_of(const c10::OperatorHandle& op) {
  const auto found = table().wide.find(op);
  return found == table().wide.end() ? nullptr : &found->second;
}

} // namespace openreg::aten
