# Compilers come and go: which one find_compiler takes.   cmake -D scratch= -P find_compiler_test.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/find_compiler.cmake)
file(REMOVE_RECURSE ${scratch})
set(ENV{PATH} ${scratch})
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)

function(install command version)
  file(CONFIGURE OUTPUT ${scratch}/${command} CONTENT "#!/bin/sh\necho ${version}\n")
  file(CHMOD ${scratch}/${command} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()
function(expect wanted)
  set(command "what a caller has found before")
  find_compiler(command clang++ 19)
  if(NOT command STREQUAL wanted)
    message(FATAL_ERROR "found '${command}' instead of '${wanted}'")
  endif()
endfunction()

expect("")
install(clang++ 14.0.6)
expect("")  # too old
install(clang++-19 19.1.7)
expect("${scratch}/clang++-19")  # installed beside the old one
install(clang++ 20.1.0)
expect("${scratch}/clang++-19")  # the version that the texts are of comes first
file(REMOVE ${scratch}/clang++-19)
expect("${scratch}/clang++")
file(REMOVE ${scratch}/clang++)
expect("")
