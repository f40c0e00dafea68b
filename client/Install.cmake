# Installs the C++ client: `find_package(teletensor)` with the targets teletensor::teletensor (docs/cpp.md) and
# teletensor::client (the layer beneath), and `pkg-config teletensor`. Headers are installed under include/teletensor, so
# that include paths are the same as in this tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(TT_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR}/teletensor)
set(TT_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/teletensor)
set(TT_CLIENT_TARGETS schema proto inference_proto credentials formats client api)

foreach(target ${TT_CLIENT_TARGETS})
  set_target_properties(tt_${target} PROPERTIES EXPORT_NAME ${target} OUTPUT_NAME teletensor_${target})
  target_include_directories(tt_${target} PUBLIC $<INSTALL_INTERFACE:${TT_INCLUDE}>)
endforeach()
target_compile_features(tt_schema PUBLIC cxx_std_20)
set_target_properties(tt_api PROPERTIES EXPORT_NAME teletensor)
add_library(teletensor::teletensor ALIAS tt_api)

list(TRANSFORM TT_CLIENT_TARGETS PREPEND tt_ OUTPUT_VARIABLE targets)
install(TARGETS ${targets} EXPORT teletensor COMPONENT client ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT teletensor NAMESPACE teletensor:: DESTINATION ${TT_PACKAGE} COMPONENT client
        FILE teletensorTargets.cmake)
foreach(folder base client formats proto engine/schema)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${TT_INCLUDE}/${folder} COMPONENT client
          FILES_MATCHING PATTERN "*.h" PATTERN "include" EXCLUDE)
endforeach()
install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/teletensor ${TT_GENERATED}/teletensor ${TT_GENERATED}/proto/teletensor
        ${TT_GENERATED}/proto/inference DESTINATION ${TT_INCLUDE} COMPONENT client FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${TT_GENERATED}/client/api DESTINATION ${TT_INCLUDE}/client COMPONENT client FILES_MATCHING PATTERN "*.h")
install(FILES ${TT_GENERATED}/engine/schema/op_ids.h DESTINATION ${TT_INCLUDE}/engine/schema COMPONENT client)

# For device libraries (docs/devices.md), which need no more.
install(FILES ${PROJECT_SOURCE_DIR}/engine/device/teletensor_device.h DESTINATION ${TT_INCLUDE} COMPONENT client)

configure_package_config_file(teletensorConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/teletensorConfig.cmake
                              INSTALL_DESTINATION ${TT_PACKAGE})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/teletensorConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/teletensorConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/teletensorConfigVersion.cmake
        DESTINATION ${TT_PACKAGE} COMPONENT client)

# The prefix is that of the file, so that an installation can be moved.
file(RELATIVE_PATH TT_PREFIX_OF_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TT_PREFIX_OF_PKGCONFIG "${TT_PREFIX_OF_PKGCONFIG}")
configure_file(teletensor.pc.in ${CMAKE_CURRENT_BINARY_DIR}/teletensor.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/teletensor.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT client)
