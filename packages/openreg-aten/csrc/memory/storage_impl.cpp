// SPDX-License-Identifier: BSD-3-Clause
// A custom StorageImpl with a name, which all tensors over a storage share. A
// resize keeps the name. PyTorch and this library create storages with the
// function that is registered here. The storages of results that CPU kernels
// return are plain PyTorch storages until they get a name.
#include "memory/storage_impl.h"

#include "base/keys.h"
#include "base/mechanism.h"
#include "memory/allocator.h"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <utility>

namespace openreg::aten {
namespace {

struct DeviceStorage final : c10::StorageImpl {
  using StorageImpl::StorageImpl;

  std::unique_ptr<const std::string> name; // few storages have one
};

c10::intrusive_ptr<c10::StorageImpl> create(
    c10::StorageImpl::use_byte_size_t tag,
    c10::SymInt size,
    c10::DataPtr memory,
    c10::Allocator* allocator,
    bool resizable) {
  // To request an allocation, PyTorch passes an empty DataPtr, which is not on
  // the device.
  return memory.device().type() == kDeviceType
      ? c10::make_intrusive<DeviceStorage>(
            tag, std::move(size), std::move(memory), allocator, resizable)
      : c10::make_intrusive<DeviceStorage>(tag, size, allocator, resizable);
}

DeviceStorage* as_own(const at::Tensor& tensor) {
  return dynamic_cast<DeviceStorage*>(tensor.storage().unsafeGetStorageImpl());
}

} // namespace

c10::Storage make_storage(size_t bytes, c10::DataPtr memory) {
  constexpr c10::StorageImpl::use_byte_size_t kTag;
  c10::SymInt size(static_cast<int64_t>(bytes));
  auto* create_own = c10::GetStorageImplCreate(kDeviceType);
  return create_own ? create_own(
                          kTag,
                          std::move(size),
                          std::move(memory),
                          &device_allocator(),
                          /*resizable=*/true)
                    : c10::make_intrusive<c10::StorageImpl>(
                          kTag,
                          std::move(size),
                          std::move(memory),
                          &device_allocator(),
                          /*resizable=*/true);
}

std::string storage_name(const at::Tensor& tensor) {
  const auto* own = as_own(tensor);
  return own && own->name ? *own->name : "";
}

void set_storage_name(const at::Tensor& tensor, std::string name) {
  TORCH_CHECK(
      c10::GetStorageImplCreate(kDeviceType) == &create,
      "storages cannot have a name, because ",
      kIsCuda ? "PyTorch does not offer this to CUDA"
              : "OPENREG_DISABLE leaves out the mechanism storage_impl");
  if (as_own(tensor) == nullptr) {
    TORCH_CHECK(
        tensor.storage().use_count() == 1,
        "the storage was allocated by a kernel and is already shared: set the "
        "name before sharing it, or name a clone()");
    c10::StorageImpl& made = *tensor.storage().unsafeGetStorageImpl();
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(make_storage(
        made.nbytes(), std::move(made._mutable_data_ptr_no_checks())));
  }
  as_own(tensor)->name = name.empty()
      ? nullptr
      : std::make_unique<const std::string>(std::move(name));
}

OPENREG_MECHANISM_OF_PRIVATEUSE1(
    storage_impl,
    "c10::SetStorageImplCreate",
    "storages are PyTorch's own and cannot hold backend data") {
  c10::SetStorageImplCreate(kDeviceType, &create);
}

} // namespace openreg::aten
