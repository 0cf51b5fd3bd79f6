#include "codegen/vocabulary.hpp"

#include <algorithm>
#include <vector>

#include "codegen/vocabulary/text.hpp"
#include "machine/fork.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

/// A section is there if one of its words is.
struct Section {
  std::string text;
  std::vector<std::string_view> words;
  bool is_portable = true;
};

const std::vector<Section>& sections() {
  return made_once([] {
    return std::vector<Section>{
        {std::string(text::machine), {""}, false},
        {std::string(text::tensor_cores), {"multiply_add_"}, false},
        {text::warp_product("bf16", "bf16", 16), {"multiply_add_bf16"}, false},
        {text::warp_product("f16", "f16", 16), {"multiply_add_f16"}, false},
        {text::warp_product("tf32", "tf32", 8), {"multiply_add_tf32"}, false},
        {text::warp_product("f8e4m3", "e4m3", 32), {"multiply_add_f8e4m3"}, false},
        {text::warp_product("f8e5m2", "e5m2", 32), {"multiply_add_f8e5m2"}, false},
        {std::string(text::hopper), {"multiply_add_group_"}, false},
        {text::group_products("bf16", "bf16", true), {"multiply_add_group_bf16"}, false},
        {text::group_products("f16", "f16", true), {"multiply_add_group_f16"}, false},
        {text::group_products("f8e4m3", "e4m3", false), {"multiply_add_group_f8e4m3"}, false},
        {text::group_products("f8e5m2", "e5m2", false), {"multiply_add_group_f8e5m2"}, false},
        {std::string(text::elements), {""}},
        {std::string(text::matrices), {"multiply_add_"}},
        {std::string(text::attention), {"shared_tiles<"}, false},
        {std::string(text::descriptors), {"multiply_add_group_"}},
        {std::string(text::small_floats), {"f8e"}},
        {std::string(text::gates), {"sigmoid(", "silu(", "gelu(", "gelu_slope(", "normal_cdf("}},
        {std::string(text::integers),
         {"plus(", "minus(", "times(", "absolute(", "power(", "shifted_"}},
        {std::string(text::remainders), {"remainder_of(", "floor_quotient("}},
        {std::string(text::logarithms), {"log_add_exp("}},
        {std::string(text::packs), {"load(", "store(", "store_unchanged("}},
        {std::string(text::pairs), {"store(", "store_unchanged("}, false},
        {std::string(text::tables), {"Table<"}},
        {std::string(text::faults), {"Fault"}},
        {std::string(text::combining), {"combine_lanes", "combine_rows"}},
        {std::string(text::long_sums), {"add_long("}},
        {std::string(text::scanning), {"scan_block"}},
        {std::string(text::randoms), {"uniform(", "normal(", "normal_quantile("}},
        {std::string(text::sorting), {"sorted<", "key_of(", "Entry<"}},
    };
  });
}

}  // namespace

std::string vocabulary_for(std::string_view kernel) {
  std::string text;
  for (const Section& section : sections()) {
    const bool is_needed = std::any_of(
        section.words.begin(), section.words.end(),
        [&](std::string_view word) { return kernel.find(word) != std::string_view::npos; });
    if (is_needed) text += section.text;
  }
  return text;
}

std::string vocabulary() {
  std::string text;
  for (const Section& section : sections()) text += section.text;
  return text;
}

std::string portable_vocabulary() {
  std::string text;
  for (const Section& section : sections()) {
    if (section.is_portable) text += section.text;
  }
  return text;
}

}  // namespace ein::codegen
