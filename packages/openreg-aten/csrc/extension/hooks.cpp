// SPDX-License-Identifier: BSD-3-Clause
// The accelerator hooks, which PyTorch's C++ code calls for a device.
#include "base/keys.h"
#include "base/mechanism.h"
#include "device/device.h"
#include "device/error.h"
#include "memory/allocator.h"
#include "random/generator.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace openreg::aten {
namespace {

/// The hooks of the device, for either interface.
template <typename Interface>
class Hooks : public Interface {
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
    return openreg::aten::current_device();
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
    at::Allocator* allocator = at::getHostAllocator(kDeviceType);
    return allocator ? allocator : Interface::getPinnedMemoryAllocator();
  }
  at::Device getDeviceFromPtr(void* data) const override {
    orPointerAttributes attributes = OPENREG_POINTER_ATTRIBUTES_INIT;
    OPENREG_CHECK(orPointerGetAttributes(&attributes, data));
    TORCH_CHECK(
        attributes.type == orMemoryTypeDevice,
        "The specified pointer resides on host memory and is not registered "
        "with any ",
        device_type_name(),
        " device.");
    return {kDeviceType, static_cast<c10::DeviceIndex>(attributes.device)};
  }

  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return generators_enabled() ? default_generator(index)
                                : Interface::getDefaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return generators_enabled() ? new_generator(index)
                                : Interface::getNewGenerator(index);
  }
};

class PrivateUse1Hooks final : public Hooks<at::PrivateUse1HooksInterface> {
 public:
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size)
      const override {
    resize_storage(storage, size);
  }
};

/// Reports a device without cuDNN, cuBLASLt and other libraries of CUDA, so
/// that PyTorch does not choose operators that only they provide.
class CudaHooks final : public Hooks<at::CUDAHooksInterface> {
 public:
  bool hasCUDA() const override {
    return true;
  }
  c10::DeviceIndex current_device() const override {
    return openreg::aten::current_device();
  }
  int getNumGPUs() const override {
    return device_count();
  }
  at::Allocator* getCUDADeviceAllocator() const override {
    return &device_allocator();
  }
  void deviceSynchronize(c10::DeviceIndex index) const override {
    synchronize_device(index);
  }
  std::string showConfig() const override {
    return "  - OpenReg simulated device (cuda)\n";
  }
};

bool is_disabled(std::string_view mechanism) {
  orSetting disabled = OPENREG_SETTING_INIT;
  OPENREG_CHECK(orGetSettingByName("OPENREG_DISABLE", &disabled));
  return std::find(
             disabled.names, disabled.names + disabled.nameCount, mechanism) !=
      disabled.names + disabled.nameCount;
}

/// Registers the hooks of CUDA when the library is loaded. `import torch._C`
/// creates them and keeps them, before mechanisms are enabled.
[[maybe_unused]] const bool registers_cuda_hooks = [] {
  const bool registers = kIsCuda && !is_disabled("hooks");
  if (registers) {
    at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs) {
      return std::unique_ptr<at::CUDAHooksInterface>(new CudaHooks);
    });
  }
  return registers;
}();

} // namespace

OPENREG_MECHANISM(
    hooks,
    "at::PrivateUse1HooksInterface",
    "no backward, generators, pinned memory or storage resizing") {
  if (!kIsCuda) {
    at::RegisterPrivateUse1HooksInterface(new PrivateUse1Hooks);
  }
}

} // namespace openreg::aten
