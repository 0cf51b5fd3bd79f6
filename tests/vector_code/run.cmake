# Compiles functions.cpp with GCC, and fails where a loop is not vector code.
set(source ${CMAKE_CURRENT_LIST_DIR}/functions.cpp)
execute_process(
  COMMAND ${compiler} -std=c++20 -O3 ${flags} -I${root}/src -I${root}/include
          -fopt-info-vec-optimized -c ${source} -o ${output}
  RESULT_VARIABLE result ERROR_VARIABLE said)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${said}")
endif()
file(READ ${source} lines)
string(REGEX REPLACE "[][;\\]" "" lines "${lines}")  # which lists take for their own
string(REPLACE "\n" ";" lines "${lines}")
set(number 0)
set(loops 0)
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  if(line MATCHES "^LOOP")
    math(EXPR loops "${loops} + 1")
    if(NOT said MATCHES "functions\\.cpp:${number}:[0-9]+: optimized: loop vectorized")
      message(SEND_ERROR "no vector code: ${line}")
    endif()
  endif()
endforeach()
if(loops LESS 20)
  message(FATAL_ERROR "${loops} loops in ${source}")
endif()
