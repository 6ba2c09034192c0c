// SPDX-License-Identifier: BSD-3-Clause
// Stand-ins, and the scope in which kernels run with them.
#include "results/stand_ins.h"

#include "alias/device_finder.h"
#include "alias/extent.h"
#include "base/keys.h"
#include "memory/cpu_allocator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/List.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>

namespace openreg::aten {
namespace {

using Kind = OperatorInfo::Kind;

/// Counts the warnings of a kernel.
class CountingHandler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {
    count += 1;
  }
  size_t count = 0;
};

/// Makes PyTorch show every warning, and mark none as shown. The setting
/// applies to the whole process, so scopes of several threads are counted, and
/// another thread may repeat a warning.
class WarnAlwaysScope {
 public:
  WarnAlwaysScope() {
    const std::lock_guard lock(mutex_);
    if (count_++ == 0) {
      before_ = c10::WarningUtils::get_warnAlways();
      c10::WarningUtils::set_warnAlways(true);
    }
  }
  WarnAlwaysScope(const WarnAlwaysScope&) = delete;
  WarnAlwaysScope& operator=(const WarnAlwaysScope&) = delete;
  ~WarnAlwaysScope() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0 && c10::WarningUtils::get_warnAlways()) {
      c10::WarningUtils::set_warnAlways(before_);
    }
  }

 private:
  static inline std::mutex mutex_;
  static inline int count_ = 0;
  static inline bool before_ = false;
};

/// Hides the operators that this thread dispatches from the modes and profilers
/// of the caller.
class HiddenScope {
 public:
  HiddenScope()
      : torch_function_(at::impl::PythonTorchFunctionTLS::get_disabled_state()),
        dispatch_(
            c10::default_included_set,
            c10::default_excluded_set | kBelowAutograd),
        quiet_(&handler_) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(
        at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  HiddenScope(const HiddenScope&) = delete;
  HiddenScope& operator=(const HiddenScope&) = delete;
  bool has_warned() const {
    return handler_.count > 0;
  }
  ~HiddenScope() {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(torch_function_);
  }

 private:
  at::impl::TorchFunctionDisabledState torch_function_;
  c10::impl::ForceDispatchKeyGuard dispatch_;
  at::RecordFunctionGuard no_profile_{/*is_enabled=*/false};
  WarnAlwaysScope warns_always_;
  CountingHandler handler_;
  c10::WarningUtils::WarningHandlerGuard quiet_;
};

template <typename T>
void fill_elements(void* data, size_t size) {
  std::fill_n(static_cast<T*>(data), size / sizeof(T), T(1));
}

/// Sets all elements to one. Elements of other dtypes, such as float8, stay
/// zero.
void fill_with_ones(void* data, size_t size, c10::ScalarType dtype) {
  using c10::ScalarType;
  switch (dtype) {
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
      return fill_elements<uint8_t>(data, size);
    case ScalarType::Short:
    case ScalarType::UInt16:
      return fill_elements<uint16_t>(data, size);
    case ScalarType::Int:
    case ScalarType::UInt32:
      return fill_elements<uint32_t>(data, size);
    case ScalarType::Long:
    case ScalarType::UInt64:
      return fill_elements<uint64_t>(data, size);
    case ScalarType::Half:
      return fill_elements<c10::Half>(data, size);
    case ScalarType::BFloat16:
      return fill_elements<c10::BFloat16>(data, size);
    case ScalarType::Float:
      return fill_elements<float>(data, size);
    case ScalarType::Double:
      return fill_elements<double>(data, size);
    case ScalarType::ComplexFloat:
      return fill_elements<c10::complex<float>>(data, size);
    case ScalarType::ComplexDouble:
      return fill_elements<c10::complex<double>>(data, size);
    default:
      return;
  }
}

} // namespace

bool StandInCall::replace_arguments() {
  for (const auto& argument : info_.arguments) {
    c10::IValue& value = stack_[argument.index];
    switch (argument.kind) {
      case Kind::kTensor:
        if (value.isTensor()) {
          value = stand_in_of(value.toTensor(), argument);
        }
        break;
      case Kind::kTensorList:
      case Kind::kOptionalTensorList:
        value = stand_ins_of(argument, value);
        break;
      case Kind::kGenerator:
        value = at::detail::createCPUGenerator();
        break;
      case Kind::kDevice:
        value = c10::Device(c10::kCPU);
        break;
    }
  }
  return !refused_;
}

bool StandInCall::run(const c10::OperatorHandle& op) {
  for (const auto& argument : info_.arguments) {
    if (argument.written && stack_[argument.index].isTensor()) {
      written_.push_back(stack_[argument.index].toTensor());
      before_.push_back(read_metadata(written_.back()));
      if (setting_ == Setting::kEmptyResults &&
          op.schema().arguments()[argument.index].is_out()) {
        written_.back().unsafeGetTensorImpl()->set_sizes_contiguous({0});
      }
    }
  }
  const HiddenScope scope;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
  for (size_t i = 0; i < written_.size(); ++i) {
    const Metadata& before = before_[i];
    if (setting_ == Setting::kEmptyResults &&
        written_[i].sizes() == before.sizes) {
      written_[i].unsafeGetTensorImpl()->set_sizes_and_strides(
          before.sizes, before.strides); // the sizes fit, so keep the strides
    }
  }
  return !scope.has_warned();
}

std::vector<at::Tensor> StandInCall::made() const {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < stack_.size() && i < info_.returned.size(); ++i) {
    if (info_.returned[i] >= 0) {
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

bool StandInCall::is_resized() const {
  for (size_t i = 0; i < written_.size(); ++i) {
    if (written_[i].sizes() != before_[i].sizes ||
        written_[i].strides() != before_[i].strides) {
      return true;
    }
  }
  return false;
}

std::vector<at::Tensor> StandInCall::resized() const {
  std::vector<at::Tensor> tensors;
  if (is_resized()) {
    for (size_t i = 0; i < info_.returned.size(); ++i) {
      if (info_.returned[i] >= 0) {
        tensors.push_back(stack_[i].toTensor());
      }
    }
  }
  return tensors;
}

bool StandInCall::has_hidden_change() const {
  for (size_t i = 0; i < written_.size(); ++i) {
    const Metadata now = read_metadata(written_[i]);
    const Metadata& before = before_[i];
    if (now.offset != before.offset || now.storage != before.storage ||
        now.conj != before.conj || now.neg != before.neg) {
      return true;
    }
    if (info_.skips_resize_warning &&
        c10::multiply_integers(before.sizes) > 0 && now.sizes != before.sizes) {
      return true;
    }
  }
  return is_resized() && resized().size() != written_.size();
}

bool StandInCall::aliases_argument(
    const std::vector<at::Tensor>& results) const {
  return std::any_of(
      results.begin(), results.end(), [&](const at::Tensor& result) {
        return result.defined() &&
            std::any_of(
                   tensors_.begin(), tensors_.end(), [&](const auto& entry) {
                     return entry.second.is_alias_of(result);
                   });
      });
}

StandInCall::Metadata StandInCall::read_metadata(const at::Tensor& tensor) {
  return {
      c10::DimVector(tensor.sizes()),
      c10::DimVector(tensor.strides()),
      tensor.storage_offset(),
      tensor.storage().unsafeGetStorageImpl(),
      tensor.is_conj(),
      tensor.is_neg()};
}

at::Tensor StandInCall::stand_in_of(
    const at::Tensor& tensor,
    const OperatorInfo::Argument& argument) {
  if (!tensor.defined()) {
    return tensor;
  }
  if (tensor.device().type() != kDeviceType) {
    refused_ = refused_ || !is_accepted_from_host(tensor, argument);
    return tensor;
  }
  const bool written = argument.written;
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  refused_ = refused_ || !lies_in_storage(*impl);
  const void* storage = impl->storage().unsafeGetStorageImpl();
  const auto shared = storages_.find(storage);
  if (shared == storages_.end()) {
    storages_.emplace(storage, Shared{make_stand_in_storage(*impl), written});
  } else {
    overlaps_ |= written || shared->second.written;
  }
  overlaps_ |=
      written && at::has_internal_overlap(tensor) != at::MemOverlap::No;
  at::Tensor& stand_in = tensors_[impl];
  if (!stand_in.defined()) {
    stand_in = make_stand_in(*impl);
  }
  return stand_in;
}

c10::IValue StandInCall::stand_ins_of(
    const OperatorInfo::Argument& argument,
    const c10::IValue& value) {
  if (value.isNone()) {
    return value;
  }
  if (argument.kind == Kind::kTensorList) {
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& each : value.toTensorVector()) {
      tensors.push_back(stand_in_of(each, argument));
    }
    return tensors;
  }
  c10::List<std::optional<at::Tensor>> tensors;
  for (const c10::IValue& each : value.toListRef()) {
    tensors.push_back(
        each.isTensor() ? std::optional(stand_in_of(each.toTensor(), argument))
                        : std::nullopt);
  }
  return tensors;
}

at::Tensor StandInCall::make_stand_in(const c10::TensorImpl& from) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storages_.at(from.storage().unsafeGetStorageImpl()).storage),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      from.dtype());
  c10::TensorImpl& to = *tensor.unsafeGetTensorImpl();
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  to._set_conj(from.is_conj());
  to._set_neg(from.is_neg());
  if (from.is_wrapped_number()) {
    to.set_wrapped_number(true);
  }
  return tensor;
}

c10::Storage StandInCall::make_stand_in_storage(const c10::TensorImpl& from) {
  const size_t size = from.storage().nbytes();
  c10::DataPtr data(nullptr, c10::Device(c10::kCPU));
  bytes_ += size;
  refused_ = refused_ || bytes_ > kMaxDryRunBytes;
  if (size > 0 && !refused_) {
    // Zeroed pages cost little until they are read.
    void* bytes = std::calloc(size, 1);
    refused_ = bytes == nullptr;
    data = c10::DataPtr(bytes, bytes, &std::free, c10::Device(c10::kCPU));
    if (setting_ == Setting::kOnes && !refused_) {
      fill_with_ones(bytes, size, c10::typeMetaToScalarType(from.dtype()));
    }
  }
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      size,
      std::move(data),
      c10::GetAllocator(c10::kCPU),
      /*resizable=*/true);
}

} // namespace openreg::aten
