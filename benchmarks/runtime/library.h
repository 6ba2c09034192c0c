// SPDX-License-Identifier: BSD-3-Clause
// A library with the C API, loaded by path, and owners of what it hands out.
#pragma once

#include <openreg/openreg.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/// Something that a row needs and that is not there; the row is left out.
class Missing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const char* function, orError_t error);

/// One function of a library; a call that fails ends the program.
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
  /// Throws std::runtime_error if there is no such library.
  Library(std::string name, const std::string& path);

  const std::string& name() const noexcept {
    return name_;
  }
  const std::string& path() const noexcept {
    return path_;
  }
  /// Null if the library has no such symbol.
  void* find(const char* symbol) const noexcept;
  /// Throws Missing.
  template <typename Function>
  Call<Function> get(const char* symbol) const {
    return {reinterpret_cast<Function*>(find_or_throw(symbol)), symbol};
  }

 private:
  void* find_or_throw(const char* symbol) const;

  std::string name_;
  std::string path_; // as the loader found it
  void* handle_;
};

// The function of a library that has the signature of openreg.h.
#define OPENREG_CALL(library, function) \
  (library).get<decltype(function)>(#function)

/// Launches an empty kernel. PyTorch's in-tree OpenReg exports no C function
/// for it but the one that the template in its header calls.
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

// Ended with their last owner.
using Stream = std::shared_ptr<orStream>;
using Event = std::shared_ptr<orEvent>;
using Block = std::shared_ptr<void>;

Stream make_stream(const Library& library);
Event make_event(const Library& library);
Block make_block(const Library& library, std::size_t size);
Block make_pinned(const Library& library, std::size_t size);

} // namespace bench
