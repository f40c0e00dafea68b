# The component `wheel`: the contents of a wheel besides the Python files (pyproject.toml): _C, the daemon, and all
# their libraries except glibc's, so that the wheel needs no Debian packages. Its prefix is the package's folder;
# plain `cmake --install` excludes it.
#
# DT_RPATH, not DT_RUNPATH: it is also searched for the dependencies of the copied libraries, which therefore need no
# modification.

foreach(target teletensor_python teletensord)
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endforeach()
set_target_properties(teletensor_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
cmake_path(GET TT_OPENBLAS PARENT_PATH TT_OPENBLAS_FOLDER)  # needed by `make install`, which does not copy libraries
set_target_properties(teletensord PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${TT_OPENBLAS_FOLDER}")

install(TARGETS teletensor_python LIBRARY DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS teletensord RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
if(TARGET teletensor_cuda)
  install(TARGETS teletensor_cuda LIBRARY DESTINATION lib COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
install(DIRECTORY ${TT_GENERATED}/stubs/_C DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES ${TT_GENERATED}/package/_declarations.py DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL)
install(CODE "set(TT_MODULE \"$<TARGET_FILE:teletensor_python>\")
set(TT_PROGRAM \"$<TARGET_FILE:teletensord>\")
set(TT_PYTHON \"${Python_EXECUTABLE}\")
set(TT_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(TT_BUILD \"${PROJECT_BINARY_DIR}\")" COMPONENT wheel EXCLUDE_FROM_ALL)
install(SCRIPT ${PROJECT_SOURCE_DIR}/deploy/cmake/CopyLibraries.cmake COMPONENT wheel EXCLUDE_FROM_ALL)
