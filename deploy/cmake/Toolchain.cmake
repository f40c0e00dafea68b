# Compiler settings: warnings, sanitizers, ccache and mold if they are installed.

option(TT_WERROR "Treat warnings as errors" OFF)
set(TT_SANITIZE "" CACHE STRING "address,undefined or thread")
option(TT_FUZZ "Build the fuzz targets; needs clang and its libFuzzer" OFF)

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-fno-math-errno;-fno-trapping-math>")
if(TT_WERROR)
  add_compile_options(-Werror)
endif()
if(TT_SANITIZE)
  # Kernels convert numbers that an integer type cannot represent as PyTorch does: with the processor's result.
  add_compile_options(-fsanitize=${TT_SANITIZE} -fno-sanitize=float-cast-overflow -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # unlike g++, clang does not define these macros
    if(TT_SANITIZE MATCHES address)
      add_compile_definitions(__SANITIZE_ADDRESS__=1)
    elseif(TT_SANITIZE MATCHES thread)
      add_compile_definitions(__SANITIZE_THREAD__=1)
    endif()
  endif()
endif()
if(TT_FUZZ)
  # Instruments all code for libFuzzer; a report of the undefined-behaviour sanitizer ends the run.
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()

find_program(TT_CCACHE ccache)
if(TT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache keeps files that use a precompiled header only with this sloppiness; no file here uses __TIME__. CCACHE_DEPEND:
  # it learns the included files from the compiler instead of running the preprocessor first.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${TT_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TT_CCACHE})
endif()
find_program(TT_MOLD mold)
if(TT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Parsing external headers was half of the time of a build. Sanitizer builds do without, so that they also check that
# every file includes what it uses.
set(TT_PRECOMPILE_DEFAULT OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT TT_SANITIZE)
  set(TT_PRECOMPILE_DEFAULT ON)
endif()
option(TT_PRECOMPILE "Precompile the external headers that most files include" ${TT_PRECOMPILE_DEFAULT})
set(TT_COMMON_HEADERS
    <algorithm> <array> <atomic> <chrono> <cmath> <complex> <cstdint> <cstring> <deque> <functional> <limits> <map>
    <memory> <mutex> <optional> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/container/inlined_vector.h>
    <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/synchronization/mutex.h> <absl/types/span.h>)

# Compiles each function into a section of its own, so that the wheel's module contains only those that it calls.
function(tt_sections target)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
endfunction()

# Precompiles the common headers and those given for a target. `tt_precompile(target REUSE_FROM other)` uses those of a
# target that is compiled with the same options and definitions.
function(tt_precompile target)
  if(NOT TT_PRECOMPILE)
    return()
  endif()
  if("${ARGV1}" STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_compile_options(${target} PRIVATE -fpch-preprocess)
    target_precompile_headers(${target} PRIVATE ${TT_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()
