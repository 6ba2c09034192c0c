// SPDX-License-Identifier: BSD-3-Clause
// Constructs aliases over the kernel mapping, and adopts results.
#include "alias/cpu_aliases.h"

#include "alias/device_finder.h"
#include "alias/extent.h"
#include "base/keys.h"
#include "codec/components.h"
#include "device/device.h"
#include "memory/allocator.h"
#include "stream/bytes.h"

#include <ATen/quantized/QTensorImpl.h>

#include <algorithm>
#include <utility>

namespace openreg::aten {
namespace {

void copy_geometry(const c10::TensorImpl& from, c10::TensorImpl& to) {
  // linalg_vector_norm with a dim reads the first size of a tensor without
  // dimensions. A pooled alias may still hold an old size there.
  if (C10_UNLIKELY(from.dim() == 0)) {
    to.set_sizes_contiguous({0});
  }
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

bool has_geometry_of(const c10::TensorImpl& one, const c10::TensorImpl& other) {
  const at::IntArrayRef sizes = one.sizes();
  const at::IntArrayRef strides = one.strides();
  const at::IntArrayRef other_sizes = other.sizes();
  const at::IntArrayRef other_strides = other.strides();
  if (sizes.size() != other_sizes.size() ||
      one.storage_offset() != other.storage_offset()) {
    return false;
  }
  // operator== calls memcmp, which is slower for so few elements.
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != other_sizes[i] || strides[i] != other_strides[i]) {
      return false;
    }
  }
  return true;
}

void copy_flags(const c10::TensorImpl& from, c10::TensorImpl& to) {
  if (C10_UNLIKELY(from.is_conj() != to.is_conj())) {
    to._set_conj(from.is_conj());
  }
  if (C10_UNLIKELY(from.is_neg() != to.is_neg())) {
    to._set_neg(from.is_neg());
  }
  if (C10_UNLIKELY(from.is_wrapped_number())) {
    to.set_wrapped_number(true);
  }
}

at::QTensorImpl& as_quantized(c10::TensorImpl& impl) {
  return static_cast<at::QTensorImpl&>(impl);
}

/// Moves the buffer that a CPU storage owns to the device address of the same
/// memory.
c10::DataPtr move_buffer(c10::StorageImpl& storage, c10::DeviceIndex device) {
  void* block = to_device(storage.data());
  c10::DataPtr buffer = storage.set_data_ptr(c10::DataPtr());
  buffer.release_context();
  return own_block(device, block);
}

} // namespace

CpuAliases::~CpuAliases() {
  composed_.clear();
  quantizers_.clear();
  storages_.clear();
  for (Aliased& aliased : aliased_) {
    leave_shared_storage(*aliased.alias);
  }
  for (Aliased& aliased : aliased_) {
    recycle(std::move(aliased.alias));
  }
}

const c10::Storage& CpuAliases::share_storage(
    const c10::Storage& storage,
    bool written,
    CpuAlias& own) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  // mutable_data() first copies the buffer of a lazily copied storage.
  const void* data = written ? impl->mutable_data() : impl->data();
  const auto place = by_storage_.find(
      storages_, impl, [](const SharedStorage& each) { return each.device; });
  if (place) {
    follow(storages_[*place]);
    return storages_[*place].alias->storage;
  }
  c10::StorageImpl& alias = *own.storage.unsafeGetStorageImpl();
  alias.set_data_ptr_noswap(
      c10::DataPtr(to_kernel(data), c10::Device(c10::kCPU)));
  alias.set_nbytes(impl->nbytes());
  alias.set_resizable(impl->resizable());
  storages_.push_back({impl, &own});
  return own.storage;
}

CpuAliasPtr CpuAliases::make_alias_of(c10::TensorImpl& impl) {
  if (C10_UNLIKELY(impl.key_set().has(c10::DispatchKey::Quantized))) {
    return make_quantized_alias(
        alias_quantizer(as_quantized(impl).quantizer()));
  }
  return C10_UNLIKELY(impl._is_zerotensor()) ? make_zero_alias() : take_alias();
}

void CpuAliases::follow(const SharedStorage& shared) {
  void* data = to_kernel(shared.device->data());
  c10::StorageImpl& alias = *shared.alias->storage.unsafeGetStorageImpl();
  if (C10_UNLIKELY(alias.data() != data)) {
    alias.set_data_ptr_noswap(c10::DataPtr(data, c10::Device(c10::kCPU)));
  }
}

at::Tensor& CpuAliases::alias(const at::Tensor& tensor, bool written) {
  if (C10_UNLIKELY(codec::has_components(*tensor.unsafeGetTensorImpl()))) {
    return alias_components(tensor, written);
  }
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const auto place = by_tensor_.find(
      aliased_, impl, [](const Aliased& each) { return each.device; });
  if (C10_UNLIKELY(place.has_value())) {
    Aliased& aliased = aliased_[*place];
    if (written && !aliased.written) {
      share_storage(impl->storage(), true, *aliased.alias);
      aliased.written = true;
    }
    return aliased.alias->tensor;
  }
  if (C10_UNLIKELY(!lies_in_storage(*impl))) {
    throw_outside_storage(*impl);
  }
  CpuAliasPtr alias = make_alias_of(*impl);
  c10::TensorImpl& made = *alias->tensor.unsafeGetTensorImpl();
  const c10::Storage& storage = share_storage(impl->storage(), written, *alias);
  if (C10_UNLIKELY(
          storage.unsafeGetStorageImpl() !=
              made.storage().unsafeGetStorageImpl() ||
          impl->dtype() != made.dtype())) {
    made.set_storage_and_dtype(storage, impl->dtype());
  }
  // It may have had the same storage before.
  if (impl->dim() == 0 || !has_geometry_of(made, *impl)) {
    copy_geometry(*impl, made);
  }
  copy_flags(*impl, made);
  aliased_.push_back({impl, std::move(alias), written});
  return aliased_.back().alias->tensor;
}

at::Tensor& CpuAliases::alias(at::Tensor&& tensor, bool written) {
  kept_.push_back(std::move(tensor));
  return alias(std::as_const(kept_.back()), written);
}

at::Tensor& CpuAliases::alias_argument(
    const at::Tensor& tensor,
    const OperatorInfo::Argument& argument) {
  argument_ = &argument;
  if (C10_LIKELY(tensor.defined() && tensor.device().type() == kDeviceType)) {
    return alias(tensor, argument.written);
  }
  if (tensor.defined() && !is_accepted_from_host(tensor, argument)) {
    throw_two_devices(device_, tensor);
  }
  if (tensor.defined() && tensor.has_storage() &&
      !lies_in_storage(*tensor.unsafeGetTensorImpl())) {
    throw_outside_storage(*tensor.unsafeGetTensorImpl());
  }
  has_host_tensors_ = has_host_tensors_ || tensor.defined();
  return const_cast<at::Tensor&>(tensor);
}

void CpuAliases::throw_outside_storage(const c10::TensorImpl& tensor) const {
  const auto& arguments = op_.schema().arguments();
  openreg::aten::throw_outside_storage(
      tensor,
      toString(op_.operator_name()),
      argument_ != nullptr ? arguments[argument_->index].name() : "self");
}

bool CpuAliases::write_back() {
  bool changed = false;
  for (SharedStorage& shared : storages_) {
    c10::StorageImpl& device = *shared.device;
    c10::StorageImpl& alias = *shared.alias->storage.unsafeGetStorageImpl();
    if (C10_UNLIKELY(alias.data() != to_kernel(device.data()))) {
      changed = true;
      device.set_data_ptr_noswap(move_buffer(alias, device_));
      device.set_nbytes(alias.nbytes());
      follow(shared);
    }
  }
  for (Aliased& aliased : aliased_) {
    if (!aliased.written) {
      continue;
    }
    c10::TensorImpl& alias = *aliased.alias->tensor.unsafeGetTensorImpl();
    c10::TensorImpl& device = *aliased.device;
    if (C10_UNLIKELY(
            find_device_storage(alias.storage()) !=
            device.storage().unsafeGetStorageImpl())) {
      changed = true;
      replaced_.push_back(device.storage());
      device.set_storage_keep_dtype(device_storage(alias.storage()));
    }
    if (C10_UNLIKELY(!has_geometry_of(alias, device))) {
      changed = true;
      has_resized_elements_ = has_resized_elements_ ||
          (device.numel() > 0 && device.sizes() != alias.sizes());
      copy_geometry(alias, device);
    }
    if (C10_UNLIKELY(
            alias.is_conj() != device.is_conj() ||
            alias.is_neg() != device.is_neg())) {
      changed = has_changed_bits_ = true;
      copy_flags(alias, device);
    }
    if (C10_UNLIKELY(aliased.alias->tensor.is_quantized())) {
      as_quantized(device).set_quantizer_(
          adopt_quantizer(as_quantized(alias).quantizer()));
    }
  }
  for (const Aliased& aliased : composed_) {
    if (aliased.written) {
      write_back_components(aliased);
    }
  }
  return changed;
}

bool CpuAliases::is_alias(const at::Tensor& tensor) const {
  return std::any_of(
      aliased_.begin(), aliased_.end(), [&](const Aliased& aliased) {
        return aliased.alias->tensor.is_same(tensor);
      });
}

void CpuAliases::move_aliases(std::vector<CpuAliasPtr>& aliases) {
  for (Aliased& aliased : aliased_) {
    aliases.push_back(std::move(aliased.alias));
  }
  aliased_.clear();
  storages_.clear();
  for (PointerTable* each : {&by_tensor_, &by_storage_, &by_alias_storage_}) {
    each->clear();
  }
}

c10::StorageImpl* CpuAliases::find_device_storage(const c10::Storage& alias) {
  const auto place = by_alias_storage_.find(
      storages_, alias.unsafeGetStorageImpl(), [](const SharedStorage& each) {
        return each.alias->storage.unsafeGetStorageImpl();
      });
  return place ? storages_[*place].device : nullptr;
}

c10::Storage CpuAliases::device_storage(const c10::Storage& result) {
  if (c10::StorageImpl* known = find_device_storage(result)) {
    return c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(known);
  }
  c10::StorageImpl& impl = *result.unsafeGetStorageImpl();
  if (impl.device_type() == kDeviceType) {
    return result; // shared with another result of this kernel
  }
  const void* data = impl.data();
  if (data == nullptr || to_device(data) != nullptr) {
    impl.set_data_ptr_noswap(move_buffer(impl, device_));
  } else {
    // Allocated on a thread without a KernelScope, or a constant.
    void* block = allocate_idle_block(device_, impl.nbytes());
    if (impl.nbytes() > 0) {
      fill_idle(device_, block, data, impl.nbytes());
    }
    if (result.use_count() > 2) { // host memory that another object uses
      return c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(),
          impl.nbytes(),
          own_block(device_, block),
          &device_allocator(),
          true);
    }
    impl.set_data_ptr_noswap(own_block(device_, block));
  }
  impl.set_allocator(&device_allocator());
  return result;
}

at::Tensor CpuAliases::adopt(at::Tensor result) {
  if (!result.defined()) {
    return result;
  }
  if (C10_UNLIKELY(codec::has_components(*result.unsafeGetTensorImpl()))) {
    return adopt_components(result);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      result.layout() == c10::kStrided && result.has_storage(),
      "a result with layout ",
      result.layout(),
      " is not supported on device type ",
      kDeviceType);
  if (C10_UNLIKELY(result.use_count() > 1)) { // the kernel returned an argument
    result = at::Tensor(result.unsafeGetTensorImpl()->shallow_copy_and_detach(
        /*version_counter=*/0, /*allow_tensor_metadata_change=*/true));
  }
  c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  const c10::Device device(kDeviceType, device_);
  impl.set_storage_keep_dtype(device_storage(impl.storage()));
  impl._change_backend_component_keys(device);
  if (C10_UNLIKELY(result.is_quantized())) {
    auto& quantized = as_quantized(impl);
    quantized.set_quantizer_(adopt_quantizer(quantized.quantizer()));
  }
  return result;
}

void CpuAliases::replace(const at::Tensor& tensor, at::Tensor result) {
  if (result.is_same(alias(tensor, /*written=*/true))) {
    return;
  }
  const at::Tensor adopted = adopt(std::move(result));
  c10::TensorImpl& from = *adopted.unsafeGetTensorImpl();
  c10::TensorImpl& to = *tensor.unsafeGetTensorImpl();
  to.set_storage_and_dtype(from.storage(), from.dtype());
  copy_geometry(from, to);
  as_quantized(to).set_quantizer_(as_quantized(from).quantizer());
}

at::Tensor borrow(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const c10::StorageImpl& storage = *impl.storage().unsafeGetStorageImpl();
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(),
          storage.nbytes(),
          c10::DataPtr(
              const_cast<void*>(storage.data()), c10::Device(c10::kCPU)),
          /*allocator=*/nullptr,
          /*resizable=*/false),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      impl.dtype());
  copy_geometry(impl, *alias.unsafeGetTensorImpl());
  copy_flags(impl, *alias.unsafeGetTensorImpl());
  return alias;
}

} // namespace openreg::aten
