# SPDX-License-Identifier: BSD-3-Clause
# The build settings of the packages that extend torch, included after project().
#
# Sets ORIGIN, the folder of a library in its rpath, and finds Python and torch.
# openreg_extension() sets the options of a target and installs it. Its headers are in
# the folder of this file.
option(OPENREG_WERROR "Treat warnings as errors" OFF)
option(OPENREG_UNITY "Compile eight sources as one, which reads PyTorch's headers once" ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_STANDARD 20) # required by torch's headers
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

# The supported versions of torch: the minor versions from the first to the last line.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/torch_versions.txt" torch_versions)
list(GET torch_versions 0 torch_first)
list(GET torch_versions -1 torch_last)
string(REGEX REPLACE "\\.[0-9]+$" ".999" torch_last "${torch_last}")
find_package(Torch ${torch_first}...${torch_last} REQUIRED)
# The folder of this build's libraries in the package, such as torch_2_14.
string(REGEX REPLACE "^([0-9]+)\\.([0-9]+).*" "torch_\\1_\\2" OPENREG_LIBRARIES
  "${Torch_VERSION}")

# openreg_extension(TARGET DESTINATION FOLDER...): the target is installed in DESTINATION
# of OPENREG_LIBRARIES, and finds libraries in these folders, which are relative to it.
function(openreg_extension target destination)
  list(TRANSFORM ARGN PREPEND "${ORIGIN}/")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}")
  if(MSVC)
    target_compile_options(${target} PRIVATE
      /W4 /permissive- /utf-8 /bigobj $<$<BOOL:${OPENREG_WERROR}>:/WX>)
  else()
    target_compile_options(${target} PRIVATE
      -Wall -Wextra -Wconversion -Wshadow
      -Wno-sign-conversion # a part of -Wconversion only for clang
      $<$<BOOL:${OPENREG_WERROR}>:-Werror>
      # As much is inlined as without a unity build.
      $<$<CXX_COMPILER_ID:GNU>:--param=inline-unit-growth=200>
      # No path of this machine in __FILE__.
      "-fmacro-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=${OPENREG_PACKAGE}"
      "-fmacro-prefix-map=${CMAKE_CURRENT_BINARY_DIR}=${OPENREG_PACKAGE}"
      "-fmacro-prefix-map=${TORCH_INSTALL_PREFIX}/include=torch"
    )
  endif()
  set_target_properties(${target} PROPERTIES
    UNITY_BUILD ${OPENREG_UNITY} UNITY_BUILD_BATCH_SIZE 8
    INSTALL_RPATH "${ARGN}")
  if(TARGET nanobind-static)
    set_target_properties(nanobind-static PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  install(TARGETS ${target}
    ARCHIVE DESTINATION "${OPENREG_LIBRARIES}/${destination}"
    LIBRARY DESTINATION "${OPENREG_LIBRARIES}/${destination}"
    RUNTIME DESTINATION "${OPENREG_LIBRARIES}/${destination}")
endfunction()

install(FILES "${CMAKE_CURRENT_LIST_DIR}/_libraries.py" DESTINATION .)

# openreg_generate(SCRIPT ARGUMENT OUTPUT...): a program of the package writes the output
# files at build time, from the list of operators in torch's wheel.
function(openreg_generate script argument)
  set(list "${TORCH_INSTALL_PREFIX}/../torchgen/packaged/ATen/native/native_functions.yaml")
  # A link, because pip's isolated builds remove the folder itself from sys.path.
  set(packages "${CMAKE_CURRENT_BINARY_DIR}/packages")
  file(CREATE_LINK "${TORCH_INSTALL_PREFIX}/.." "${packages}" SYMBOLIC)
  add_custom_command(
    OUTPUT ${ARGN}
    COMMAND "${CMAKE_COMMAND}" -E env
      --modify "PYTHONPATH=path_list_append:${packages}"
      "${Python_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/${script}" "${argument}"
    DEPENDS "${script}" "${list}"
    VERBATIM
  )
endfunction()
