# The contents of the two wheels besides the Python files, as components that plain `cmake --install` excludes:
#
#   wheel         teletensor: _C and its libraries; prefix: the folder `teletensor`
#   wheel-engine  teletensor-engine: teletensord and its libraries; prefix: the folder `teletensor_engine`
#
# Neither needs Debian packages. DT_RPATH, not DT_RUNPATH: it is also searched for the dependencies of the copied
# libraries, which therefore need no modification.

foreach(target teletensor_python teletensord)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endforeach()
cmake_path(GET TT_OPENBLAS PARENT_PATH TT_OPENBLAS_FOLDER)  # needed by `make install`, which does not copy libraries
set_target_properties(teletensord PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${TT_OPENBLAS_FOLDER}")

# The module of the wheel: teletensor_python's objects, with the libraries of TT_ARCHIVES as far as the client uses them.
# Protocol Buffers and Abseil remain shared, since Debian's archives of them are not position-independent. The archives
# precede the shared libraries of the same names, which are therefore not needed. Only mold searches them in any order.
add_library(teletensor_wheel MODULE $<TARGET_OBJECTS:teletensor_python> only_client_plugins.cc)
set(TT_ARCHIVES)
foreach(name grpc++ grpc gpr upb address_sorting cares z ssl crypto zstd)
  find_library(TT_ARCHIVE_${name} NAMES lib${name}.a)
  mark_as_advanced(TT_ARCHIVE_${name})
  list(APPEND TT_ARCHIVES ${TT_ARCHIVE_${name}})
endforeach()
if(TT_MOLD AND NOT TT_SANITIZE AND NOT "${TT_ARCHIVES}" MATCHES "NOTFOUND")
  target_link_libraries(teletensor_wheel PRIVATE ${TT_ARCHIVES})
  target_link_options(teletensor_wheel PRIVATE LINKER:--gc-sections LINKER:--exclude-libs,ALL LINKER:--as-needed)
else()
  set(TT_ARCHIVES)
  message(STATUS "The wheel's module is linked with shared libraries: it needs mold and static libraries to be small")
endif()
target_link_libraries(teletensor_wheel PRIVATE tt_client tt_store pybind11::module)
target_link_options(teletensor_wheel PRIVATE LINKER:--disable-new-dtags)
set_target_properties(teletensor_wheel PROPERTIES
  PREFIX "" OUTPUT_NAME _C SUFFIX ${PYTHON_MODULE_EXTENSION} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel
  CXX_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN/lib")

# Copies a binary's libraries, and writes its bill of materials, at the installation of a component.
function(tt_install_libraries component target)
  cmake_parse_arguments(ARG "" "FROM_SYSTEM" "LINKED;PARTS" ${ARGN})
  install(CODE "set(TT_BINARY \"$<TARGET_FILE:${target}>\")
set(TT_FROM_SYSTEM \"${ARG_FROM_SYSTEM}\")
set(TT_LINKED \"${ARG_LINKED}\")
set(TT_PARTS \"${ARG_PARTS}\")
set(TT_PYTHON \"${Python_EXECUTABLE}\")
set(TT_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(TT_BUILD \"${PROJECT_BINARY_DIR}\")" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/deploy/cmake/CopyLibraries.cmake COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

install(TARGETS teletensor_wheel LIBRARY DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY ${TT_GENERATED}/stubs/_C DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES ${TT_GENERATED}/package/_declarations.py DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
# The C++ runtime is the machine's, as in other wheels: a process has one, and manylinux requires it. It permits zlib, too.
tt_install_libraries(wheel teletensor_wheel FROM_SYSTEM "|stdc\\\\+\\\\+|gcc_s|z" LINKED ${TT_ARCHIVES}
                     PARTS client/ distributed/store/ engine/CMakeFiles/tt_schema proto/ python/)

install(TARGETS teletensord RUNTIME DESTINATION bin COMPONENT wheel-engine EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION lib/licenses RENAME teletensor COMPONENT wheel-engine
        EXCLUDE_FROM_ALL)  # pyproject.toml cannot name a file above its folder
if(TARGET teletensor_cuda)
  install(TARGETS teletensor_cuda LIBRARY DESTINATION lib COMPONENT wheel-engine EXCLUDE_FROM_ALL)
endif()
tt_install_libraries(wheel-engine teletensord PARTS autograd/ distributed/ engine/ kernels/ proto/ server/)
