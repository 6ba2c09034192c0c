// SPDX-License-Identifier: BSD-3-Clause
// Loads libraries with the C API.
#include "library.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <utility>

namespace bench {
namespace {

// openreg::addTaskToStream(orStream*, std::function<void()>) with libstdc++.
constexpr const char* kAddTask =
    "_ZN7openreg15addTaskToStreamEP8orStreamSt8functionIFvvEE";

void empty_kernel(void*) {}

} // namespace

// Exits instead of throwing, because a destructor may call it.
void fail(const char* function, orError_t error) {
  std::fprintf(
      stderr, "%s returned error %d\n", function, static_cast<int>(error));
  std::exit(1);
}

Library::Library(std::string name, const std::string& path)
    : name_(std::move(name)), path_(path) {
  // RTLD_LOCAL: two libraries with the same symbols can be loaded.
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw std::runtime_error(dlerror());
  }
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) != nullptr) {
    path_ = resolved;
  }
}

void* Library::find(const char* symbol) const noexcept {
  return dlsym(handle_, symbol);
}

void* Library::find_or_throw(const char* symbol) const {
  void* found = find(symbol);
  if (found == nullptr) {
    throw Missing(name_ + " has no " + symbol);
  }
  return found;
}

Launcher::Launcher(const Library& library)
    : launch_(reinterpret_cast<Launch*>(library.find("orLaunchKernel"))),
      add_task_(reinterpret_cast<AddTask*>(library.find(kAddTask))) {
  if (launch_ == nullptr && add_task_ == nullptr) {
    throw Missing(
        library.name() +
        " has neither orLaunchKernel nor openreg::addTaskToStream");
  }
}

void Launcher::operator()(orStream_t stream) const {
  // std::function allocates no memory for a plain function pointer.
  const orError_t error = launch_ != nullptr
      ? launch_(stream, empty_kernel, nullptr, nullptr)
      : add_task_(stream, [] {});
  if (error != orSuccess) [[unlikely]] {
    fail("a launch", error);
  }
}

Stream make_stream(const Library& library) {
  orStream_t stream = nullptr;
  OPENREG_CALL(library, orStreamCreate)(&stream);
  return {stream, OPENREG_CALL(library, orStreamDestroy)};
}

Event make_event(const Library& library) {
  orEvent_t event = nullptr;
  OPENREG_CALL(library, orEventCreate)(&event);
  return {event, OPENREG_CALL(library, orEventDestroy)};
}

Block make_block(const Library& library, std::size_t size) {
  void* pointer = nullptr;
  OPENREG_CALL(library, orMalloc)(&pointer, size);
  return {pointer, OPENREG_CALL(library, orFree)};
}

Block make_pinned(const Library& library, std::size_t size) {
  void* pointer = nullptr;
  OPENREG_CALL(library, orMallocHost)(&pointer, size);
  return {pointer, OPENREG_CALL(library, orFreeHost)};
}

} // namespace bench
