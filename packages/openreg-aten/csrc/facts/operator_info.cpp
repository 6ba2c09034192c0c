// SPDX-License-Identifier: BSD-3-Clause
// Reads the schemas of operators once, and finds what they say fast.
#include "facts/operator_info.h"

#include "facts/device_checks.h"
#include "facts/wider_dtypes.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace openreg::aten {
namespace {

using Kind = OperatorInfo::Kind;

// Where CUDA accepts CPU tensors of one or more dimensions beside its own.
const std::set<std::string> kTakesHost = {
    "aten::index.indices",
    "aten::index_put.indices",
    "aten::index_put_.indices",
    "aten::_index_put_impl_.indices",
    "aten::_pack_padded_sequence.lengths",
    "aten::_ctc_loss.input_lengths",
    "aten::_ctc_loss.target_lengths",
    "aten::_ctc_loss_backward.input_lengths",
    "aten::_ctc_loss_backward.target_lengths",
    "aten::_nested_from_padded.cpu_nested_shape_example",
    "aten::_fused_adagrad_.lr",
    "aten::_fused_adam_.lr",
    "aten::_fused_adamw_.lr",
    "aten::_fused_sgd_.lr",
    // Weights that an operator of kReturnsCustomClass packed.
    "aten::fbgemm_linear_fp16_weight.packed_weight",
    "aten::fbgemm_linear_fp16_weight_fp32_activation.packed_weight",
    "aten::fbgemm_linear_int8_weight.packed",
    "aten::fbgemm_linear_int8_weight_fp32_activation.packed",
    "_quantized::_wrapped_quantized_linear_prepacked.W_prepack",
    "_quantized::wrapped_fbgemm_linear_fp16_weight.W",
};

// CPU kernels that make more for a backward pass to come.
const std::set<std::string> kReadsRequiresGrad = {
    "aten::_sparse_mm_reduce_impl",
    "aten::_sparse_mm_reduce_impl_backward",
};

// They return such an object too, but hide it in a tensor.
const std::set<std::string> kReturnsCustomClass = {
    "aten::fbgemm_pack_gemm_matrix_fp16",
    "aten::fbgemm_pack_quantized_matrix",
    "quantized::linear_prepack_fp16_legacy",
    "quantized::linear_prepack_legacy",
    "_quantized::linear_prepack_fp16_legacy",
    "_quantized::linear_prepack_legacy",
    "_quantized::wrapped_fbgemm_pack_gemm_matrix_fp16",
    "_quantized::_wrapped_linear_prepack",
};

// What they make, or refuse, follows from values, and PyTorch has no tag that
// says so.
const std::set<std::string> kReadsValues = {
    "aten::_padded_dense_to_jagged_forward",
    "aten::_ctc_loss",
    "aten::_linalg_check_errors",
    "aten::_pack_padded_sequence",
    "aten::_pad_packed_sequence",
    "aten::from_file", // the values are those of a file
    "aten::normal.Tensor_Tensor",
    "aten::normal.Tensor_Tensor_out",
    "aten::normal.float_Tensor",
    "aten::normal.float_Tensor_out",
    "aten::segment_reduce",
};

// They give each element of a tensor a value, whatever its sizes.
const std::set<std::string> kTakesAnySize = {
    "aten::bernoulli_.float", // not with a tensor, whose sizes have to fit
    "aten::cauchy_",
    "aten::exponential_",
    "aten::fill_.Scalar",
    "aten::fill_.Tensor",
    "aten::geometric_",
    "aten::log_normal_",
    "aten::normal_",
    "aten::random_",
    "aten::random_.from",
    "aten::random_.to",
    "aten::uniform_",
    "aten::zero_",
};

// They do not call at::native::resize_output, which warns.
const std::set<std::string> kResizesInItsOwnWay = {
    "aten::addbmm",
    "aten::arange",
    "aten::bernoulli",
    "aten::eye",
    "aten::linspace",
    "aten::log_sigmoid_forward",
    "aten::logspace",
    "aten::multinomial",
    "aten::narrow_copy",
    "aten::randperm",
    "aten::range",
};

// Kernels for integers, whose meta kernels do not look.
const std::set<std::string> kRefusesFloats = {
    "aten::__ilshift__",
    "aten::__irshift__",
    "aten::__lshift__",
    "aten::__rshift__",
    "aten::bitwise_and",
    "aten::bitwise_and_",
    "aten::bitwise_left_shift",
    "aten::bitwise_left_shift_",
    "aten::bitwise_not",
    "aten::bitwise_not_",
    "aten::bitwise_or",
    "aten::bitwise_or_",
    "aten::bitwise_right_shift",
    "aten::bitwise_right_shift_",
    "aten::bitwise_xor",
    "aten::bitwise_xor_",
    "aten::gcd",
    "aten::gcd_",
    "aten::lcm",
    "aten::lcm_",
};

// Tagged as random, but the CPU's kernel takes no dropout.
const std::set<std::string> kDrawsNoNumbers = {
    "aten::_scaled_dot_product_flash_attention_for_cpu",
};

bool has(const OperatorInfo& info, Kind kind) {
  return std::any_of(
      info.arguments.begin(),
      info.arguments.end(),
      [kind](const OperatorInfo::Argument& argument) {
        return argument.kind == kind;
      });
}

/// Only PyTorch's own operators: others may have kernels in Python, which no
/// worker should wait for.
bool follow_from_metadata(
    const c10::OperatorHandle& op,
    const OperatorInfo& info) {
  const c10::FunctionSchema& schema = op.schema();
  const auto is_tensor = [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::TensorType::get());
  };
  const auto& results = schema.returns();
  const bool only_tensors =
      std::all_of(results.begin(), results.end(), is_tensor) ||
      (results.size() == 1 &&
       results[0].type()->isSubtypeOf(*c10::ListType::ofTensors()));
  // Either new tensors or arguments, as all operators but a few do it.
  const auto is_new = [](int32_t source) { return source < 0; };
  const bool one_kind =
      std::all_of(info.returned.begin(), info.returned.end(), is_new) ||
      std::none_of(info.returned.begin(), info.returned.end(), is_new);
  // A factory's result is on the device that it names.
  const bool names_device =
      has(info, Kind::kDevice) && !(info.arguments.size() == 1);
  const auto space = op.operator_name().getNamespace();
  const bool is_known = space == "aten" || space == "openreg"; // our own
  return is_known && only_tensors && one_kind && !names_device &&
      (!op.hasTag(at::Tag::dynamic_output_shape) ||
       schema.name() == "aten::index") && // for masks, which a CallKey refuses
      !op.hasTag(at::Tag::data_dependent_output) &&
      (!op.hasTag(at::Tag::nondeterministic_seeded) || info.uses_generator ||
       kDrawsNoNumbers.count(schema.name()) > 0) &&
      kReadsValues.count(schema.name()) == 0 &&
      kReadsValues.count(toString(op.operator_name())) == 0;
}

/// ADInplaceOrView has no kernel for an operator that returns nothing. On the
/// CPU a composite kernel raises the versions, by the in-place operators that
/// it calls; a CPU kernel without one, such as _fused_adam_, raises none.
bool raises_versions_itself(const c10::OperatorHandle& op) {
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

/// Whether the CPU's kernel refuses some floating point numbers.
bool raises_by_values(const std::string& name) {
  constexpr const char* kParts[] = {
      "linalg", "cholesky", "binary_cross_entropy", "hist", "quantize", "lu_"};
  return std::any_of(
      std::begin(kParts), std::end(kParts), [&](const char* part) {
        return name.find(part) != std::string::npos;
      });
}

OperatorInfo make_info(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OperatorInfo info;
  info.reads_requires_grad = kReadsRequiresGrad.count(schema.name()) > 0;
  info.returns_custom_class = kReturnsCustomClass.count(schema.name()) > 0;
  info.argument_count = static_cast<uint32_t>(schema.arguments().size());
  const auto writes = [](const c10::Argument& argument) {
    return argument.alias_info() && argument.alias_info()->isWrite();
  };
  const bool takes_numbers = !checks_devices(schema.name());
  for (uint32_t i = 0; i < info.argument_count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (const auto kind = kind_of(argument)) {
      const bool takes_host =
          kTakesHost.count(schema.name() + "." + argument.name()) > 0;
      info.arguments.push_back(
          {i,
           *kind,
           writes(argument),
           takes_host,
           takes_host || takes_numbers});
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
  info.results_follow_from_metadata = follow_from_metadata(op, info);
  info.refuses_floats = kRefusesFloats.count(schema.name()) > 0;
  info.resizes_in_its_own_way = kResizesInItsOwnWay.count(schema.name()) > 0;
  info.raises_versions = raises_versions_itself(op);
  info.raises_by_values =
      info.uses_generator || raises_by_values(schema.name());
  info.takes_any_size = kTakesAnySize.count(toString(op.operator_name())) > 0;
  info.reads_numbers = info.uses_generator || schema.name() == "aten::arange" ||
      schema.name() == "aten::range" || schema.name() == "aten::histc";
  info.promotes = op.hasTag(at::Tag::pointwise);
  info.refused_dtypes = wider_dtypes_of(op.operator_name()).refused;
  return info;
}

} // namespace

const OperatorInfo& info_of(const c10::OperatorHandle& op) {
  struct Known {
    c10::OperatorHandle op;
    OperatorInfo info;
  };
  // Programs call the same few operators again and again.
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
