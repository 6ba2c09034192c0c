# SPDX-License-Identifier: BSD-3-Clause
# Builds for macOS and Windows on Linux, with the compiler and the system
# libraries of zig (`pip install ziglang==0.16.0`; in 0.17, <sstream> hides FLT_MAX of
# macOS):
#
#   cmake -S packages/openreg-runtime -B build/windows -G Ninja
#     --toolchain "$PWD/tools/zig/toolchain.cmake" -DZIG_TARGET=x86_64-windows-gnu
#
# build.py also builds the tests.
set(ZIG_TARGET "x86_64-windows-gnu" CACHE STRING
  "x86_64-windows-gnu, aarch64-macos or x86_64-macos")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG_TARGET)
if(ZIG_TARGET MATCHES "^([a-z0-9_]+)-windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(ZIG_TARGET MATCHES "^([a-z0-9_]+)-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_OSX_SYSROOT "" CACHE STRING "zig has the system's headers")
else()
  message(FATAL_ERROR "ZIG_TARGET is '${ZIG_TARGET}'; "
    "accepted: x86_64-windows-gnu, aarch64-macos or x86_64-macos")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})

find_program(ZIG zig)
if(NOT ZIG)
  find_program(ZIG_PYTHON NAMES python3 python)
  execute_process(
    COMMAND ${ZIG_PYTHON} -c "import ziglang; print(ziglang.__path__[0].replace(chr(92), '/') + '/zig', end='')"
    OUTPUT_VARIABLE path
  )
  if(NOT path)
    message(FATAL_ERROR "zig is missing: pip install ziglang==0.16.0")
  endif()
  set(ZIG ${path} CACHE FILEPATH "The compiler" FORCE)
endif()
set(CMAKE_C_COMPILER ${ZIG} cc -target ${ZIG_TARGET})
set(CMAKE_CXX_COMPILER ${ZIG} c++ -target ${ZIG_TARGET})

set(CMAKE_CXX_SCAN_FOR_MODULES OFF) # zig has no clang-scan-deps

# CMake takes only one word for each of these programs.
foreach(program ar ranlib)
  string(TOUPPER ${program} variable)
  set(CMAKE_${variable} ${CMAKE_BINARY_DIR}/zig-${program})
  if(CMAKE_HOST_WIN32)
    string(APPEND CMAKE_${variable} .cmd)
    file(WRITE ${CMAKE_${variable}} "@\"${ZIG}\" ${program} %*\n")
  else()
    file(WRITE ${CMAKE_${variable}} "#!/bin/sh\nexec '${ZIG}' ${program} \"$@\"\n")
    file(CHMOD ${CMAKE_${variable}} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endif()
endforeach()

if(CMAKE_SYSTEM_NAME STREQUAL "Darwin")
  # CMake demands install_name_tool, which zig lacks, but runs it only to change the
  # library folders of an installed file. Programs get the final folders when they are
  # linked, so it never runs.
  set(CMAKE_INSTALL_NAME_TOOL "${CMAKE_COMMAND};-E;false")
  set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
  set(CMAKE_INSTALL_RPATH "@loader_path;@loader_path/..")
  set(CMAKE_PROJECT_INCLUDE "${CMAKE_CURRENT_LIST_DIR}/modules.cmake")
endif()

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
