# Debian packages: teletensord with its units, libteletensor-dev, python3-teletensor. deploy/debian/build.sh writes the files
# in TT_DEBIAN and runs cpack. `make install` installs the components `daemon` and `client` only.
set(TT_DEBIAN ${PROJECT_BINARY_DIR}/debian)

# Besides the daemon: how systemd runs it.
macro(tt_service_file source)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/${source} ${ARGN} COMPONENT service EXCLUDE_FROM_ALL)
endmacro()
tt_service_file(teletensord.service DESTINATION lib/systemd/system)
tt_service_file(teletensord.socket DESTINATION lib/systemd/system)
tt_service_file(sysusers.conf DESTINATION lib/sysusers.d RENAME teletensor.conf)
tt_service_file(teletensord.conf DESTINATION /etc/teletensor)
tt_service_file(logrotate.conf DESTINATION /etc/logrotate.d RENAME teletensord)
install(FILES ${TT_DEBIAN}/teletensord.1.gz DESTINATION share/man/man1 COMPONENT service EXCLUDE_FROM_ALL)

# The Python package, for Debian's Python.
set(TT_DIST_PACKAGES lib/python3/dist-packages)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/teletensor DESTINATION ${TT_DIST_PACKAGES} COMPONENT python EXCLUDE_FROM_ALL
        PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${TT_GENERATED}/stubs/_C DESTINATION ${TT_DIST_PACKAGES}/teletensor COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${TT_GENERATED}/package/_declarations.py DESTINATION ${TT_DIST_PACKAGES}/teletensor COMPONENT python
        EXCLUDE_FROM_ALL)
install(TARGETS teletensor_python LIBRARY DESTINATION ${TT_DIST_PACKAGES}/teletensor COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/debian/teletensor DESTINATION bin COMPONENT python EXCLUDE_FROM_ALL)
install(FILES ${TT_DEBIAN}/teletensor.1.gz DESTINATION share/man/man1 COMPONENT python EXCLUDE_FROM_ALL)

# Licence, changelog, bill of materials and the licences of what is compiled in, per package.
foreach(pair service:teletensord client:libteletensor-dev python:python3-teletensor)
  string(REGEX MATCH "^([^:]+):(.+)$" ignored ${pair})
  install(DIRECTORY ${TT_DEBIAN}/${CMAKE_MATCH_2}/ DESTINATION share/doc/${CMAKE_MATCH_2} COMPONENT ${CMAKE_MATCH_1} EXCLUDE_FROM_ALL
          OPTIONAL)  # `cmake --install --component client` runs without these files
  install(FILES ${TT_DEBIAN}/overrides/${CMAKE_MATCH_2} DESTINATION share/lintian/overrides COMPONENT ${CMAKE_MATCH_1} EXCLUDE_FROM_ALL OPTIONAL)
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME teletensor)
set(CPACK_PACKAGE_VENDOR teletensor)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL daemon service client python)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_ENGINE_PACKAGE_NAME teletensord)
set(CPACK_DEBIAN_ENGINE_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ENGINE_DESCRIPTION "tensor engine for remote clients
teletensord owns a machine's CPUs and GPUs, and computes on them for clients
on this host or elsewhere, which use PyTorch's names.

This package has the engine, a systemd service with socket activation, and
its configuration.")
# The other variants of OpenBLAS have threads of their own (docs/packaging.md).
set(CPACK_DEBIAN_ENGINE_PACKAGE_DEPENDS "libopenblas0-openmp, systemd | systemd-sysusers")
set(CPACK_DEBIAN_ENGINE_PACKAGE_RECOMMENDS "python3-teletensor (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_ENGINE_PACKAGE_SUGGESTS "logrotate")
set(scripts ${PROJECT_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_ENGINE_PACKAGE_CONTROL_EXTRA ${scripts}/conffiles ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)

set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libteletensor-dev)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "C++ client of the teletensor engine
Static libraries, headers and the CMake package teletensor, with which C++
programs compute on an engine.")
# What teletensorConfig.cmake finds.
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "libabsl-dev, libgrpc++-dev, libprotobuf-dev, libssl-dev, libzstd-dev, zlib1g-dev")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-teletensor)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_DESCRIPTION "Python client of the teletensor engine
The package teletensor, which has PyTorch's names, and the program of the
same name, which shows and manages engines and launches programs on them.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3 (<< 3.12), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-rich")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "teletensord")

include(CPack)
cpack_add_component_group(engine)
cpack_add_component(daemon GROUP engine)
cpack_add_component(service GROUP engine)
cpack_add_component(client)
cpack_add_component(python)
