# Runs at installation: copies the libraries that TT_BINARY loads into the prefix's lib/, each under its SONAME, and the
# licences of their Debian packages, and of those that are compiled or linked in, into lib/licenses/, with the texts to
# which they refer. Writes the bill of materials, lib/sbom.cdx.json, with TT_PYTHON, from the sources TT_SOURCE, the
# folders TT_PARTS of the build folder TT_BUILD, and the static libraries TT_LINKED. Does not use
# install(RUNTIME_DEPENDENCY_SET), whose symbolic links become full copies in a wheel.

# Libraries that the machine must provide: the kernel's interface, glibc, and those that TT_FROM_SYSTEM adds.
set(TT_SYSTEM_LIBRARIES "^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl${TT_FROM_SYSTEM}))\\.so")

file(GET_RUNTIME_DEPENDENCIES
     EXECUTABLES ${TT_BINARY}
     PRE_EXCLUDE_REGEXES ${TT_SYSTEM_LIBRARIES}
     RESOLVED_DEPENDENCIES_VAR libraries)
set(folder $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib)
file(MAKE_DIRECTORY ${folder}/licenses)
set(patterns)
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} content)
  file(COPY_FILE ${content} ${folder}/${name} ONLY_IF_DIFFERENT)
  # Compares path endings, since dpkg records either /lib or /usr/lib, depending on how the package was built.
  string(REGEX MATCH "/[^/]+/[^/]+$" ending ${content})
  list(APPEND patterns "*${ending}")
endforeach()

# Output lines: `package:architecture: path`. Without dpkg, or for a library that is not from a package, the distributor
# of the wheel must add the licence.
execute_process(COMMAND dpkg-query --search ${patterns} OUTPUT_VARIABLE owners ERROR_QUIET RESULT_VARIABLE failed)
string(REGEX MATCHALL "(^|\n)[a-z0-9.+-]+" packages "${owners}")
list(TRANSFORM packages STRIP)
list(REMOVE_DUPLICATES packages)
foreach(package ${packages})
  if(EXISTS /usr/share/doc/${package}/copyright)
    file(COPY_FILE /usr/share/doc/${package}/copyright ${folder}/licenses/${package} ONLY_IF_DIFFERENT)
  endif()
endforeach()
if(failed)
  message(WARNING "The licences of some copied libraries were not found")
endif()
list(LENGTH libraries count)
message(STATUS "Copied ${count} libraries to ${folder}")

set(options)
foreach(archive ${TT_LINKED})
  list(APPEND options --linked ${archive})
endforeach()
foreach(part ${TT_PARTS})
  list(APPEND options --part ${part})
endforeach()
execute_process(COMMAND ${TT_PYTHON} ${TT_SOURCE}/deploy/sbom.py --compiled ${TT_BUILD}
                        --licenses ${folder}/licenses --license-texts ${options} --out ${folder}/sbom.cdx.json ${TT_BINARY} RESULT_VARIABLE failed)
if(failed)
  message(WARNING "The bill of materials was not written; it needs dpkg and ninja")
endif()
