// SPDX-License-Identifier: BSD-3-Clause
// A library with the C API, loaded by path, and owners of its objects.
#pragma once

#include <openreg/openreg.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/// A row needs a feature that is missing; the row is skipped.
class Missing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const char* function, orError_t error);

/// A function of a library. A failed call ends the program.
template <typename Function>
class Call;

template <typename... Parameters>
class Call<orError_t(Parameters...) noexcept> {
 public:
  using Function = orError_t(Parameters...) noexcept;

  Call(Function* function, const char* name)
      : function_(function), name_(name) {}

  void operator()(Parameters... parameters) const {
    const orError_t error = function_(parameters...);
    if (error != orSuccess) [[unlikely]] {
      fail(name_, error);
    }
  }

 private:
  Function* function_;
  const char* name_;
};

class Library {
 public:
  /// Throws std::runtime_error if the library cannot be loaded.
  Library(std::string name, const std::string& path);

  const std::string& name() const noexcept {
    return name_;
  }
  const std::string& path() const noexcept {
    return path_;
  }
  /// Returns null if the library lacks the symbol.
  void* find(const char* symbol) const noexcept;
  /// Throws Missing.
  template <typename Function>
  Call<Function> get(const char* symbol) const {
    return {reinterpret_cast<Function*>(find_or_throw(symbol)), symbol};
  }

 private:
  void* find_or_throw(const char* symbol) const;

  std::string name_;
  std::string path_; // as resolved by the loader
  void* handle_;
};

// A function of a library, with its signature from openreg.h.
#define OPENREG_CALL(library, function) \
  (library).get<decltype(function)>(#function)

/// Launches an empty kernel. PyTorch's in-tree OpenReg has no C function for
/// it, only the C++ function that the template in its header calls.
class Launcher {
 public:
  explicit Launcher(const Library& library);
  void operator()(orStream_t stream) const;

 private:
  using Launch = orError_t(orStream_t, orKernel_t, void*, orKernel_t);
  using AddTask = orError_t(orStream_t, std::function<void()>);

  Launch* launch_ = nullptr;
  AddTask* add_task_ = nullptr;
};

// The last owner destroys the object.
using Stream = std::shared_ptr<orStream>;
using Event = std::shared_ptr<orEvent>;
using Block = std::shared_ptr<void>;

Stream make_stream(const Library& library);
Event make_event(const Library& library);
Block make_block(const Library& library, std::size_t size);
Block make_pinned(const Library& library, std::size_t size);

} // namespace bench
