#include "cpu/level/kernels.hpp"

namespace ein::host::EIN_LEVEL {
namespace {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
constexpr bool has_multiply_add = true;
#else
constexpr bool has_multiply_add = false;
#endif

// A macro that the compiler has defined is 1; any other is its own name.
constexpr const char* features[] = {
#define EIN_TEXT(value) #value
#define EIN_FEATURE_IF(value, name) EIN_TEXT(value)[0] == '1' ? name : "",
#define EIN_FEATURE(macro, name) EIN_FEATURE_IF(macro, name)
#include "cpu/level/features.hpp"
    nullptr};

template <class C>
constexpr Level::Products<C> products{
    dot<C>,          small_product<C>, eigen_product<C>, blocked_product<C>, few_rows_product<C, C>,
    tiny_products<C>};
template <>
constexpr Level::Products<std::uint64_t> products<std::uint64_t>{
    .dot = dot<std::uint64_t>,
    .small = small_product<std::uint64_t>,
    .eigen = eigen_product<std::uint64_t>,
    .blocked = nullptr,
    .few_rows = nullptr,
    .tiny = nullptr};

template <class C>
constexpr Level::Strips<C> strips{apply<C>, apply_by_rows<C>, combine_strips<C>, load_elements<C>,
                                  store_elements<C>};

}  // namespace

extern const Level level;
constexpr Level level{
    .isa = isa,
    .features = features,
    .vector_bytes = vector_bytes,
    .has_multiply_add = has_multiply_add,
    .copies = {widest_copied_element, copy_kernels, copy_runs_kernel, streaming_runs_kernel,
               copy_rows_kernel, fetch_row_ends, fetch_rows, finish_streaming},
    .f32_products = products<float>,
    .f64_products = products<double>,
    .integer_products = products<std::uint64_t>,
    .apply_short_form = apply_short_form,
    .all_strips = {strips<float>, strips<double>, strips<std::int8_t>, strips<std::int16_t>,
                   strips<std::int32_t>, strips<std::int64_t>, strips<std::uint64_t>},
    .fill_uniform = fill_uniform,
    .fill_normal = fill_normal,
    .multiply_add_f32 = multiply_add<float>,
    .multiply_add_f64 = multiply_add<double>,
    .checksum = checksum,
};

}  // namespace ein::host::EIN_LEVEL
