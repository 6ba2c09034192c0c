// SPDX-License-Identifier: BSD-3-Clause
// Activity records for Python.
#include "bindings/bindings.h"

#include <openreg/activity.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace openreg::python {
namespace {

using namespace nb::literals;

constexpr std::array kKinds{
    "kernel",
    "memcpy",
    "memset",
    "host_function",
    "wait",
    "malloc",
    "free",
    "call"};
constexpr std::array kDirections{"HtoH", "HtoD", "DtoH", "DtoD", "default"};
constexpr std::array kMemories{"pageable", "pinned", "device"};

/// One record as the fields of openreg_runtime.activity.Activity.
nb::tuple to_tuple(const orActivity& record) {
  const bool is_copy = record.kind == orActivityMemcpy;
  return nb::make_tuple(
      kKinds.at(record.kind),
      record.name,
      record.device >= 0 ? nb::cast(record.device) : nb::none(),
      record.stream >= 0 ? nb::cast(record.stream) : nb::none(),
      record.enqueued,
      record.started,
      record.ended,
      record.bytes,
      is_copy ? nb::cast(kDirections.at(record.direction)) : nb::none(),
      is_copy ? nb::cast(kMemories.at(record.hostMemory)) : nb::none(),
      record.error != orSuccess ? nb::cast(orGetErrorName(record.error))
                                : nb::none(),
      record.correlation,
      record.externalId,
      record.userId,
      record.process,
      record.thread,
      reinterpret_cast<std::uintptr_t>(record.address),
      record.nested != 0);
}

nb::tuple take() {
  nb::list taken;
  std::uint64_t dropped = 0;
  std::vector<orActivity> records(4096);
  std::size_t count = records.size();
  while (count == records.size()) {
    std::uint64_t more = 0;
    check(orActivityTake(
        records.data(), sizeof(orActivity), records.size(), &count, &more));
    dropped += more;
    for (std::size_t i = 0; i < count; ++i) {
      taken.append(to_tuple(records[i]));
    }
  }
  return nb::make_tuple(taken, dropped);
}

orActivityIdKind id_kind(bool user) {
  return user ? orActivityIdUser : orActivityIdExternal;
}

} // namespace

const char* name_of_kernel(nb::handle callable) {
  static const unsigned int* kinds = [] {
    const unsigned int* found = nullptr;
    check(orActivityGetState(&found));
    return found;
  }();
  if (__atomic_load_n(kinds, __ATOMIC_RELAXED) == 0) {
    return nullptr;
  }
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>; // never freed
  const nb::object name =
      nb::getattr(callable, "__qualname__", nb::str("kernel"));
  const std::lock_guard lock(mutex);
  return names->emplace(nb::str(name).c_str()).first->c_str();
}

void init_activity(nb::module_& m) {
  m.def(
      "enable_activity",
      [](const std::vector<std::string>& kinds, std::int64_t capacity) {
        unsigned int bits = 0;
        for (const std::string& kind : kinds) {
          const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
          if (found == kKinds.end()) {
            std::string text =
                "record: kinds has '" + kind + "', expected one of";
            for (const char* known : kKinds) {
              text.append(" ").append(known);
            }
            throw nb::value_error(text.c_str());
          }
          bits |= 1U << (found - kKinds.begin());
        }
        check(
            orActivityEnable(bits, checked_size("record: capacity", capacity)));
      },
      "kinds"_a,
      "capacity"_a);
  m.def("disable_activity", [] { check(orActivityDisable()); });
  m.def("take_activity", &take);
  m.def(
      "push_activity_id",
      [](std::uint64_t id, bool user) {
        check(orActivityPushId(id_kind(user), id));
      },
      "id"_a,
      "user"_a);
  m.def(
      "pop_activity_id",
      [](bool user) {
        std::uint64_t id = 0;
        check(orActivityPopId(id_kind(user), &id));
        return id;
      },
      "user"_a);
}

} // namespace openreg::python
