// SPDX-License-Identifier: BSD-3-Clause
// The registered settings. They are never destroyed, because callers keep their
// texts.
#include "settings/registered.h"

#include "base/error.h"
#include "settings/config.h"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace openreg::registered_settings {
namespace {

constexpr const char* kDevice = "OPENREG_DEVICE";
constexpr const char* kCuda = "cuda";

struct Entry {
  Setting setting;
  std::string initial;
  std::optional<orSettingKind> kind; // none for the own settings
  std::optional<Error> error;        // of a wrong value

  const Setting& checked() const {
    if (error) {
      throw Failure(*error);
    }
    return setting;
  }
};

/// Calls `check` with the setting, and keeps its error.
template <typename Check>
void read(Entry& entry, const Check& check) {
  try {
    check(entry.setting);
  } catch (const Failure& failure) {
    entry.error = failure.error();
  }
}

struct Registry {
  std::mutex mutex;
  std::deque<Entry> entries; // an entry keeps its address

  Registry() {
    constexpr const char* kNone = "none";
    Setting disable = look_up(
        "OPENREG_DISABLE",
        kNone,
        "parts of the libraries above that are left out, by name");
    read_names(disable);
    entries.push_back({std::move(disable), kNone, {}, {}});

    // Defined here because openreg-aten reads it while it is loaded.
    constexpr const char* kOwnName = "openreg";
    Setting device = look_up(
        kDevice,
        kOwnName,
        "the device type in PyTorch: openreg, or cuda (with openreg-cuda)");
    read(
        entries.emplace_back(Entry{std::move(device), kOwnName, {}, {}}),
        [&](const Setting& setting) {
          if (setting.value != kOwnName && setting.value != kCuda) {
            reject(setting, "openreg or cuda");
          }
        });

    // Defined here because torch-openreg reads it before the devices exist.
    Setting profile = look_up(
        "OPENREG_PROFILE",
        kNone,
        "the GPU as which the devices describe themselves: none, the name of a "
        "profile, or a device file");
    entries.push_back({std::move(profile), kNone, {}, {}});
  }

  const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries) {
      if (entry.setting.name == name) {
        return &entry;
      }
    }
    return nullptr;
  }
};

Registry& registry() {
  static auto* value = new Registry;
  return *value;
}

} // namespace

void add(
    const char* name,
    const char* initial,
    orSettingKind kind,
    const char* description) {
  if (kind != orSettingSwitch && kind != orSettingNumber) {
    throw Failure(
        orErrorInvalidValue,
        "kind " + std::to_string(static_cast<int>(kind)) +
            " is not an orSettingKind: expected 0 or 1");
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const Entry* known = all.find(name);
  if (is_configured(name) ||
      (known != nullptr &&
       (known->kind != kind || known->initial != initial))) {
    throw Failure(
        orErrorInvalidValue,
        std::string("name '") + name +
            "' is already the name of another setting");
  }
  if (known == nullptr) {
    Entry entry{look_up(name, initial, description), initial, kind, {}};
    read(entry, [kind](Setting& setting) {
      if (kind == orSettingSwitch) {
        read_switch(setting);
      } else {
        read_number(setting, 0, UINT64_MAX, "a whole number");
      }
    });
    all.entries.push_back(std::move(entry));
  }
}

const Setting* find(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const Entry* entry = all.find(name);
  return entry == nullptr ? nullptr : &entry->checked();
}

bool is_cuda() {
  return find(kDevice)->value == kCuda;
}

std::vector<const Setting*> all() {
  Registry& registered = registry();
  const std::lock_guard lock(registered.mutex);
  std::vector<const Setting*> result;
  result.reserve(registered.entries.size());
  for (const Entry& entry : registered.entries) {
    result.push_back(&entry.checked());
  }
  return result;
}

} // namespace openreg::registered_settings
