# Installs the build that is configured in `build`, then builds and runs a program outside of the
# tree with it, in both ways there are: find_package and add_subdirectory.
#   cmake -D build= -D scratch= -D config= -D native= -D generator= -D compiler= -D launcher=
#         -P run.cmake
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
    if(file MATCHES "package/main\\.cpp$" AND command MATCHES " (-W|-march=|-f)[^ ]*")
      message(FATAL_ERROR "ein made its consumer compile with${CMAKE_MATCH_0}")
    endif()
  endforeach()
endfunction()

file(REMOVE_RECURSE ${scratch})

run(${CMAKE_COMMAND} --install ${build} --config ${config} --prefix ${scratch}/prefix)
configure_consumer(${scratch}/installed -D CMAKE_PREFIX_PATH=${scratch}/prefix)
run(${CMAKE_COMMAND} --build ${scratch}/installed --config ${config})
run(${scratch}/installed/consumer)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tests)
cmake_path(GET tests PARENT_PATH source)
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${launcher}")
configure_consumer(${scratch}/added -D EIN_SOURCE=${source} -D EIN_NATIVE=${native})
# Compiling ein a second time is quick only where ccache still has the first.
if(launcher AND config STREQUAL Release)
  run(${CMAKE_COMMAND} --build ${scratch}/added --config ${config})
  run(${scratch}/added/consumer)
else()
  run(${CMAKE_COMMAND} --build ${scratch}/added --config ${config} --target consumer_objects)
endif()
