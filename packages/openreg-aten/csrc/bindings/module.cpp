// SPDX-License-Identifier: BSD-3-Clause
// The Python module openreg_aten._C.
#include "base/keys.h"
#include "base/mechanism.h"
#include "bindings/bindings.h"
#include "call/compiled.h"
#include "call/dispatch_paths.h"
#include "device/device.h"
#include "device/exit.h"
#include "device/gil.h"
#include "device/settings.h"
#include "extension/backend_meta.h"
#include "extension/profiler_ranges.h"
#include "extension/reset.h"
#include "extension/tensor_impl.h"
#include "memory/allocator.h"
#include "memory/ipc.h"
#include "memory/storage_impl.h"
#include "message/altered_reply.h"
#include "message/executor.h"
#include "message/message.h"
#include "ops/cuda_limits.h"
#include "random/generator.h"
#include "stream/all_streams.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Storage.h>
#include <torch/csrc/autograd/python_variable.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include <gil_release.h>
#include <pybind11/pytypes.h>

namespace nb = nanobind;
using namespace openreg::aten;

namespace {

using Row =
    std::tuple<std::string, std::string, std::string, std::string, bool>;

std::vector<Row> list_mechanisms() {
  std::vector<Row> rows;
  for (const Mechanism& each : mechanisms()) {
    rows.emplace_back(
        each.name, each.summary, each.without, each.source, each.enabled);
  }
  return rows;
}

const at::Tensor& to_tensor(nb::handle value) {
  if (!THPVariable_Check(value.ptr())) {
    throw nb::type_error("expected a torch.Tensor");
  }
  return THPVariable_Unpack(value.ptr());
}

} // namespace

NB_MODULE(_C, m) {
  m.doc() = "PyTorch's C++ extension points, implemented for OpenReg devices.";
  translated(&register_settings);

  set_gil_functions(
      {[]() -> void* { return openreg::release_gil(); },
       [](void* state) {
         openreg::restore_gil(static_cast<PyThreadState*>(state));
       },
       [] {
         return Py_IsInitialized() &&
             PyGILState_GetThisThreadState() != nullptr;
       },
       [](void (*work)(void*), void* argument) {
         if (Py_IsInitialized()) {
           const nb::gil_scoped_acquire gil;
           const nb::error_scope pending;
           work(argument);
         }
       },
       [] {
         try {
           throw;
         } catch (python_error& error) {
           const nb::gil_scoped_acquire gil;
           if (PyErr_Occurred() != nullptr) {
             error.persist();
           }
           if (error.type != nullptr &&
               !PyErr_GivenExceptionMatches(error.type, PyExc_Exception)) {
             throw;
           }
         } catch (const pybind11::error_already_set& error) {
           // Kernels in Python throw this type.
           const nb::gil_scoped_acquire gil;
           if (!error.matches(PyExc_Exception)) {
             throw;
           }
         } catch (const std::exception&) {
           // Not a Python exception.
         }
       }});

  m.def(
      "enable_mechanisms",
      [](const std::set<std::string>& disabled) {
        translated([&] {
          set_executor(); // before a device process starts, because it loads
                          // the executor
          set_fetch_generator(&fetch_generator);
          enable_mechanisms(disabled);
          if (cuda_limits_setting()) {
            enable_cuda_limits();
          }
        });
      },
      nb::arg("disabled"));
  m.def("mechanisms", &list_mechanisms);
  m.def("count_paths", &count_paths, nb::arg("change"));
  m.def("path_counts", &path_counts);
  m.def("message_counts", &message_counts);
  m.def("execute_message", [](const nb::bytes& message) {
    const codec::ByteSpan bytes(
        static_cast<const std::uint8_t*>(message.data()), message.size());
    codec::Bytes reply;
    translated([&] { call_executor(bytes, reply); });
    return nb::bytes(reply.data(), reply.size());
  });
  m.def(
      "run_with_reply",
      [](const std::string& name,
         const std::string& overload,
         uint16_t key,
         const std::vector<nb::object>& tensors,
         const nb::callable& alter) {
        std::vector<at::Tensor> arguments;
        for (const nb::object& each : tensors) {
          arguments.push_back(to_tensor(each));
        }
        const auto alter_bytes = [&](codec::Bytes& reply) {
          const nb::gil_scoped_acquire gil;
          const auto altered =
              nb::cast<nb::bytes>(alter(nb::bytes(reply.data(), reply.size())));
          const auto* data = static_cast<const std::uint8_t*>(altered.data());
          reply.assign(data, data + altered.size());
        };
        std::vector<nb::object> made;
        for (at::Tensor& each :
             run_with_reply(name, overload, key, arguments, alter_bytes)) {
          made.push_back(nb::steal(THPVariable_Wrap(std::move(each))));
        }
        return made;
      });
  m.def("take_ranges", [] {
    std::vector<std::tuple<std::string, int, uint64_t>> rows;
    for (ProfilerRange& range : take_ranges()) {
      rows.emplace_back(std::move(range.name), range.depth, range.thread);
    }
    return rows;
  });

  m.def("device_type", &device_type_name);

  m.def("init", [] { translated(&initialize); });
  m.def("is_initialized", &is_initialized);
  m.def("is_in_bad_fork", &in_bad_fork);

  m.def(
      "drain_autograd",
      &drain_autograd,
      nb::call_guard<nb::gil_scoped_release>());

  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] {
    return translated([] { return static_cast<int>(current_device()); });
  });
  m.def(
      "set_device",
      [](int device) { translated([&] { set_device(to_index(device)); }); },
      nb::arg("device"));
  m.def(
      "exchange_device",
      [](int device) {
        return translated([&] {
          return static_cast<int>(exchange_device(to_index(device)));
        });
      },
      nb::arg("device"));
  m.def(
      "maybe_exchange_device",
      [](int device) {
        return translated([&] {
          return device < 0
              ? -1
              : static_cast<int>(exchange_device(to_index(device)));
        });
      },
      nb::arg("device"));
  m.def(
      "reset_device",
      [](int device) {
        translated([&] {
          const auto index = to_index(device);
          const nb::gil_scoped_release release;
          reset_device(index);
        });
      },
      nb::arg("device"));
  m.def(
      "synchronize",
      [](int device) {
        translated([&] {
          const auto index = to_index(device);
          const nb::gil_scoped_release release;
          synchronize_device(index);
        });
      },
      nb::arg("device"));
  m.def(
      "wait_for_all_streams",
      [](int device) {
        translated([&] {
          const auto index = to_index(device);
          const nb::gil_scoped_release release;
          wait_for_all_streams(index);
        });
      },
      nb::arg("device"));
  m.def(
      "default_generator",
      [](int device) {
        return translated([&] {
          return nb::steal<nb::object>(
              THPGenerator_Wrap(default_generator(to_index(device))));
        });
      },
      nb::arg("device"));

  m.attr("launch_compiled") = nb::capsule(
      reinterpret_cast<void*>(&launch_compiled),
      "openreg_aten._C.launch_compiled");

  define_memory(m);
  define_pools(m);
  define_streams(m);
  define_trace(m);

  m.def(
      "tensor_flags",
      [](nb::handle tensor) { return tensor_flags(to_tensor(tensor)); },
      nb::arg("tensor"),
      nb::sig("def tensor_flags(tensor: torch.Tensor) -> dict[str, bool]"));
  m.def(
      "set_tensor_flags",
      [](nb::handle tensor, TensorFlags flags) {
        set_tensor_flags(to_tensor(tensor), std::move(flags));
      },
      nb::arg("tensor"),
      nb::arg("flags"),
      nb::sig(
          "def set_tensor_flags(tensor: torch.Tensor, flags: dict[str, bool]) "
          "-> None"));

  m.def(
      "storage_name",
      [](nb::handle tensor) {
        return translated([&] { return storage_name(to_tensor(tensor)); });
      },
      nb::arg("tensor"),
      nb::sig("def storage_name(tensor: torch.Tensor) -> str"));
  m.def(
      "set_storage_name",
      [](nb::handle tensor, std::string name) {
        translated(
            [&] { set_storage_name(to_tensor(tensor), std::move(name)); });
      },
      nb::arg("tensor"),
      nb::arg("name"),
      nb::sig("def set_storage_name(tensor: torch.Tensor, name: str) -> None"));
  m.def(
      "tile_shape",
      [](nb::handle tensor) { return tile_shape(to_tensor(tensor)); },
      nb::arg("tensor"),
      nb::sig("def tile_shape(tensor: torch.Tensor) -> list[int] | None"));

  // PyTorch resizes storages of CUDA only in a CUDA build.
  m.def(
      "resize_storage",
      [](nb::handle storage, size_t size) {
        translated([&] {
          if (!THPStorage_Check(storage.ptr())) {
            throw nb::type_error("resize_storage: expected an UntypedStorage");
          }
          resize_storage(THPStorage_Unpack(storage.ptr()), size);
        });
      },
      nb::arg("storage"),
      nb::arg("size"),
      nb::sig(
          "def resize_storage(storage: torch.UntypedStorage, size: int) -> "
          "None"));
  m.def(
      "ipc_handle",
      [](nb::handle storage) {
        return translated([&] {
          if (!THPStorage_Check(storage.ptr())) {
            throw nb::type_error("ipc_handle: expected an UntypedStorage");
          }
          const auto [handle, offset] =
              ipc_handle(THPStorage_Unpack(storage.ptr()));
          return nb::make_tuple(
              nb::bytes(handle.data(), handle.size()), offset);
        });
      },
      nb::arg("storage"),
      nb::sig(
          "def ipc_handle(storage: torch.UntypedStorage) -> "
          "tuple[bytes, int]"));
  m.def(
      "open_ipc",
      [](nb::bytes handle, int device, size_t offset, size_t size, int guard) {
        return translated([&] {
          return nb::steal<nb::object>(THPStorage_Wrap(open_ipc(
              {handle.c_str(), handle.size()},
              to_index(device),
              offset,
              size,
              guard)));
        });
      },
      nb::arg("handle"),
      nb::arg("device"),
      nb::arg("offset"),
      nb::arg("size"),
      nb::arg("guard"),
      nb::sig(
          "def open_ipc(handle: bytes, device: int, offset: int, size: int, "
          "guard: int) -> torch.UntypedStorage"));
}
