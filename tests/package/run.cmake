# Installs the build that is configured in `build`, then builds and runs programs outside of the tree with it, in both
# ways there are: find_package and add_subdirectory. With `whole` the second compiles all of ein, as a shared library.
#   cmake -D build= -D scratch= -D config= -D native= -D generator= -D compiler= -D launcher= -D nm= -D readelf=
#         -D strip= -D whole= -P run.cmake
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(configure_consumer folder)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${folder} -G ${generator}
      -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler} ${ARGN})
  # No flag of ours may reach somebody else's sources.
  file(READ ${folder}/compile_commands.json commands)
  string(JSON count LENGTH ${commands})
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON file GET ${commands} ${i} file)
    string(JSON command GET ${commands} ${i} command)
    # The project's own are -W..., and -fPIC for its shared libraries.
    string(REGEX REPLACE " -(Werror|Wall|Wextra|Wshadow|Wconversion|Wsign-conversion|fPIC)" "" command "${command}")
    if(file MATCHES "package/[a-z]+\\.cpp$" AND command MATCHES " (-W|-march=|-f)[^ ]*")
      message(FATAL_ERROR "ein made its consumer compile with${CMAKE_MATCH_0}")
    endif()
  endforeach()
endfunction()

function(require_output wanted)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  message(STATUS "${output}")
  if(NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "exits with ${status} and does not say '${wanted}'")
  endif()
endfunction()

# A shared library that the system loads as it is, without writing to its code.
function(require_position_independent library)
  execute_process(COMMAND ${readelf} --dynamic ${library} OUTPUT_VARIABLE entries COMMAND_ERROR_IS_FATAL ANY)
  if(entries MATCHES "TEXTREL")
    message(FATAL_ERROR "${library} has relocations in its code")
  endif()
endfunction()

function(run_programs folder)
  run(${CMAKE_COMMAND} --build ${folder} --config ${config})
  require_output("ein 0.1 works" ${folder}/consumer)
  require_output("ein works with Eigen" ${folder}/matrix)
  require_output("1, 5, 9, 13, 17, 21" ${folder}/rearranging)
  foreach(plugin libplugin libanother_plugin)
    require_position_independent(${folder}/${plugin}.so)
  endforeach()
  require_output("opened, used and closed twice" ${folder}/loader ${folder}/libplugin.so ${folder}/libanother_plugin.so)
endfunction()

file(REMOVE_RECURSE ${scratch})
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests)
cmake_path(GET tests PARENT_PATH source)

if(whole)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${launcher}")
  configure_consumer(${scratch}/added -D EIN_SOURCE=${source} -D BUILD_SHARED_LIBS=ON)
  run_programs(${scratch}/added)
  return()
endif()

# A build for this processor alone is not installed by accident.
if(native)
  set(ENV{EIN_INSTALL_NATIVE} "")
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${scratch}/refused
                  ERROR_VARIABLE error OUTPUT_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 OR NOT error MATCHES "EIN_INSTALL_NATIVE")
    message(FATAL_ERROR "a native build is installed without EIN_INSTALL_NATIVE: ${error}")
  endif()
  set(ENV{EIN_INSTALL_NATIVE} ON)
endif()
run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${scratch}/prefix)
configure_consumer(${scratch}/installed -D CMAKE_PREFIX_PATH=${scratch}/prefix)
run_programs(${scratch}/installed)

# What docs/compile_time.md says of a small program that GCC 12 compiles, with a little room; with a fifth more where
# another compiler did.
if(config STREQUAL "Release")
  execute_process(COMMAND ${compiler} -E -dM -x c++ /dev/null OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  set(most 12900000)
  if(macros MATCHES "__GNUC__ 12\n")
    set(most 10900000)
  endif()
  run(${strip} -o ${scratch}/stripped ${scratch}/installed/rearranging)
  file(SIZE ${scratch}/stripped size)
  message(STATUS "a program that only rearranges has ${size} bytes")
  if(size GREATER most)
    message(FATAL_ERROR "a program that only rearranges has ${size} bytes, ${most} at most are wanted")
  endif()
endif()

# What is compiled for an instruction set stays in the library, and runs only where there is that one.
file(GLOB_RECURSE archive ${scratch}/prefix/libein.a)
run(${CMAKE_COMMAND} -D archive=${archive} -D nm=${nm} -P ${CMAKE_CURRENT_LIST_DIR}/symbols.cmake)
find_program(qemu qemu-x86_64)
file(READ /proc/cpuinfo processor LIMIT 10000)
if(qemu AND processor MATCHES "avx512f")
  foreach(cpu Nehalem Haswell)
    set(wanted "ein 0.1 works")
    if(native)
      set(wanted "error: this processor lacks .*avx512f")
    endif()
    require_output("${wanted}" ${qemu} -cpu ${cpu} ${scratch}/installed/consumer)
  endforeach()
endif()

# Added as a subdirectory: headers and programs alone are compiled, which needs none of the library.
configure_consumer(${scratch}/added -D EIN_SOURCE=${source})
file(READ ${scratch}/added/compile_commands.json commands)
string(JSON count LENGTH ${commands})
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON file GET ${commands} ${i} file)
  if(file MATCHES "/(headers|package/main)\\.cpp$")
    string(JSON command GET ${commands} ${i} command)
    string(JSON folder GET ${commands} ${i} directory)
    run(sh -c "${command} -fsyntax-only" WORKING_DIRECTORY ${folder})
  endif()
endforeach()
