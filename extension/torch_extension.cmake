# SPDX-License-Identifier: BSD-3-Clause
# The build settings of the packages that extend torch, included after project().
#
# Sets ORIGIN, the folder of a library in its rpath, and finds Python and torch:
#   Torch_VERSION         public version, such as 2.13.0
#   TORCH_INSTALL_PREFIX  folder of the package
#   Torch::torch          the C++ library
#   Torch::python         the same with its Python binding
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

# torch's own CMake package requires a CUDA toolkit if torch was built for CUDA, as the
# torch on PyPI is. A PrivateUse1 backend needs only the headers and four libraries.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c [=[
from importlib import metadata, util
print(metadata.version("torch").partition("+")[0])
print(util.find_spec("torch").submodule_search_locations[0], end="")
]=]
  OUTPUT_VARIABLE torch_found
  ERROR_QUIET
)
string(REPLACE "\n" ";" torch_found "${torch_found}")
list(LENGTH torch_found torch_found_length)
if(NOT torch_found_length EQUAL 2)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no torch: pip install torch==2.13.0")
endif()
list(GET torch_found 0 Torch_VERSION)
list(GET torch_found 1 TORCH_INSTALL_PREFIX)
if(Torch_VERSION VERSION_LESS 2.13)
  message(FATAL_ERROR "torch ${Torch_VERSION} is installed; required: 2.13")
endif()
foreach(name IN ITEMS torch torch_cpu c10 torch_python)
  find_library(Torch_${name}_LIBRARY ${name} REQUIRED
    PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH NO_CACHE)
endforeach()
add_library(Torch::torch INTERFACE IMPORTED)
target_include_directories(Torch::torch INTERFACE
  "${TORCH_INSTALL_PREFIX}/include"
  "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include"
)
target_link_libraries(Torch::torch INTERFACE
  "${Torch_torch_LIBRARY}" "${Torch_torch_cpu_LIBRARY}" "${Torch_c10_LIBRARY}"
)
add_library(Torch::python INTERFACE IMPORTED)
target_link_libraries(Torch::python INTERFACE
  Torch::torch "${Torch_torch_python_LIBRARY}"
)

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
