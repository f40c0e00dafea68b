# Installs the C++ client: `find_package(teletensor)`, target teletensor::client. Headers are installed under
# include/teletensor, so that include paths are the same as in this tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(TT_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR}/teletensor)
set(TT_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/teletensor)

foreach(target schema proto inference_proto credentials client)
  set_target_properties(tt_${target} PROPERTIES EXPORT_NAME ${target} OUTPUT_NAME teletensor_${target})
  target_include_directories(tt_${target} PUBLIC $<INSTALL_INTERFACE:${TT_INCLUDE}>)
endforeach()
target_compile_features(tt_schema PUBLIC cxx_std_20)

install(TARGETS tt_schema tt_proto tt_inference_proto tt_credentials tt_client EXPORT teletensor COMPONENT client ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT teletensor NAMESPACE teletensor:: DESTINATION ${TT_PACKAGE} COMPONENT client
        FILE teletensorTargets.cmake)
foreach(folder base client proto engine/schema)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${TT_INCLUDE}/${folder} COMPONENT client
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY ${TT_GENERATED}/teletensor ${TT_GENERATED}/proto/teletensor ${TT_GENERATED}/proto/inference DESTINATION ${TT_INCLUDE}
        COMPONENT client FILES_MATCHING PATTERN "*.h")
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
