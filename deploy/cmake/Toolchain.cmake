# How everything is compiled: warnings, sanitizers, ccache and mold where they are there.

option(TT_WERROR "Treat warnings as errors" OFF)
set(TT_SANITIZE "" CACHE STRING "address,undefined or thread")
option(TT_FUZZ "Build the fuzz targets; needs clang and its libFuzzer" OFF)

add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-fno-math-errno;-fno-trapping-math>")
if(TT_WERROR)
  add_compile_options(-Werror)
endif()
if(TT_SANITIZE)
  add_compile_options(-fsanitize=${TT_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TT_SANITIZE})
endif()
if(TT_FUZZ)
  # Coverage for libFuzzer everywhere; a report of the undefined-behaviour sanitizer ends the run.
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
