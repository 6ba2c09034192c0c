// SPDX-License-Identifier: BSD-3-Clause
// Runs models compiled by AOTInductor.
#include "bindings/runner.h"

#include "launch/raised.h"

#include <ATen/DynamicLibrary.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>
#include <torch/csrc/utils/pybind.h>

#include <device_type.h>
#include <gil_release.h>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>

namespace openreg::inductor {
namespace {

using Base = torch::inductor::AOTIModelContainerRunner;

const c10::impl::DeviceGuardImplInterface& guard_impl() {
  return *c10::impl::getDeviceGuardImpl(device_type());
}

/// Returns the device of a name, with an index.
c10::Device find_device(const std::string& name) {
  const c10::Device device(name);
  return device.has_index() ? device : guard_impl().getDevice();
}

/// Rethrows a Python exception, such as a sanitizer's error, whose type the C
/// interface of a model has lost.
void raise_python_error(const std::exception_ptr& raised) {
  if (raised == nullptr) {
    return;
  }
  try {
    std::rethrow_exception(raised);
  } catch (python_error& error) {
    const pybind11::gil_scoped_acquire gil;
    error.restore();
    throw pybind11::error_already_set();
  } catch (const std::exception&) {
    // The model's exception has the same text.
  }
}

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

/// The library functions behind one function pointer of a runner, by model
/// container.
template <typename Function>
struct Originals {
  std::mutex mutex;
  std::unordered_map<AOTInductorModelContainerHandle, Function> functions;
};
template <auto member, typename Function>
Originals<Function>& originals() {
  static auto* value = new Originals<Function>; // models may end at exit
  return *value;
}

/// A loaded model.
class Runner final : public Base {
 public:
  Runner(
      const std::string& library,
      size_t models,
      c10::Device device,
      const std::string& folder,
      bool single_threaded)
      // The runtime in the library was compiled with CUDA's names
      // (cuda_names/cuda.h), including the device name.
      : Base(
            library,
            models,
            "cuda:" + std::to_string(device.index()),
            folder,
            single_threaded),
        device_(device),
        library_(std::make_unique<at::DynamicLibrary>(library.c_str())) {
    // PyTorch calls these functions with the GIL, and they are not virtual.
    release_gil_in<&Runner::extract_constants_map_func_>();
    release_gil_in<&Runner::update_user_managed_constant_buffer_func_>();
    release_gil_in<&Runner::update_constant_buffer_func_>();
    release_gil_in<&Runner::update_constant_buffer_from_cpu_func_>();
    release_gil_in<&Runner::update_inactive_constant_buffer_func_>();
    release_gil_in<&Runner::run_const_fold_func_>();
    release_gil_in<&Runner::swap_constant_buffer_func_>();
    release_gil_in<&Runner::free_inactive_constant_buffer_func_>();
    release_gil_in<&Runner::update_constants_from_blob_func_>();
    release_gil_in<&Runner::delete_func_>();
  }

  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Waits for the kernels, because their code will be unloaded. During
  /// interpreter shutdown the awaited work may need the interpreter, so the
  /// code stays loaded, and the constants stay because freeing them would wait,
  /// too.
  ~Runner() override {
    if (is_finalizing()) {
      static_cast<void>(library_.release());
      delete_func_ = [](AOTInductorModelContainerHandle) {
        return AOTI_RUNTIME_SUCCESS;
      };
      return;
    }
    try {
      guard_impl().synchronizeDevice(device_.index());
    } catch (const std::exception& error) {
      TORCH_WARN("releasing a model after a failure: ", error.what());
    }
  }

 protected:
  std::vector<at::Tensor> run_impl(
      std::vector<AtenTensorHandle>& inputs,
      void* stream) override {
    const GilRelease released;
    const c10::DeviceGuard guard(device_);
    void* current =
        guard_impl().getStreamNativeHandle(guard_impl().getStream(device_));
    TORCH_CHECK(
        stream == nullptr || stream == current,
        "a model runs on the current stream of ",
        device_,
        ": make the stream current instead of passing another one");
    const RaisedScope scope;
    try {
      return Base::run_impl(inputs, current);
    } catch (const std::exception&) {
      raise_python_error(scope.raised());
      throw;
    }
  }

 private:
  /// Wraps a library function so that it releases the GIL.
  template <auto member>
  void release_gil_in() {
    wrap<member>(this->*member);
  }
  template <auto member, typename... Arguments>
  void wrap(AOTIRuntimeError (
      *&function)(AOTInductorModelContainerHandle, Arguments...)) {
    using Function = std::remove_reference_t<decltype(function)>;
    if (function == nullptr) {
      return; // the library has none
    }
    {
      auto& all = originals<member, Function>();
      const std::lock_guard lock(all.mutex);
      all.functions.insert_or_assign(container_handle_, function);
    }
    function = [](AOTInductorModelContainerHandle container,
                  Arguments... arguments) {
      const GilRelease released;
      auto& all = originals<member, Function>();
      std::unique_lock lock(all.mutex);
      const Function original = all.functions.at(container);
      lock.unlock();
      return original(container, arguments...);
    };
  }

  c10::Device device_;
  std::unique_ptr<at::DynamicLibrary>
      library_; // in addition to PyTorch's handle
};

std::unique_ptr<Base> make_runner(
    const std::string& library,
    size_t models,
    const std::string& device,
    const std::string& folder,
    bool single_threaded) {
  const GilRelease released; // copies wait for the default stream
  const c10::DeviceGuard guard(find_device(device)); // constants go there
  return std::make_unique<Runner>(
      library, models, find_device(device), folder, single_threaded);
}

} // namespace

void register_runner() {
  const torch::inductor::RegisterAOTIModelRunner registered(
      c10::DeviceTypeName(device_type(), /*lower_case=*/true), &make_runner);
}

void register_eager_runner() {
  // PyTorch looks up the name in upper case here and passes it on as a device
  // name, which is invalid. The operator belongs to the current device.
  const torch::inductor::RegisterAOTIModelRunner registered(
      c10::DeviceTypeName(device_type()),
      [](const std::string& library,
         size_t models,
         const std::string& /*device*/,
         const std::string& folder,
         bool single_threaded) {
        return make_runner(
            library,
            models,
            c10::DeviceTypeName(device_type(), /*lower_case=*/true),
            folder,
            single_threaded);
      });
}

} // namespace openreg::inductor
