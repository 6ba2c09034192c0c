// SPDX-License-Identifier: BSD-3-Clause
// The vectored handler of exceptions.
#include "platform/fault.h"

#include "platform/windows/system.h"

namespace openreg::platform {
namespace {

void (*g_explain)(void* address) = nullptr;

LONG CALLBACK handle(EXCEPTION_POINTERS* exception) {
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  if (record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION &&
      record.NumberParameters >= 2) {
    g_explain(reinterpret_cast<void*>(record.ExceptionInformation[1]));
  }
  return EXCEPTION_CONTINUE_SEARCH;
}

} // namespace

void install_fault_handler(void (*explain)(void* address)) {
  g_explain = explain;
  AddVectoredExceptionHandler(/*First=*/1, handle);
}

void write_error(const char* text, std::size_t size) noexcept {
  DWORD written = 0;
  WriteFile(
      GetStdHandle(STD_ERROR_HANDLE),
      text,
      static_cast<DWORD>(size),
      &written,
      nullptr);
}

} // namespace openreg::platform
