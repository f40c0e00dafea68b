# At installation: copies what TT_MODULE and TT_PROGRAM load into the prefix's lib/, each under the name that it is
# asked for by, and the licences of the Debian packages that they are from into lib/licenses/. Not
# install(RUNTIME_DEPENDENCY_SET): its links would be whole copies in a wheel, which knows no links.

# The kernel's interface and glibc, which must be the machine's own.
set(TT_OF_THE_MACHINE "^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl))\\.so")

file(GET_RUNTIME_DEPENDENCIES
     MODULES ${TT_MODULE} EXECUTABLES ${TT_PROGRAM}
     PRE_EXCLUDE_REGEXES ${TT_OF_THE_MACHINE}
     RESOLVED_DEPENDENCIES_VAR libraries)
set(folder $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib)
file(MAKE_DIRECTORY ${folder}/licenses)
set(patterns)
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} content)
  file(COPY_FILE ${content} ${folder}/${name} ONLY_IF_DIFFERENT)
  # Not the whole path: dpkg knows the one of /lib and /usr/lib that the package was made with.
  string(REGEX MATCH "/[^/]+/[^/]+$" ending ${content})
  list(APPEND patterns "*${ending}")
endforeach()

# Lines `package:architecture: path`. Where there is no dpkg, or a library is from no package, whoever passes the
# wheel on has to add its licence.
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
  message(WARNING "Not every copied library's licence was found")
endif()
list(LENGTH libraries count)
message(STATUS "Copied ${count} libraries to ${folder}")
