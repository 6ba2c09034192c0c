// SPDX-License-Identifier: BSD-3-Clause
// Waits for the device threads of autograd.
//
// Each thread drops a task before it takes the next one. A small backward pass
// that has finished therefore shows that nothing of an earlier pass is left.
// The tensors of this pass have no Python objects.
#include "device/exit.h"

#include "base/keys.h"
#include "device/device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace openreg::aten {
namespace {

constexpr auto kDrainTimeout = std::chrono::seconds(2);

void run_backward(c10::DeviceIndex device) {
  const auto options = at::TensorOptions().device(kDeviceType, device);
  // Factories ignore requires_grad in the options.
  at::ones({}, options).requires_grad_().view({1}).sum().backward();
}

} // namespace

void drain_autograd() {
  if (!is_initialized()) {
    return; // not used, or a forked child
  }
  struct Handshake {
    std::mutex mutex;
    std::condition_variable condition;
    bool done = false;
  };
  auto handshake = std::make_shared<Handshake>();
  const auto backward = [handshake] {
    try {
      for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        run_backward(device);
      }
    } catch (...) {
      // For example, the device has no free memory. Nobody can handle the
      // error, and the wait below ends either way.
    }
    const std::lock_guard lock(handshake->mutex);
    handshake->done = true;
    handshake->condition.notify_one();
  };
  // On a separate thread, because a kernel that never ends may block a device.
  try {
    std::thread(backward).detach();
  } catch (const std::system_error& error) {
    TORCH_WARN(
        "cannot start a thread that waits for autograd at exit: ",
        error.what());
    return;
  }
  std::unique_lock lock(handshake->mutex);
  handshake->condition.wait_for(
      lock, kDrainTimeout, [&] { return handshake->done; });
}

} // namespace openreg::aten
