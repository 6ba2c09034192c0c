// SPDX-License-Identifier: BSD-3-Clause
// The functions of openreg_aten._C for memory pools and for the cache.
#include "base/keys.h"
#include "bindings/bindings.h"
#include "memory/allocator.h"
#include "memory/memory_history.h"

#include <c10/core/StorageImpl.h>
#include <torch/csrc/Exceptions.h>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace openreg::aten {
namespace {

using Pool = std::pair<uint64_t, uint64_t>;

c10::MempoolId_t to_pool(const Pool& pool) {
  return {pool.first, pool.second};
}

/// Returns the storage at the address that UntypedStorage._cdata shows.
c10::StorageImpl& to_storage(uintptr_t address) {
  return *reinterpret_cast<c10::StorageImpl*>(address);
}

c10::DeleterFnPtr deleter() {
  return device_allocator().raw_deleter();
}

c10::DataPtr owned(c10::DeviceIndex device, void* pointer) {
  return {pointer, pointer, deleter(), c10::Device(kDeviceType, device)};
}

c10::DataPtr unowned(const c10::DataPtr& data) {
  return {data.get(), data.device()};
}

/// Restores the blocks of a pool. A stale storage no longer owns its block if
/// that was freed. A live storage becomes the owner of the block at its
/// address.
void restore(
    c10::DeviceIndex device,
    const PoolState& state,
    const std::vector<uintptr_t>& stale,
    const std::vector<uintptr_t>& live) {
  std::unordered_map<void*, c10::StorageImpl*> owners;
  for (const uintptr_t address : live) {
    c10::StorageImpl& storage = to_storage(address);
    owners.emplace(storage.mutable_data(), &storage);
  }
  const auto before = pool_state(device, state.pool).live();
  const auto live_again = state.live();
  const std::set<void*> kept(live_again.begin(), live_again.end());
  const auto freed =
      std::count_if(before.begin(), before.end(), [&kept](void* pointer) {
        return !kept.contains(pointer);
      });
  TORCH_CHECK(
      static_cast<ptrdiff_t>(stale.size()) >= freed,
      "Any stale tensors which are being manually freed must be passed to set "
      "checkpoint");
  const RestoredPool restored = restore_pool(device, state);
  const std::set<void*> all_freed(restored.freed.begin(), restored.freed.end());
  for (const uintptr_t address : stale) {
    c10::StorageImpl& storage = to_storage(address);
    if (all_freed.contains(storage.mutable_data())) {
      c10::DataPtr old = storage.set_data_ptr(unowned(storage.data_ptr()));
      old.release_context();
    }
  }
  for (void* pointer : restored.allocated) {
    const auto owner = owners.find(pointer);
    if (owner != owners.end()) {
      owner->second->set_data_ptr_noswap(owned(device, pointer));
    }
  }
}

/// Calls a Python function, whose exceptions the PyTorch bindings raise again.
void call_observer(
    PyObject* observer,
    c10::DeviceIndex device,
    size_t size,
    size_t usable,
    size_t free) {
  if (!Py_IsInitialized()) {
    return;
  }
  const nb::gil_scoped_acquire gil;
  try {
    const auto function = nb::borrow<nb::callable>(observer);
    function(static_cast<int>(device), size, usable, free);
  } catch (nb::python_error& error) {
    error.restore();
    python_error raised;
    raised.persist();
    throw raised;
  }
}

} // namespace

void define_pools(nb::module_& m) {
  nb::class_<PoolState>(m, "PoolState");
  m.def(
      "retain_pool",
      [](int device, const Pool& pool) {
        translated([&] { retain_pool(to_index(device), to_pool(pool)); });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "release_pool",
      [](int device, const Pool& pool) {
        translated([&] { release_pool(to_index(device), to_pool(pool)); });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "empty_pool",
      [](const Pool& pool) {
        translated([&] { device_allocator().emptyCache(to_pool(pool)); });
      },
      nb::arg("pool"));
  m.def(
      "pool_uses",
      [](int device, const Pool& pool) {
        return translated(
            [&] { return pool_uses(to_index(device), to_pool(pool)); });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "set_pool_rules",
      [](int device, const Pool& pool, bool whole, bool last_resort) {
        translated([&] {
          set_pool_rules(to_index(device), to_pool(pool), {whole, last_resort});
        });
      },
      nb::arg("device"),
      nb::arg("pool"),
      nb::arg("whole"),
      nb::arg("last_resort"));
  m.def(
      "begin_allocate_to_pool",
      [](int device, const Pool& pool, const std::string& routed) {
        translated([&] {
          begin_allocate_to_pool(
              to_index(device),
              to_pool(pool),
              routed == "thread"       ? Routed::kThread
                  : routed == "stream" ? Routed::kStream
                                       : Routed::kAll);
        });
      },
      nb::arg("device"),
      nb::arg("pool"),
      nb::arg("routed"));
  m.def(
      "end_allocate_to_pool",
      [](int device, const Pool& pool) {
        translated(
            [&] { end_allocate_to_pool(to_index(device), to_pool(pool)); });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "pool_state",
      [](int device, const Pool& pool) {
        return translated(
            [&] { return pool_state(to_index(device), to_pool(pool)); });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "restore_pool",
      [](int device,
         const PoolState& state,
         const std::vector<uintptr_t>& stale,
         const std::vector<uintptr_t>& live) {
        translated([&] { restore(to_index(device), state, stale, live); });
      },
      nb::arg("device"),
      nb::arg("state"),
      nb::arg("stale"),
      nb::arg("live"));
  m.def(
      "live_blocks",
      [](int device, const Pool& pool) {
        return translated([&] {
          std::set<uintptr_t> addresses;
          for (void* pointer :
               pool_state(to_index(device), to_pool(pool)).live()) {
            addresses.insert(reinterpret_cast<uintptr_t>(pointer));
          }
          return addresses;
        });
      },
      nb::arg("device"),
      nb::arg("pool"));
  m.def(
      "free_block",
      [](uintptr_t address) {
        return translated([&] {
          auto* pointer = reinterpret_cast<void*>(address);
          const bool exists = find_block(pointer).has_value();
          if (exists) {
            deleter()(pointer);
          }
          return exists;
        });
      },
      nb::arg("address"));
  m.def("set_caching", &set_caching, nb::arg("caches"));
  m.def("is_caching", &is_caching);
  m.def(
      "observe_out_of_memory",
      [](nb::callable observer) {
        PyObject* kept = observer.release().ptr(); // never removed
        observe_out_of_memory([kept](
                                  c10::DeviceIndex device,
                                  size_t size,
                                  size_t usable,
                                  size_t free) {
          call_observer(kept, device, size, usable, free);
        });
      },
      nb::arg("observer"),
      nb::sig(
          "def observe_out_of_memory(observer: Callable[[int, int, int, int], "
          "object]) -> None"));
  m.def("set_user_metadata", &set_user_metadata, nb::arg("text"));
  m.def("user_metadata", [] { return user_metadata(); });
  m.def(
      "owns_block",
      [](uintptr_t storage) {
        return to_storage(storage).data_ptr().get_deleter() == deleter();
      },
      nb::arg("storage"));
  m.def(
      "disown_block",
      [](uintptr_t address) {
        translated([&] {
          c10::StorageImpl& storage = to_storage(address);
          storage.set_data_ptr_noswap(unowned(storage.data_ptr()));
        });
      },
      nb::arg("storage"));
}

} // namespace openreg::aten
