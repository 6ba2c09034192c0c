# SPDX-License-Identifier: BSD-3-Clause
# Builds libraries that run with glibc 2.28 and libstdc++ 8, with a newer compiler.
#
#   cmake -DCMAKE_PROJECT_INCLUDE=tools/manylinux/manylinux_2_28.cmake ...
#
# The compilers of the container manylinux_2_28 do this themselves. Everyday builds do
# without: their libraries run on the system that built them.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
set(folder "${PROJECT_BINARY_DIR}/manylinux_2_28")
set(link_libraries
  "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/link_libraries.py" "${CMAKE_CXX_COMPILER}")

execute_process(COMMAND ${link_libraries} "${folder}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -O2 -fPIC -Wall -Wextra
    -c "${CMAKE_CURRENT_LIST_DIR}/newer_symbols.cpp" -o "${folder}/newer_symbols.o"
  COMMAND_ERROR_IS_FATAL ANY
)
file(REMOVE "${folder}/libnewer_symbols.a")
execute_process(
  COMMAND "${CMAKE_AR}" qc "${folder}/libnewer_symbols.a" "${folder}/newer_symbols.o"
  COMMAND_ERROR_IS_FATAL ANY
)

string(APPEND CMAKE_CXX_FLAGS " -include \"${CMAKE_CURRENT_LIST_DIR}/older_features.h\"")
# The functions are linked before all libraries: libtorch exports some, and others not.
# Before glibc 2.34 threads and dlopen() were in separate libraries.
string(CONCAT options
  " -L\"${folder}\" -Wl,--exclude-libs,libnewer_symbols.a"
  " -Wl,--whole-archive,\"${folder}/libnewer_symbols.a\",--no-whole-archive"
  " -Wl,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--pop-state")
string(APPEND CMAKE_SHARED_LINKER_FLAGS "${options} -Wl,-z,defs")
# A module finds Python's symbols when it is loaded, so the linker cannot check it.
string(APPEND CMAKE_MODULE_LINKER_FLAGS "${options}")
list(JOIN link_libraries "\" \"" check)
list(APPEND CMAKE_CXX_CREATE_SHARED_MODULE "\"${check}\" --check <TARGET>")
