// SPDX-License-Identifier: BSD-3-Clause
// Which calls meta kernels are asked about.
//
// The lists were found by comparing every operator of PyTorch's database with
// its meta kernel; tests/sweeps/test_first_calls.py runs it again. What is
// not asked about gets a dry run.
#include "results/meta_trust.h"

#include "facts/numbers.h"
#include "facts/refused_shapes.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace openreg::aten {
namespace {

using c10::ScalarType;
using torch::jit::Stack;

// Meta kernels that do not give the sizes or strides of the CPU's kernels, or
// do not refuse what those refuse, or make tensors without a quantizer. Several
// follow CUDA wherever the device is not the CPU.
const std::set<std::string> kWrong = {
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    "aten::_fft_c2r",
    "aten::_fft_r2c",
    "aten::_linalg_eigh.eigenvalues",
    "aten::_linalg_svd",
    "aten::_linalg_svd.U",
    "aten::_native_batch_norm_legit.out",
    "aten::_native_multi_head_attention",
    "aten::_scaled_mm",
    "aten::_scaled_mm_v2",
    "aten::_transformer_encoder_layer_fwd",
    "aten::bernoulli_.Tensor",
    "aten::cholesky_inverse.out",
    "aten::col2im",
    "aten::linalg_eig",
    "aten::linalg_eig.out",
    "aten::linalg_householder_product.out",
    "aten::linalg_ldl_factor_ex.out",
    "aten::linalg_ldl_solve.out",
    "aten::linalg_lu_factor_ex.out",
    "aten::linalg_lu_solve.out",
    "aten::linalg_qr.out",
    "aten::linspace.out", // looks at the number of elements alone
    "aten::logspace.out",
    "aten::multinomial", // CUDA waits, too: it reads the probabilities
    "aten::multinomial.out",
    "aten::native_batch_norm.out",
    "aten::native_batch_norm_backward.out",
    "aten::nonzero_static",
    "aten::normal.Tensor_float_out",
    "aten::ormqr",
    "aten::ormqr.out",
    "aten::quantize_per_tensor",
    "aten::quantize_per_tensor.tensor_qparams",
    "aten::quantize_per_tensor.tensors",
    "aten::triangular_solve.X",
};
// The same, unless all tensors have the strides that follow from their sizes.
const std::set<std::string> kWrongWithStrides = {
    "aten::_batch_norm_with_update",
    "aten::_cdist_backward",
    "aten::_log_softmax_backward_data",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit.no_stats",
    "aten::_softmax_backward_data",
    "aten::_standard_gamma",
    "aten::addr.out",
    "aten::cat.out",
    "aten::channel_shuffle",
    "aten::complex.out",
    "aten::copysign.Tensor",
    "aten::div.Scalar",
    "aten::div.Tensor_mode",
    "aten::fill.Scalar",
    "aten::flip",
    "aten::floor_divide",
    "aten::floor_divide.out",
    "aten::frexp.Tensor",
    "aten::gelu.out",
    "aten::glu_backward",
    "aten::hardshrink.out",
    "aten::hardtanh",
    "aten::heaviside",
    "aten::huber_loss_backward",
    "aten::isin.Tensor_Tensor",
    "aten::ldexp.Tensor",
    "aten::log_sigmoid_forward",
    "aten::logaddexp",
    "aten::logaddexp2",
    "aten::logical_and",
    "aten::logical_or",
    "aten::logical_xor",
    "aten::max_unpool2d",
    "aten::mse_loss",
    "aten::mse_loss.out",
    "aten::mse_loss_backward",
    "aten::mul.Scalar",
    "aten::nan_to_num",
    "aten::native_batch_norm",
    "aten::native_channel_shuffle",
    "aten::native_dropout_backward",
    "aten::native_group_norm",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::poisson",
    "aten::polar.out",
    "aten::pow.Scalar",
    "aten::reflection_pad3d",
    "aten::reflection_pad3d_backward",
    "aten::replication_pad1d",
    "aten::replication_pad1d_backward",
    "aten::replication_pad2d",
    "aten::replication_pad2d_backward",
    "aten::replication_pad3d",
    "aten::replication_pad3d_backward",
    "aten::roll",
    "aten::rrelu_with_noise",
    "aten::smooth_l1_loss_backward",
    "aten::softshrink.out",
    "aten::where.self",
    "aten::where.self_out",
    "aten::xlogy.Tensor",
};
// The same with 16 bits: their statistics have 32 on every device but the CPU.
const std::set<std::string> kWrongInHalf = {
    "aten::_batch_norm_no_update",
    "aten::_batch_norm_with_update",
    "aten::_native_batch_norm_legit",
    "aten::_native_batch_norm_legit_no_training",
    "aten::native_batch_norm",
    "aten::native_group_norm",
    "aten::native_layer_norm",
};
// Kernels for numbers of 0 or more, whose meta kernels do not look.
const std::set<std::string> kRefusesNegatives = {
    "aten::bernoulli_",
    "aten::huber_loss",
    "aten::huber_loss_backward",
    "aten::renorm",
    "aten::renorm_",
    "aten::smooth_l1_loss",
    "aten::smooth_l1_loss_backward",
};
// Kernels that warn about too few elements, whose meta kernels do not.
const std::set<std::string> kWarns = {
    "aten::std",
    "aten::std_mean",
    "aten::var",
    "aten::var_mean",
};
// Kernels that do not subtract a bool, whose meta kernels do.
const std::set<std::string> kRefusesBools = {
    "aten::rsub",
    "aten::sub",
    "aten::sub_"};
// Arguments that are int64, or bool, whatever the dtype of the others.
const std::set<std::string> kIndices =
    {"idx", "index", "indices", "input_lengths", "max_indices"};
const std::set<std::string> kMasks = {"condition", "mask"};

/// The tensors of an argument.
template <typename See>
void for_each_tensor(const c10::IValue& value, const See& see) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      see(value.toTensor());
    }
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (const c10::IValue& each : value.toListRef()) {
      if (each.isTensor() && each.toTensor().defined()) {
        see(each.toTensor());
      }
    }
  }
}

template <typename Matches>
bool all_tensors(const Stack& stack, const Matches& matches) {
  bool all = true;
  for (const c10::IValue& value : stack) {
    for_each_tensor(
        value, [&](const at::Tensor& tensor) { all = all && matches(tensor); });
  }
  return all;
}

/// Whether every kernel of the CPU has these dtypes: one for all tensors but
/// indices and masks. Meta kernels let others pass, which kernels refuse.
bool are_usual_dtypes(const c10::OperatorHandle& op, const Stack& stack) {
  const std::string& name = op.operator_name().name;
  const auto& arguments = op.schema().arguments();
  ScalarType common = ScalarType::Undefined;
  bool usual = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_index = kIndices.count(arguments[i].name()) > 0 ||
        (arguments[i].name() == "target" && name.find("nll_loss") != name.npos);
    const bool is_mask = kMasks.count(arguments[i].name()) > 0;
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      const ScalarType dtype = tensor.scalar_type();
      if (is_index || is_mask) {
        usual =
            usual && dtype == (is_index ? ScalarType::Long : ScalarType::Bool);
      } else if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        usual = usual && (common == ScalarType::Undefined || common == dtype);
        common = dtype;
      }
    });
  }
  const bool is_float =
      common == ScalarType::Float || common == ScalarType::Double;
  return usual &&
      ((is_float && !info_of(op).refuses_floats) || name == "aten::fill_" ||
       name == "aten::zero_");
}

/// Whether the CPU's kernel may refuse a number that the meta kernel does not
/// look at: one that the dtype of the first tensor does not have, a negative
/// one where that means nothing, or a bool that is subtracted.
bool may_refuse_number(const c10::OperatorHandle& op, const Stack& stack) {
  const bool refuses_negatives =
      kRefusesNegatives.count(op.operator_name().name) > 0;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  for (const c10::IValue& value : stack) {
    if (value.isTensor() && value.toTensor().defined()) {
      dtype = value.toTensor().scalar_type();
      break;
    }
  }
  const auto& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (stack[i].isBool() && kRefusesBools.count(op.operator_name().name) > 0 &&
        arguments[i].type()->kind() == c10::TypeKind::NumberType) {
      return true;
    }
  }
  const std::string& name = op.operator_name().name;
  const bool refuses_descending = name == "aten::uniform_";
  const bool is_probability = name == "aten::bernoulli_";
  double before = -std::numeric_limits<double>::infinity();
  return std::any_of(stack.begin(), stack.end(), [&](const c10::IValue& value) {
    if (!value.isScalar()) {
      return false;
    }
    if (refuses_descending && value.isDouble() &&
        std::exchange(before, value.toDouble()) > value.toDouble()) {
      return true;
    }
    if (is_probability && value.isDouble() && !(value.toDouble() <= 1)) {
      return true;
    }
    if (refuses_negatives && value.isDouble() && !(value.toDouble() >= 0)) {
      return true;
    }
    return dtype != c10::ScalarType::Undefined &&
        !has_number(dtype, value.toScalar());
  });
}

/// Whether the meta kernel says what the CPU's kernel makes of such arguments.
bool is_right(const c10::OperatorHandle& op, const Stack& stack) {
  const std::string name = toString(op.operator_name());
  if (kWrong.count(name) > 0 || kWarns.count(op.operator_name().name) > 0 ||
      has_refused_shapes(op.operator_name().name, stack)) {
    return false;
  }
  if (kWrongInHalf.count(op.operator_name().name) > 0 &&
      !all_tensors(stack, [](const at::Tensor& tensor) {
        return tensor.scalar_type() != ScalarType::Half &&
            tensor.scalar_type() != ScalarType::BFloat16;
      })) {
    return false;
  }
  return kWrongWithStrides.count(name) == 0 || have_default_strides(stack);
}

/// Whether operands are converted to one dtype, and strides matter: the CPU's
/// kernel takes those of the converted copies.
bool converts_strided(const OperatorInfo& info, const Stack& stack) {
  ScalarType first = ScalarType::Undefined;
  return info.promotes &&
      !all_tensors(
             stack,
             [&](const at::Tensor& tensor) {
               if (tensor.dim() > 0 && first == ScalarType::Undefined) {
                 first = tensor.scalar_type();
               }
               return tensor.dim() == 0 || tensor.scalar_type() == first;
             }) &&
      !have_default_strides(stack);
}

/// Whether a tensor that is read has no elements, or, on the device, no
/// dimensions where those matter: kernels refuse some of these, and meta
/// kernels do not.
bool reads_edge_case(const OperatorInfo& info, const Stack& stack) {
  return std::any_of(
      info.arguments.begin(),
      info.arguments.end(),
      [&](const OperatorInfo::Argument& argument) {
        bool is_edge_case = false;
        if (!argument.written) {
          for_each_tensor(stack[argument.index], [&](const at::Tensor& tensor) {
            is_edge_case = is_edge_case || tensor.numel() == 0 ||
                (tensor.dim() == 0 && !info.promotes &&
                 tensor.is_privateuseone());
          });
        }
        return is_edge_case;
      });
}

} // namespace

bool have_default_strides(const Stack& stack) {
  return all_tensors(stack, [](const at::Tensor& tensor) {
    return has_default_strides(*tensor.unsafeGetTensorImpl());
  });
}

bool trusts_meta_kernel(
    const c10::OperatorHandle& op,
    const OperatorInfo& info,
    const CallKey& key,
    const Stack& stack) {
  return op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta) &&
      (has_run_with_dtypes(key) || are_usual_dtypes(op, stack)) &&
      is_right(op, stack) && !converts_strided(info, stack) &&
      !reads_edge_case(info, stack) && !may_refuse_number(op, stack);
}

} // namespace openreg::aten
