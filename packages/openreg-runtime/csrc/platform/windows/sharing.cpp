// SPDX-License-Identifier: BSD-3-Clause
// Sections that other processes open by name.
#include "platform/sharing.h"

#include "platform/windows/names.h"
#include "platform/windows/system.h"

namespace openreg::platform {

Result publish(const File& file, std::int32_t& number) {
  // Handles have at most 32 significant bits.
  number = static_cast<std::int32_t>(file.handle());
  return {};
}

Result open_published(
    ProcessId owner,
    std::int32_t number,
    const FileId& id,
    File& file) {
  const HANDLE opened = OpenFileMappingW(
      FILE_MAP_READ | FILE_MAP_WRITE, FALSE, name_of(id).c_str());
  if (opened == nullptr) {
    return GetLastError() == ERROR_FILE_NOT_FOUND ? Result() : Result::last();
  }
  File result(to_number(opened));
  result.set_id(id);
  // Other processes may have the file open after its owner has closed it.
  const HandleScope process(
      OpenProcess(PROCESS_DUP_HANDLE, FALSE, number_of(owner)));
  if (process.get() == nullptr) {
    return Result::last();
  }
  HANDLE duplicate = nullptr;
  if (DuplicateHandle(
          process.get(),
          to_handle(number),
          GetCurrentProcess(),
          &duplicate,
          0,
          FALSE,
          DUPLICATE_SAME_ACCESS) == 0) {
    return GetLastError() == ERROR_INVALID_HANDLE ? Result() : Result::last();
  }
  const HandleScope closed(duplicate);
  if (system_functions().compare_handles(duplicate, opened) != 0) {
    file = std::move(result);
  }
  return {};
}

Result forbid_inspection() {
  return Result(ERROR_NOT_SUPPORTED);
}

} // namespace openreg::platform
