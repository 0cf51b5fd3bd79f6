// nonzero and unique, the sizes of whose results are data.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/elementwise.hpp>
#include <ein/error.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "runtime/map.hpp"
#include "runtime/trace.hpp"

namespace ein {
using namespace literals;

namespace {

void require_elements(const char* what, const Tensor& x) {
  if (!engine::Trace::active()) return;
  throw Error(ErrorKind::value,
              std::string(what) +
                  ": the size of the result depends on the elements of x, of shape " +
                  x.shape().to_string() + ", which a function that " + engine::Trace::tracer() +
                  " traces does not have\n"
                  "  help: call it outside of the function");
}

/// Elements of a vector that are looked at together: what is made of them stays in the cache.
constexpr std::int64_t elements_at_once = 1 << 16;

/// Appends the places, from `first` on, of the bytes that are not 0.
void append_places(std::span<const std::byte> bytes, std::int64_t first,
                   std::vector<std::int64_t>& places) {
  for (std::size_t i = 0; i < bytes.size();) {
    std::uint64_t eight = 0;
    if (bytes.size() - i >= sizeof eight) {
      std::memcpy(&eight, bytes.data() + i, sizeof eight);
      if (eight == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const std::size_t end = std::min(bytes.size(), i + sizeof eight);
    for (; i < end; ++i) {
      if (bytes[i] != std::byte{0}) places.push_back(first + static_cast<std::int64_t>(i));
    }
  }
}

/// The same positions, found on the host: of all elements nothing is kept.
Tensor places_on_host(const Tensor& x) {
  std::vector<std::int64_t> places;
  const std::int64_t size = x.numel();
  for (std::int64_t first = 0; first < size; first += elements_at_once) {
    const Tensor are_there =
        not_equal(x.at({slice(first, std::min(size, first + elements_at_once))}), 0);
    append_places({static_cast<const std::byte*>(are_there.raw_data()),
                   static_cast<std::size_t>(are_there.numel())},
                  first, places);
  }
  const auto count = static_cast<std::int64_t>(places.size());
  return from_vector(std::move(places), {count});
}

/// The positions of the elements of a vector that are not 0.
Tensor places_of(const Tensor& x) {
  if (x.device() == cpu && !x.is_placed()) return places_on_host(x);
  const Tensor is_there = not_equal(x, 0);
  const Tensor up_to = cumsum(is_there, "[n]", as(DType::i64));
  const Size size = is_there.numel();
  const std::int64_t count = size == 0 ? 0 : up_to[size - 1].item<std::int64_t>();
  // All others are added up behind the last.
  const Tensor to = where(is_there, up_to - 1, count);
  const Tensor all_places =
      scatter_add(arange(size, is_there.device()), to, "n, n -> [v]", "v"_a = count + 1);
  return all_places.at({slice(0, count)}).clone();
}

}  // namespace

Tensor nonzero(const Tensor& x) {
  require_elements("nonzero", x);
  const NoGrad no_grad;
  const Tensor places = places_of(x.reshape({x.numel()}));
  const Size count = places.numel();
  if (x.rank() == 1) return places.reshape({count, 1});
  Tensor result = empty({count, static_cast<std::int64_t>(x.rank())}, DType::i64, x.device());
  Size stride = 1;
  for (std::size_t d = x.rank(); d-- > 0 && count > 0; stride *= x.shape()[d]) {
    // In f64, which has the whole quotients of positions below 2^53.
    const auto quotient = [](const Ex& a, Size b) {
      return Ex::apply(ScalarOp::floor, a / Ex::size(b));
    };
    const Ex place = quotient(Ex::input(0), stride);
    const Ex along = place - quotient(place, x.shape()[d]) * Ex::size(x.shape()[d]);
    const Tensor* const operand = &places;
    result(every, static_cast<std::int64_t>(d))
        .copy_from(engine::map("nonzero", along, {&operand, 1}, DType::f64, DType::i64));
  }
  return result;
}

Unique unique(const Tensor& x) {
  const NoGrad no_grad;
  const Size size = x.numel();
  // First: what has no order is an Error in a trace too.
  const Sorted sorted = sort(x.detach().reshape({size}), "[n]");
  require_elements("unique", x);
  if (size == 0) {
    const Tensor none = zeros({0}, DType::i64, x.device());
    return {sorted.values, none.reshape(x.shape()), none};
  }
  const Tensor here = sorted.values.at({slice(1)}), before = sorted.values.at({slice(0, size - 1)});
  // One NaN is as good as another.
  const Tensor is_new =
      logical_and(not_equal(here, before), logical_not(logical_and(isnan(here), isnan(before))));
  const Tensor first = pad(is_new, "[n]", 1, 0, true);
  const Tensor begins = places_of(first);
  const Tensor ends = pad(begins.at({slice(1)}), "[n]", 0, 1, size);
  const Tensor number = cumsum(first, "[n]") - 1;
  const Tensor positions =
      scatter_add(number, sorted.positions, "n, n -> [v]", "v"_a = size).reshape(x.shape());
  return {gather(sorted.values, begins, "[n], v -> v"), positions, ends - begins};
}

}  // namespace ein
