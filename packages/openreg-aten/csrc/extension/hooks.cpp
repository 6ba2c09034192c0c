// SPDX-License-Identifier: BSD-3-Clause
// The accelerator hooks, which PyTorch's C++ code calls for a device.
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "memory/allocator.h"
#include "random/generator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace openreg::aten {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return device_count() > 0;
  }
  void init() const override {
    initialize();
  }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    check_device(index);
    return is_initialized();
  }

  c10::DeviceIndex deviceCount() const override {
    return device_count();
  }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    set_device(index);
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return current_device();
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchange_device(index);
  }

  bool isPinnedPtr(const void* data) const override {
    // PyTorch calls this for any host tensor, also before the devices have
    // started and in a forked child. Neither has pinned memory.
    if (!is_initialized()) {
      return false;
    }
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    OPENREG_CHECK(orPointerGetAttributes(&attributes, data));
    return attributes.type == orMemoryTypeHost;
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    at::Allocator* allocator = at::getHostAllocator(c10::kPrivateUse1);
    return allocator ? allocator
                     : PrivateUse1HooksInterface::getPinnedMemoryAllocator();
  }
  at::Device getDeviceFromPtr(void* data) const override {
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    OPENREG_CHECK(orPointerGetAttributes(&attributes, data));
    TORCH_CHECK(
        attributes.type == orMemoryTypeDevice,
        "The specified pointer resides on host memory and is not registered "
        "with any openreg device.");
    return {
        c10::kPrivateUse1, static_cast<c10::DeviceIndex>(attributes.device)};
  }

  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return generators_enabled()
        ? default_generator(index)
        : PrivateUse1HooksInterface::getDefaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return generators_enabled()
        ? new_generator(index)
        : PrivateUse1HooksInterface::getNewGenerator(index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size)
      const override {
    resize_storage(storage, size);
  }
};

} // namespace

OPENREG_MECHANISM(
    hooks,
    "at::PrivateUse1HooksInterface",
    "no backward, generators, pinned memory or storage resizing") {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
}

} // namespace openreg::aten
