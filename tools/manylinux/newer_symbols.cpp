// SPDX-License-Identifier: BSD-3-Clause
// Functions that headers of newer system libraries call, for older libraries.
//
// They are linked into each library and hidden there. Each function ends up in
// an older function of libstdc++ or in the kernel.
#include <dlfcn.h>
#include <exception>
#include <new>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

struct stat; // as the kernel fills it, on 64-bit systems

extern "C" {

// glibc 2.32. Zero makes libstdc++ use atomic instructions always.
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

// glibc 2.33, before which they were inline functions.
int stat(const char* path, struct stat* status) {
  return static_cast<int>(
      syscall(SYS_newfstatat, -100 /* AT_FDCWD */, path, status, 0));
}

int lstat(const char* path, struct stat* status) {
  return static_cast<int>(syscall(
      SYS_newfstatat,
      -100 /* AT_FDCWD */,
      path,
      status,
      0x100 /* AT_SYMLINK_NOFOLLOW */));
}

int fstat(int file, struct stat* status) {
  return static_cast<int>(syscall(SYS_fstat, file, status));
}

} // extern "C"

namespace {

// Returns a function of libstdc++ itself. The linker may choose the inline copy
// of the same function in another library, which calls the functions that are
// defined below.
template <class Function>
Function* in_libstdcxx(const char* name) {
  void* library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

} // namespace

namespace std {

// GLIBCXX 3.4.29
void __throw_bad_array_new_length() {
  throw bad_array_new_length();
}

// CXXABI 1.3.13, by the copy constructor and the destructor of CXXABI 1.3.3.
// The copy keeps its reference, as it is not destroyed.
void __exception_ptr::exception_ptr::_M_addref() noexcept {
  static auto* const copy_exception = in_libstdcxx<void(void*, const void*)>(
      "_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
  alignas(exception_ptr) unsigned char copy[sizeof(exception_ptr)];
  copy_exception(copy, this);
}

void __exception_ptr::exception_ptr::_M_release() noexcept {
  static auto* const destroy_exception =
      in_libstdcxx<void(void*)>("_ZNSt15__exception_ptr13exception_ptrD1Ev");
  destroy_exception(this);
  _M_exception_object = nullptr;
}

// GLIBCXX 3.4.26 and 3.4.29
template ostringstream::basic_ostringstream();
template string stringbuf::str() const&;
template string stringbuf::str() &&;

} // namespace std
