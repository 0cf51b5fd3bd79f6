# EIN_HARDEN: mistakes in memory end the program where they are made, and are harder to use for more than that. It is for the
# library and the `ein` command, but for inner loops over elements (src/cpu/level/) and decompositions, which read nothing
# that comes from outside but elements. docs/hardening.md says what each option does.
add_library(ein_hardening INTERFACE)
target_compile_options(ein_hardening INTERFACE
  # Only optimised code is fortified; a distribution may have set another level.
  "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>"
  -D_GLIBCXX_ASSERTIONS -fstack-protector-strong)
include(CheckCXXCompilerFlag)
foreach(flag -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "EIN_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    target_compile_options(ein_hardening INTERFACE ${flag})
  endif()
endforeach()
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  target_link_options(ein_hardening INTERFACE -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
endif()
if(EIN_HARDEN)
  if(EIN_SANITIZE)
    message(FATAL_ERROR "EIN_HARDEN and EIN_SANITIZE look for the same mistakes in different ways: take one of them")
  endif()
  target_link_libraries(ein_build_options INTERFACE ein_hardening)
  include(CheckPIESupported)
  check_pie_supported()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
