// SPDX-License-Identifier: BSD-3-Clause
// Calls of meta kernels.
#include "kernel/meta_kernel.h"

#include "kernel/cpu_allocator.h"
#include "kernel/structured.h"
#include "kernel/wider.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/List.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace openreg::aten {
namespace {

using Kind = OperatorPlan::Kind;
using torch::jit::Stack;

// Kernels for numbers of 0 or more, whose meta kernels do not look.
const std::set<std::string> kRefusesNegatives = {
    "aten::huber_loss",
    "aten::huber_loss_backward",
    "aten::renorm",
    "aten::renorm_",
    "aten::smooth_l1_loss",
    "aten::smooth_l1_loss_backward",
};

// Meta kernels that do not give the strides of the CPU's kernels, or do not
// refuse what those refuse.
const std::set<std::string> kWrong = {
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    "aten::_fft_c2r",
    "aten::_fft_r2c",
    "aten::_linalg_eigh.eigenvalues",
    "aten::_linalg_svd",
    "aten::_linalg_svd.U",
    "aten::_scaled_mm",
    "aten::_scaled_mm_v2",
    "aten::col2im",
    "aten::linalg_eig",
    "aten::linalg_eig.out",
    "aten::linalg_householder_product.out",
    "aten::linalg_lu_factor_ex.out",
    "aten::linalg_lu_solve.out",
    "aten::linalg_qr.out",
    "aten::multinomial", // CUDA waits, too: it reads the probabilities
    "aten::multinomial.out",
    "aten::nonzero_static",
    "aten::normal.Tensor_Tensor_out",
    "aten::normal.Tensor_float_out",
    "aten::normal.float_Tensor_out",
};
// The same, unless all tensors are contiguous.
const std::set<std::string> kWrongWithStrides = {
    "aten::_batch_norm_with_update",
    "aten::_cdist_backward",
    "aten::_log_softmax_backward_data",
    "aten::_softmax_backward_data",
    "aten::channel_shuffle",
    "aten::copysign.Tensor",
    "aten::div.Scalar",
    "aten::div.Tensor_mode",
    "aten::fill.Scalar",
    "aten::flip",
    "aten::floor_divide",
    "aten::frexp.Tensor",
    "aten::glu_backward",
    "aten::hardtanh",
    "aten::heaviside",
    "aten::huber_loss_backward",
    "aten::ldexp.Tensor",
    "aten::log_sigmoid_forward",
    "aten::logaddexp",
    "aten::logaddexp2",
    "aten::logical_and",
    "aten::logical_or",
    "aten::logical_xor",
    "aten::max_unpool2d",
    "aten::mse_loss_backward",
    "aten::mul.Scalar",
    "aten::nan_to_num",
    "aten::native_batch_norm",
    "aten::native_channel_shuffle",
    "aten::native_dropout_backward",
    "aten::native_group_norm",
    "aten::normal.Tensor_Tensor",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
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
    "aten::smooth_l1_loss_backward",
    "aten::xlogy.Tensor",
};

// CPU kernels for integers and bool, by which programs count, mask and index.
const std::set<std::string> kTakesIntegers = {
    "aten::_unsafe_index", "aten::all",
    "aten::any",           "aten::arange",
    "aten::argsort",       "aten::cat",
    "aten::clone",         "aten::constant_pad_nd",
    "aten::cumsum",        "aten::fill_",
    "aten::flip",          "aten::gather",
    "aten::index",         "aten::index_put",
    "aten::index_put_",    "aten::index_select",
    "aten::isin",          "aten::masked_fill",
    "aten::masked_fill_",  "aten::max",
    "aten::min",           "aten::roll",
    "aten::scatter",       "aten::scatter_",
    "aten::sort",          "aten::sum",
    "aten::topk",          "aten::tril",
    "aten::triu",          "aten::zero_",
};

/// Drops the warnings of a meta kernel: the CPU's warns again.
class QuietHandler final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

/// While one lives, no mode of the caller's sees what this thread dispatches.
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
  ~MetaScope() {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(torch_function_);
  }

 private:
  at::impl::TorchFunctionDisabledState torch_function_;
  c10::impl::ForceDispatchKeyGuard dispatch_;
  QuietHandler handler_;
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

  void run(const c10::OperatorHandle& op) {
    for (const auto& argument : plan_.arguments) {
      if (argument.written && argument.kind == Kind::kTensor) {
        written_.push_back(stack_[argument.index].toTensor());
        before_.push_back(geometry_of(written_.back()));
      }
    }
    const MetaScope scope;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack_);
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
  return (name == "aten::native_batch_norm" ||
          name == "aten::_native_batch_norm_legit") &&
      !stack[5].toBool();
}

bool are_meta(const std::vector<at::Tensor>& tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const at::Tensor& each) {
        return !each.defined() || each.is_meta();
      });
}

/// Whether the CPU's kernel may refuse a number that the meta kernel does not
/// look at: one that the dtype of the first tensor does not have, or a negative
/// one where that means nothing.
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
  const bool refuses_descending = op.operator_name().name == "aten::uniform_";
  double before = -std::numeric_limits<double>::infinity();
  return std::any_of(stack.begin(), stack.end(), [&](const c10::IValue& value) {
    if (!value.isScalar()) {
      return false;
    }
    if (refuses_descending && value.isDouble() &&
        std::exchange(before, value.toDouble()) > value.toDouble()) {
      return true;
    }
    if (refuses_negatives && value.isDouble() && !(value.toDouble() >= 0)) {
      return true;
    }
    return dtype != c10::ScalarType::Undefined &&
        !has_number(dtype, value.toScalar());
  });
}

/// Whether the CPU's kernel has the dtypes of a call.
bool has_dtypes(const c10::OperatorHandle& op, const CallKey& key) {
  constexpr uint64_t kIntegers = dtype_bit(c10::ScalarType::Long) |
      dtype_bit(c10::ScalarType::Int) | dtype_bit(c10::ScalarType::Bool);
  return takes_dtypes(key) ||
      ((key.dtypes() & ~kIntegers) == 0 &&
       kTakesIntegers.count(op.operator_name().name) > 0);
}

/// Shapes that the CPU's kernel refuses, and the meta kernel does not look at.
bool has_refused_shapes(const std::string& name, const Stack& stack) {
  if (name == "aten::bucketize.Tensor") {
    return stack[1].toTensor().dim() != 1;
  }
  if (name == "aten::index_add" || name == "aten::index_add_" ||
      name == "aten::index_add.out") {
    const at::Tensor& self = stack[0].toTensor();
    const at::Tensor& source = stack[3].toTensor();
    const int64_t dim = stack[1].toInt();
    c10::DimVector sizes(self.sizes());
    const auto place = static_cast<size_t>(dim < 0 ? dim + self.dim() : dim);
    if (place < sizes.size() && source.dim() == self.dim()) {
      sizes[place] = source.size(dim);
    }
    return source.sizes() != at::IntArrayRef(sizes);
  }
  return false;
}

/// Whether the meta kernel says what the CPU's kernel makes of such arguments.
bool is_right(const c10::OperatorHandle& op, const Stack& stack) {
  const std::string name = toString(op.operator_name());
  if (kWrong.count(name) > 0 || has_refused_shapes(name, stack)) {
    return false;
  }
  return kWrongWithStrides.count(name) == 0 ||
      std::all_of(stack.begin(), stack.end(), [](const c10::IValue& value) {
           return !value.isTensor() || !value.toTensor().defined() ||
               has_default_strides(*value.toTensor().unsafeGetTensorImpl());
         });
}

} // namespace

std::shared_ptr<const KnownResults> infer_results(
    const c10::OperatorHandle& op,
    const OperatorPlan& plan,
    const CallKey& key,
    Stack stack) {
  if (!has_dtypes(op, key) || !is_right(op, stack) ||
      may_refuse_number(op, stack) ||
      !op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) {
    return nullptr;
  }
  const bool no_statistics =
      saves_no_statistics(toString(op.operator_name()), stack);
  MetaCall call(plan, std::move(stack));
  if (!call.present()) {
    return nullptr;
  }
  try {
    call.run(op);
  } catch (const std::exception&) {
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
