include(CMakePackageConfigHelpers)

set(ein_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ein)
install(TARGETS ein EXPORT ein-targets)
install(DIRECTORY include/ein grammar/ein DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
if(TARGET ein_command)
  install(TARGETS ein_command)
endif()

install(EXPORT ein-targets NAMESPACE ein:: DESTINATION ${ein_package_dir})
configure_package_config_file(cmake/ein-config.cmake.in ein-config.cmake
                              INSTALL_DESTINATION ${ein_package_dir})
write_basic_package_version_file(ein-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ein-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ein-config-version.cmake
        DESTINATION ${ein_package_dir})
