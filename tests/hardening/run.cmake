# That the options of EIN_HARDEN do what docs/hardening.md says, on a small program; and that `hardened`, programs that were
# built with them, have what can be seen of it.
#   cmake -D compiler= -D "options=" -D "link=" -D readelf= -D scratch= -D "hardened=" -P run.cmake
cmake_minimum_required(VERSION 3.25)

function(require_hard program)
  execute_process(COMMAND ${readelf} --wide --file-header --program-headers --dynamic ${program}
                  OUTPUT_VARIABLE entries COMMAND_ERROR_IS_FATAL ANY)
  foreach(wanted "Type: +DYN" "GNU_RELRO" "(BIND_NOW|FLAGS_1\\)[^\n]*NOW)" "GNU_STACK[^\n]* RW  ")
    if(NOT entries MATCHES "${wanted}")
      message(FATAL_ERROR "${program} has no ${wanted}:\n${entries}")
    endif()
  endforeach()
  if(entries MATCHES "TEXTREL| RWE |LOAD[^\n]* RWE")
    message(FATAL_ERROR "${program} has pages that are written and run: ${CMAKE_MATCH_0}")
  endif()
  execute_process(COMMAND ${readelf} --wide --dyn-syms ${program} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  foreach(wanted "__stack_chk_fail" "__[a-z_]+_chk")
    if(NOT symbols MATCHES "${wanted}")
      message(FATAL_ERROR "${program} does not call ${wanted}")
    endif()
  endforeach()
endfunction()

file(MAKE_DIRECTORY ${scratch})
set(source ${CMAKE_CURRENT_LIST_DIR}/overflows.cpp)
execute_process(COMMAND ${compiler} -std=c++20 -O2 ${options} -fPIE ${source} -pie ${link} -o ${scratch}/overflows
                COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
require_hard(${scratch}/overflows)
foreach(kind none fortify stack assertions)
  execute_process(COMMAND ${scratch}/overflows ${kind} a_text_that_is_longer_than_eight_characters
                  RESULT_VARIABLE end ERROR_VARIABLE said)
  if(kind STREQUAL "none" AND NOT end EQUAL 0 OR NOT kind STREQUAL "none" AND NOT end MATCHES "[Aa]bort")
    message(FATAL_ERROR "${kind} ends with '${end}': ${said}")
  endif()
endforeach()
foreach(program IN LISTS hardened)
  require_hard(${program})
endforeach()
