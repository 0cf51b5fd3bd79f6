// The texts of the vocabulary, a file per concept.
#pragma once

#include <string>
#include <string_view>

namespace ein::codegen::text {

// machine.cpp
extern const std::string_view machine;

// elements.cpp
extern const std::string_view elements, small_floats, integers, gates, remainders, logarithms;

// tensor_cores.cpp
extern const std::string_view tensor_cores, matrices;
/// c += a b by mma.sync: 16 rows, 8 columns, and `depth` elements along the depth in 32 bytes.
std::string warp_product(const std::string& name, const std::string& type, int depth);

// hopper.cpp
extern const std::string_view hopper, descriptors;
/// sum += a b by wgmma; of 16-bit elements `turns` says that each operand may lie either way.
std::string group_products(const std::string& name, const std::string& type, bool turns);

// attention.cpp
extern const std::string_view attention;

// memory.cpp
extern const std::string_view packs, pairs, tables, faults;

// combining.cpp
extern const std::string_view combining, long_sums, scanning;

// random.cpp
extern const std::string_view randoms;

// sorting.cpp
extern const std::string_view sorting;

}  // namespace ein::codegen::text
