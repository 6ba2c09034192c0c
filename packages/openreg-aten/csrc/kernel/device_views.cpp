// SPDX-License-Identifier: BSD-3-Clause
// Construction of views over the window, and hand-over of results.
#include "kernel/device_views.h"

#include "device/allocator.h"
#include "device/device.h"
#include "kernel/cpu_allocator.h"
#include "kernel/members.h"

#include <cstring>

namespace openreg::aten {
namespace {

void copy_geometry(const c10::TensorImpl& from, c10::TensorImpl& to) {
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
}

/// A CPU tensor with the geometry and flags of `tensor` over `storage`.
at::Tensor make_view(const at::Tensor& tensor, const c10::Storage& storage) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage),
      c10::DispatchKeySet(c10::DispatchKey::CPU),
      impl.dtype());
  c10::TensorImpl& made = *view.unsafeGetTensorImpl();
  copy_geometry(impl, made);
  if (C10_UNLIKELY(tensor.is_conj())) {
    made._set_conj(true);
  }
  if (C10_UNLIKELY(tensor.is_neg())) {
    made._set_neg(true);
  }
  if (impl.is_wrapped_number()) {
    made.set_wrapped_number(true);
  }
  return view;
}

/// Moves the buffer that a CPU storage owns to the device's name for it.
c10::DataPtr move_buffer(c10::StorageImpl& storage, c10::DeviceIndex device) {
  void* block = to_device(storage.data());
  c10::DataPtr buffer = storage.set_data_ptr(c10::DataPtr());
  buffer.release_context();
  return own_block(device, block);
}

} // namespace

const c10::Storage& DeviceViews::view_of(
    const c10::Storage& storage,
    bool written) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  // mutable_data() gives a lazily copied storage its own buffer first.
  const void* data = written ? impl->mutable_data() : impl->data();
  for (const SharedStorage& shared : storages_) {
    if (shared.device.unsafeGetStorageImpl() == impl) {
      follow(shared);
      return shared.view;
    }
  }
  storages_.push_back(
      {storage,
       c10::make_intrusive<c10::StorageImpl>(
           c10::StorageImpl::use_byte_size_t(),
           impl->nbytes(),
           c10::DataPtr(to_kernel(data), c10::Device(c10::kCPU)),
           &kernel_cpu_allocator(),
           impl->resizable())});
  return storages_.back().view;
}

void DeviceViews::follow(const SharedStorage& shared) {
  void* data = to_kernel(shared.device.unsafeGetStorageImpl()->data());
  c10::StorageImpl& view = *shared.view.unsafeGetStorageImpl();
  if (C10_UNLIKELY(view.data() != data)) {
    view.set_data_ptr_noswap(c10::DataPtr(data, c10::Device(c10::kCPU)));
  }
}

at::Tensor DeviceViews::present(const at::Tensor& tensor, bool written) {
  for (Presented& presented : presented_) {
    if (C10_UNLIKELY(presented.device.is_same(tensor))) {
      if (written && !presented.written && !has_members(tensor)) {
        view_of(tensor.storage(), /*written=*/true);
        presented.written = true;
      }
      return presented.view;
    }
  }
  at::Tensor view = C10_UNLIKELY(has_members(tensor))
      ? present_members(tensor, written)
      : make_view(tensor, view_of(tensor.storage(), written));
  presented_.push_back({tensor, view, written});
  return view;
}

void DeviceViews::finish() {
  for (SharedStorage& shared : storages_) {
    c10::StorageImpl& device = *shared.device.unsafeGetStorageImpl();
    c10::StorageImpl& view = *shared.view.unsafeGetStorageImpl();
    if (C10_UNLIKELY(view.data() != to_kernel(device.data()))) {
      device.set_data_ptr_noswap(move_buffer(view, device_));
      device.set_nbytes(view.nbytes());
      follow(shared);
    }
  }
  for (Presented& presented : presented_) {
    if (!presented.written) {
      continue;
    }
    if (C10_UNLIKELY(has_members(presented.device))) {
      finish_members(presented);
      continue;
    }
    const c10::TensorImpl& view = *presented.view.unsafeGetTensorImpl();
    c10::TensorImpl& device = *presented.device.unsafeGetTensorImpl();
    const c10::Storage storage = device_storage(view.storage());
    if (C10_UNLIKELY(
            storage.unsafeGetStorageImpl() !=
            device.storage().unsafeGetStorageImpl())) {
      device.set_storage_keep_dtype(storage);
    }
    if (C10_UNLIKELY(
            view.sizes() != device.sizes() ||
            view.strides() != device.strides() ||
            view.storage_offset() != device.storage_offset())) {
      copy_geometry(view, device);
    }
  }
}

c10::Storage DeviceViews::device_storage(const c10::Storage& result) {
  for (const SharedStorage& shared : storages_) {
    if (shared.view.unsafeGetStorageImpl() == result.unsafeGetStorageImpl()) {
      return shared.device;
    }
  }
  c10::StorageImpl& impl = *result.unsafeGetStorageImpl();
  if (impl.device_type() == c10::kPrivateUse1) {
    return result; // of another result of this kernel
  }
  const void* data = impl.data();
  if (data == nullptr || to_device(data) != nullptr) {
    impl.set_data_ptr_noswap(move_buffer(impl, device_));
  } else {
    // Made on a thread outside of the KernelScope, or over a constant.
    void* block = allocate_block(device_, impl.nbytes());
    if (impl.nbytes() > 0) {
      std::memcpy(to_kernel(block), data, impl.nbytes());
    }
    if (result.use_count() > 2) { // somebody else's host memory
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

at::Tensor DeviceViews::take_over(at::Tensor result) {
  if (!result.defined()) {
    return result;
  }
  if (C10_UNLIKELY(has_members(result))) {
    return take_over_members(result);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      !result.is_quantized(),
      "quantized tensors are not supported on device type ",
      c10::kPrivateUse1);
  TORCH_CHECK_NOT_IMPLEMENTED(
      result.layout() == c10::kStrided && result.has_storage(),
      "a result of layout ",
      result.layout(),
      " is not supported on device type ",
      c10::kPrivateUse1);
  if (C10_UNLIKELY(result.use_count() > 1)) { // the kernel returned an argument
    result = at::Tensor(result.unsafeGetTensorImpl()->shallow_copy_and_detach(
        /*version_counter=*/0, /*allow_tensor_metadata_change=*/true));
  }
  c10::TensorImpl& impl = *result.unsafeGetTensorImpl();
  const c10::Device device(c10::kPrivateUse1, device_);
  impl.set_storage_keep_dtype(device_storage(impl.storage()));
  impl._change_backend_component_keys(device);
  return result;
}

at::Tensor borrow(const at::Tensor& tensor) {
  const c10::StorageImpl& impl = *tensor.storage().unsafeGetStorageImpl();
  return make_view(
      tensor,
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(),
          impl.nbytes(),
          c10::DataPtr(const_cast<void*>(impl.data()), c10::Device(c10::kCPU)),
          /*allocator=*/nullptr,
          /*resizable=*/false));
}

} // namespace openreg::aten
