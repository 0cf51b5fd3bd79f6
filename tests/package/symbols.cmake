# What of the kernels the rest of a program sees.   cmake -D archive= -D nm= -P symbols.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${nm} --demangle ${archive} OUTPUT_VARIABLE text ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," text "${text}")

# The visible symbols of an object of the archive, as lines of nm.
function(visible_of object result)
  string(FIND "${text}" "\n${object}:\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${archive} has no ${object}")
  endif()
  string(SUBSTRING "${text}" ${begin} -1 symbols)
  string(FIND "${symbols}" "\n\n" end)  # nm leaves a line between objects
  string(SUBSTRING "${symbols}" 0 ${end} symbols)
  string(REGEX MATCHALL "\n[0-9a-f]+ [A-TV-Zuvw] [^\n]*" visible "${symbols}")
  set(${result} "${visible}" PARENT_SCOPE)
endfunction()

# Of the kernels of an instruction set the table alone.
string(REGEX MATCHALL "\nein_level_[a-z0-9_]+\\.o:\n" objects "${text}")
if(NOT objects)
  message(FATAL_ERROR "${archive} has no kernels")
endif()
foreach(object IN LISTS objects)
  string(REGEX REPLACE "\nein_level_(.*)\\.o:\n" "\\1" level "${object}")
  visible_of(ein_level_${level}.o visible)
  list(FILTER visible EXCLUDE REGEX " [RD] ein::host::${level}::(level|bf16_products)$")
  if(visible)
    message(FATAL_ERROR "visible, and compiled for ${level} alone: ${visible}")
  endif()
endforeach()

# Sums of a product's inner loop stay in registers only where all of it is one function.
string(REGEX MATCHALL "[^\n]* [tW] [^\n]*ein::host::v[^\n]*::(add_dots|add_columns|multiply_tile)<[^\n]*lambda[^\n]*" apart "${text}")
if(apart)
  message(FATAL_ERROR "not inlined into the loops of products: ${apart}")
endif()

# Of what makes machine code nothing that is inline, and nothing of asmjit, but for its unique symbols, which are data.
visible_of(ein_row_code.o visible)
set(not_ours "${visible}")
list(FILTER not_ours EXCLUDE REGEX " [BDRT] (ein::|[a-z]+ info for ein::|vtable for ein::)| u .*asmjit::")
if(NOT visible OR not_ours)
  message(FATAL_ERROR "ein_row_code.o shows what is not ein's:${not_ours}")
endif()

# A function's static whose first call is under way in another thread stays half done in a child of fork(): made_once()
# takes its place. What belongs to one thread does not wait, and gemm.cpp has Eigen make its own under made_once().
execute_process(COMMAND ${nm} --demangle --format=sysv ${archive} OUTPUT_VARIABLE text ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," text "${text}")
string(REGEX MATCHALL "guard variable for [^\n]*" guards "${text}")
if(NOT guards)
  message(FATAL_ERROR "${nm} names no guard variable")
endif()
list(FILTER guards EXCLUDE REGEX "\\| *TLS *\\|| Eigen_[a-z0-9_]+::internal::manage_caching_sizes")
if(guards)
  message(FATAL_ERROR "not safe beside fork(), use made_once(): ${guards}")
endif()

# What has a destructor is destroyed before others are done with it: made_once() and made_once_by_thread() take its place.
execute_process(COMMAND ${nm} --print-file-name ${archive} OUTPUT_VARIABLE text ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," text "${text}")
string(REGEX MATCHALL "[^\n/]*: +U (__cxa_atexit|__cxa_thread_atexit|_tlv_atexit|atexit)\n" destroyed "${text}")
if(NOT destroyed MATCHES "parallel\\.cpp")
  message(FATAL_ERROR "${nm} does not show that EndOfPool is destroyed")
endif()
# EndOfPool; and where processes of a mesh leave the others.
list(FILTER destroyed EXCLUDE REGEX ":parallel\\.cpp\\.o: +U __cxa_atexit|:(mesh|nccl)\\.cpp\\.o: +U atexit")
if(destroyed)
  message(FATAL_ERROR "has static or thread_local objects with destructors: ${destroyed}")
endif()
