# Runs the generator over engine/ops when the declarations or the generator change.

find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
file(GLOB TT_KERNEL_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*/*.cc
     ${PROJECT_SOURCE_DIR}/kernels/*/*/*.cc ${PROJECT_SOURCE_DIR}/kernels/*/*/*.cu)
set(TT_GENERATED ${PROJECT_BINARY_DIR}/generated)
file(GLOB TT_DECLARATIONS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/engine/ops/*.yaml)
file(GLOB TT_GENERATOR CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/engine/codegen/*.py
     # Functions that expressions may call.
     ${PROJECT_SOURCE_DIR}/engine/composites/*.h ${PROJECT_SOURCE_DIR}/autograd/formulas/formulas*.h
     # Functions that bodies may call.
     ${PROJECT_SOURCE_DIR}/kernels/common/math/*.h ${PROJECT_SOURCE_DIR}/kernels/cpu/isa/*loops.h
     # Start of the type stubs.
     ${PROJECT_SOURCE_DIR}/python/bindings/_C.pyi)

# Runs the generator once at configure time, so that its files can be listed.
execute_process(
  COMMAND ${Python_EXECUTABLE} -m engine.codegen --ops engine/ops --kernels kernels --out ${TT_GENERATED}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB TT_GENERATED_FILES ${TT_GENERATED}/engine/*/* ${TT_GENERATED}/autograd/* ${TT_GENERATED}/kernels/cpu/*.* ${TT_GENERATED}/kernels/cuda/*
     ${TT_GENERATED}/python/* ${TT_GENERATED}/client/api/*)
# The files are byproducts, so that a build that runs the generator detects which files changed.
add_custom_command(
  OUTPUT ${TT_GENERATED}/stamp
  BYPRODUCTS ${TT_GENERATED_FILES}
  COMMAND ${Python_EXECUTABLE} -m engine.codegen --ops engine/ops --kernels kernels --out ${TT_GENERATED}
  COMMAND ${CMAKE_COMMAND} -E touch ${TT_GENERATED}/stamp
  DEPENDS ${TT_DECLARATIONS} ${TT_GENERATOR} ${TT_KERNEL_SOURCES}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  COMMENT "Generating from the operators' declarations")
add_custom_target(tt_generated DEPENDS ${TT_GENERATED}/stamp)

# Appends to the list `sources` the operators that every backend compiles, in the namespace of `backend`. The definition
# holds for the targets of the calling folder.
function(tt_backend_operators backend sources)
  file(GLOB operators CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/common/operators/*.cc)
  set_source_files_properties(${operators} PROPERTIES COMPILE_DEFINITIONS "TT_BACKEND=${backend}")
  set(${sources} ${${sources}} ${operators} PARENT_SCOPE)
endfunction()

# Defines a static library whose include folders are the root and the generated tree.
function(tt_static_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${TT_GENERATED}>)
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  add_dependencies(${name} tt_generated)
endfunction()

# Defines a GoogleTest binary and registers it with CTest. The code under test is in libraries, so the test itself is not
# optimised: compiling tests would be most of a build. OPTIMIZE is for tests that run templates of kernels. SLOW is for
# tests of more than 7 s, which the fast tier of deploy/run_tests.sh leaves out. WAITS is for tests that mostly wait, for
# timeouts and lost connections: run_tests.sh runs four of them at once, or two others. Tests without OPTIMIZE share the
# precompiled headers of tt_test_headers, which g++ uses only for files with the same options: the libraries of some tests
# require TT_TEST_OPTIONS, so that all get them.
set(TT_TEST_OPTIONS)
if(TT_PRECOMPILE)
  set(TT_TEST_OPTIONS -pthread -fopenmp)
endif()
function(tt_test name)
  cmake_parse_arguments(ARG "OPTIMIZE;SLOW;WAITS" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main GTest::gmock)
  if(ARG_OPTIMIZE)
    target_compile_options(${name} PRIVATE -O1)
  else()
    target_compile_options(${name} PRIVATE -O0 ${TT_TEST_OPTIONS})
    tt_precompile(${name} REUSE_FROM tt_test_headers)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  tt_label_slow(${name} "${ARG_SLOW}")
  if(ARG_WAITS)
    set_tests_properties(${name} PROPERTIES COST 100)  # begin first, beside others
  else()
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)  # of run_tests.sh's four
  endif()
endfunction()

# Labels a test as `slow` if `slow` is true.
function(tt_label_slow name slow)
  if(slow)
    set_tests_properties(${name} PROPERTIES LABELS slow COST 10)
  endif()
endfunction()

# Registers another run of a GoogleTest binary, with a report of its own (deploy/run_tests.sh).
function(tt_test_variant name)
  cmake_parse_arguments(ARG "SLOW" "" "COMMAND;ENVIRONMENT" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  tt_label_slow(${name} "${ARG_SLOW}")
  set_tests_properties(${name} PROPERTIES PROCESSORS 2 ENVIRONMENT
    "${ARG_ENVIRONMENT};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/gtest/${name}.xml")
endfunction()
