// SPDX-License-Identifier: BSD-3-Clause
// Keeps the model that a program has set, if any.
#include "device/model.h"

#include "settings/registered.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

namespace openreg {
namespace {

struct Chosen {
  std::mutex mutex;
  std::optional<Model> model;
};

Chosen& chosen() {
  static auto* value = new Chosen; // threads may outlive the statics
  return *value;
}

} // namespace

Model model() {
  {
    Chosen& own = chosen();
    const std::lock_guard lock(own.mutex);
    if (own.model) {
      return *own.model;
    }
  }
  const int processors =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return registered_settings::is_cuda()
      ? Model{"OpenReg simulated device (cuda)", 8, 0, processors}
      : Model{"OpenReg simulated device", 0, 1, processors};
}

void set_model(const Model& model) {
  Chosen& own = chosen();
  const std::lock_guard lock(own.mutex);
  own.model = model;
}

} // namespace openreg
