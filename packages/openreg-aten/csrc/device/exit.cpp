// SPDX-License-Identifier: BSD-3-Clause
// A handshake with autograd's device threads.
//
// Each of them drops one task before it takes the next, so a small backward
// pass that came back shows that nothing of an earlier one is left. Its own
// tensors have no Python objects.
#include "device/exit.h"

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

constexpr auto kPatience = std::chrono::seconds(2);

void run_backward(c10::DeviceIndex device) {
  const auto options = at::TensorOptions().device(c10::kPrivateUse1, device);
  // Factories do not look at the options' requires_grad.
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
      // A device without memory, for one. Nobody is left to be told, and the
      // wait below ends either way.
    }
    const std::lock_guard lock(handshake->mutex);
    handshake->done = true;
    handshake->condition.notify_one();
  };
  // On a thread of its own: a device may be held by a kernel that never ends.
  try {
    std::thread(backward).detach();
  } catch (const std::system_error& error) {
    TORCH_WARN("no thread to wait for autograd at exit: ", error.what());
    return;
  }
  std::unique_lock lock(handshake->mutex);
  handshake->condition.wait_for(
      lock, kPatience, [&] { return handshake->done; });
}

} // namespace openreg::aten
