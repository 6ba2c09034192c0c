# SPDX-License-Identifier: BSD-3-Clause
# The build settings of the packages that extend torch, included after project().
#
# Sets ORIGIN, the folder of a library in its rpath, and finds Python and torch.
# openreg_extension() sets the options of a target and installs it. Its headers are in
# the folder of this file.
option(OPENREG_WERROR "Treat warnings as errors" OFF)
option(OPENREG_UNITY "Compile eight sources as one, which reads PyTorch's headers once" ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20) # required by the headers of torch 2.13
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF) # no path of this machine in the wheel
if(APPLE)
  set(ORIGIN "@loader_path")
else()
  set(ORIGIN "$ORIGIN")
endif()

string(REPLACE "_" "-" OPENREG_PACKAGE "${SKBUILD_PROJECT_NAME}")

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
find_package(Torch 2.13 REQUIRED)

# openreg_extension(TARGET DESTINATION FOLDER...): the target is installed in DESTINATION
# of the package, and finds libraries in these folders, which are relative to it.
function(openreg_extension target destination)
  list(TRANSFORM ARGN PREPEND "${ORIGIN}/")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wconversion -Wshadow
    $<$<BOOL:${OPENREG_WERROR}>:-Werror>
    # As much is inlined as without a unity build.
    $<$<CXX_COMPILER_ID:GNU>:--param=inline-unit-growth=200>
    # No path of this machine in __FILE__.
    "-fmacro-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=${OPENREG_PACKAGE}"
    "-fmacro-prefix-map=${CMAKE_CURRENT_BINARY_DIR}=${OPENREG_PACKAGE}"
    "-fmacro-prefix-map=${TORCH_INSTALL_PREFIX}/include=torch"
  )
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${OPENREG_UNITY} UNITY_BUILD_BATCH_SIZE 8
    INSTALL_RPATH "${ARGN}")
  if(TARGET nanobind-static)
    set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${destination})
endfunction()

# The torch of the build, which the package compares before it loads a library.
configure_file("${CMAKE_CURRENT_LIST_DIR}/_build.py.in" _build.py @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/_build.py" DESTINATION .)
