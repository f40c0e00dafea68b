# At installation: copies what TT_MODULE and TT_PROGRAM load into the prefix's lib/, each under the name that it is
# asked for by. Not install(RUNTIME_DEPENDENCY_SET): its links would be whole copies in a wheel, which knows no links.

# The kernel's interface and glibc, which must be the machine's own.
set(TT_OF_THE_MACHINE "^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl))\\.so")

file(GET_RUNTIME_DEPENDENCIES
     MODULES ${TT_MODULE} EXECUTABLES ${TT_PROGRAM}
     PRE_EXCLUDE_REGEXES ${TT_OF_THE_MACHINE}
     RESOLVED_DEPENDENCIES_VAR libraries)
set(folder $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib)
file(MAKE_DIRECTORY ${folder})
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} content)
  file(COPY_FILE ${content} ${folder}/${name} ONLY_IF_DIFFERENT)
endforeach()
list(LENGTH libraries count)
message(STATUS "Copied ${count} libraries to ${folder}")
