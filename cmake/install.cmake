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

set(ein_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ein)
install(TARGETS ein EXPORT ein-targets)
install(DIRECTORY include/ein grammar/ein DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
if(TARGET ein_mpi)
  install(TARGETS ein_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endif()
if(TARGET ein_command)
  install(TARGETS ein_command)
endif()
# What those are owed whose works are compiled into the library and the command.
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ein)

install(EXPORT ein-targets NAMESPACE ein:: DESTINATION ${ein_package_dir})
configure_package_config_file(cmake/ein-config.cmake.in ein-config.cmake
                              INSTALL_DESTINATION ${ein_package_dir})
write_basic_package_version_file(ein-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ein-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ein-config-version.cmake
        DESTINATION ${ein_package_dir})
