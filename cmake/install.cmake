include(CMakePackageConfigHelpers)

# A build for one processor is of no use on others, which its user would find out by an error there.
if(EIN_NATIVE AND NOT EIN_INSTALL_NATIVE)
  install(CODE [[
    set(allowed "$ENV{EIN_INSTALL_NATIVE}")
    if(NOT allowed)
      message(FATAL_ERROR "this build of ein is for this machine's processor alone (EIN_NATIVE=ON), so it is not "
                          "installed. Configure with -D EIN_NATIVE=OFF or, if it is to run only "
                          "here, with -D EIN_INSTALL_NATIVE=ON.")
    endif()]] ALL_COMPONENTS)
endif()

# Who only runs programs needs `library`, where it is a shared one, and `command`.
set(ein_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ein)
install(TARGETS ein EXPORT ein-targets
        LIBRARY COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development)
install(DIRECTORY include/ein grammar/ein DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN *.hpp)
set(ein_components development)
if(ein_type STREQUAL SHARED_LIBRARY)
  list(APPEND ein_components library)
endif()
if(TARGET ein_mpi)
  install(TARGETS ein_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi OPTIONAL)
  list(APPEND ein_components mpi)
endif()
if(TARGET ein_command)
  install(TARGETS ein_command COMPONENT command)
  list(APPEND ein_components command)
endif()
# What those are owed whose works are compiled into the library and the command, where Debian's packages have it.
set(ein_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(ein_package_of_library libein${ein_soversion})
set(ein_package_of_development libein-dev)
set(ein_package_of_command ein)
set(ein_package_of_mpi libein-mpi)
foreach(component IN LISTS ein_components)
  install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${ein_package_of_${component}}
          COMPONENT ${component})
endforeach()

# A shared library has inside, or names itself, what it was linked with.
set(ein_needs_asmjit OFF)
set(ein_needs_zlib OFF)
if(NOT ein_type STREQUAL SHARED_LIBRARY)
  set(ein_needs_asmjit ${link_asmjit})
  set(ein_needs_zlib ${link_zlib})
endif()
install(EXPORT ein-targets NAMESPACE ein:: DESTINATION ${ein_package_dir} COMPONENT development)
configure_package_config_file(cmake/ein-config.cmake.in ein-config.cmake
                              INSTALL_DESTINATION ${ein_package_dir})
write_basic_package_version_file(ein-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ein-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ein-config-version.cmake
        DESTINATION ${ein_package_dir} COMPONENT development)

# The same for pkg-config. A static library names what else is to be linked.
set(ein_pc_libraries "")
if(NOT ein_type STREQUAL SHARED_LIBRARY)
  set(ein_pc_libraries " -pthread")
  foreach(library IN LISTS CMAKE_DL_LIBS)
    string(APPEND ein_pc_libraries " -l${library}")
  endforeach()
  if(ein_needs_asmjit)
    string(PREPEND ein_pc_libraries " -lasmjit")
  endif()
  if(ein_needs_zlib)
    string(PREPEND ein_pc_libraries " -lz")
  endif()
endif()
file(RELATIVE_PATH ein_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" ein_pc_prefix "${ein_pc_prefix}")
configure_file(cmake/ein.pc.in ein.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ein.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

include(cmake/packages.cmake)
