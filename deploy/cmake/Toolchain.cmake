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
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TT_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TT_CCACHE})
endif()
find_program(TT_MOLD mold)
if(TT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
