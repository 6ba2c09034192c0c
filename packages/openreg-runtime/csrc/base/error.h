// SPDX-License-Identifier: BSD-3-Clause
// Exceptions inside the library, and their conversion to error codes.
#pragma once

#include "base/api_observer.h"
#include "base/process.h"
#include "base/thread_local.h"

#include <openreg/openreg.h>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace openreg {

/// An error: a code for programs and a text for people.
struct Error {
  orError_t code = orSuccess;
  std::string message;
  // Identifies a failure that several streams and events share; 0 if not yet
  // shared.
  std::uint64_t number = 0;
};

/// Numbers an error that has no number.
void number_error(Error& error) noexcept;

/// Thrown inside the library; never crosses the C boundary.
class Failure : public std::exception {
 public:
  Failure(orError_t code, std::string message)
      : error_{code, std::move(message)} {}
  explicit Failure(Error error) : error_(std::move(error)) {}

  const char* what() const noexcept override {
    return error_.message.c_str();
  }
  const Error& error() const noexcept {
    return error_;
  }

 private:
  Error error_;
};

/// The name and the text of a code.
struct ErrorDescription {
  orError_t code;
  const char* name;
  const char* text;
};
/// Unknown codes have a description, too.
const ErrorDescription& describe(orError_t code) noexcept;

/// Sets the calling thread's last error and returns `code`. If memory is
/// exhausted, the text is empty.
orError_t set_last_error(
    const char* function,
    orError_t code,
    std::string_view text) noexcept;

/// The text of an exception, also if what() is empty.
inline const char* text_of(const std::exception& exception) noexcept {
  const char* text = exception.what();
  return text != nullptr ? text : "(no text)";
}

/// Sets the thread's text until its next failure and returns orErrorNotReady,
/// which is not a failure.
orError_t not_ready(const char* text) noexcept;

/// The calling thread's error state.
struct LastError {
  Error error;
  const char* not_ready = nullptr;
};

extern constinit OPENREG_THREAD_LOCAL orError_t t_last_code;
// Null until the thread has a message.
extern constinit OPENREG_THREAD_LOCAL std::string* t_last_message;
// The text of an orErrorNotReady result after the last failure.
extern constinit OPENREG_THREAD_LOCAL const char* t_not_ready;

/// Clears the thread's last error during the scope and restores it at the end.
class LastErrorScope {
 public:
  LastErrorScope() noexcept {
    if (thread_has_any()) [[unlikely]] {
      taken_ = take();
    }
  }
  LastErrorScope(const LastErrorScope&) = delete;
  LastErrorScope& operator=(const LastErrorScope&) = delete;
  ~LastErrorScope() {
    if (taken_ || thread_has_any()) [[unlikely]] {
      restore(taken_);
    }
  }

 private:
  static bool thread_has_any() noexcept {
    return t_last_message != nullptr || t_not_ready != nullptr ||
        t_last_code != orSuccess;
  }
  static LastError take() noexcept;
  // A reference, so that each launch inlines little code.
  static void restore(std::optional<LastError>& last) noexcept;

  std::optional<LastError> taken_;
};

[[noreturn]] void throw_forked();
/// Throws Failure in a child that was forked while devices were in use.
inline void check_not_forked() {
  if (process::in_bad_fork()) [[unlikely]] {
    throw_forked();
  }
}

/// Runs the body of one C function: exceptions become codes.
template <typename Body>
orError_t api_call(const char* function, Body&& body) noexcept {
  const ApiCallScope call(function);
  try {
    check_not_forked();
    body();
    return call.end(orSuccess);
  } catch (const Failure& failure) {
    const Error& error = failure.error();
    return call.end(set_last_error(function, error.code, error.message));
  } catch (const std::bad_alloc&) {
    return call.end(set_last_error(
        function, orErrorMemoryAllocation, "the host is out of memory"));
  } catch (const std::exception& exception) {
    return call.end(
        set_last_error(function, orErrorUnknown, text_of(exception)));
  } catch (...) {
    return call.end(
        set_last_error(function, orErrorUnknown, "unknown exception"));
  }
}

/// Throws orErrorInvalidValue for an argument that must not be null.
inline void check_not_null(const void* value, const char* argument) {
  if (value == nullptr) {
    throw Failure(
        orErrorInvalidValue, std::string(argument) + " must not be null");
  }
}

/// Throws orErrorInvalidValue for flags where none are known.
inline void check_no_flags(unsigned int flags) {
  if (flags != 0) {
    throw Failure(
        orErrorInvalidValue,
        "flags " + std::to_string(flags) + " are not known: expected 0");
  }
}

/// `pointer` as text, "0x7f00...".
std::string hex(const void* pointer);

} // namespace openreg
