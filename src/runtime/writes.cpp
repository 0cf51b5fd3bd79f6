#include "runtime/writes.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ein/autograd.hpp>
#include <ein/error.hpp>

#include "compile/operand.hpp"
#include "runtime/mesh.hpp"
#include "runtime/trace.hpp"
#include "tensor/small_array.hpp"

namespace ein::engine {
namespace {

/// Whether two elements of `x` share memory.
bool overlaps_itself(const Tensor& x) {
  struct Dim {
    Size stride, size;
  };
  SmallArray<Dim, 8> dims(x.rank());
  std::size_t count = 0;  // of dimensions longer than 1
  Size last = 0;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] == 0) return false;
    if (x.shape()[d] == 1) continue;
    // From the lowest element on; walked the other way, a dimension meets the same places.
    const Size stride = goes_back(x.strides()[d]) ? -x.strides()[d] : x.strides()[d];
    dims[count++] = {stride, x.shape()[d]};
    last += stride * (x.shape()[d] - 1);
  }
  if (x.numel() > last + 1) return true;
  // Each dimension that steps over all the smaller ones together keeps them apart.
  Dim *const first = dims.data(), *const end = first + count;
  std::sort(first, end, [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  Size reach = 0;
  const bool nested = std::all_of(first, end, [&](const Dim& dim) {
    const bool steps_over = dim.stride > reach;
    reach += dim.stride * (dim.size - 1);
    return steps_over;
  });
  if (nested) return false;
  // Interleaved dimensions: look at each element's place.
  std::vector<bool> seen(static_cast<std::size_t>(last) + 1);
  std::vector<std::int64_t> at(count, 0);
  std::int64_t place = 0;
  for (std::int64_t n = x.numel(); n > 0; --n) {
    if (seen[static_cast<std::size_t>(place)]) return true;
    seen[static_cast<std::size_t>(place)] = true;
    for (std::size_t d = 0; d < count; ++d) {
      place += dims[d].stride;
      if (++at[d] < dims[d].size) break;
      place -= at[d] * dims[d].stride;
      at[d] = 0;
    }
  }
  return false;
}

}  // namespace

void require_writable(const Tensor& x, const char* what) {
  const Trace* const trace = Trace::active();
  const bool is_view_of_state = trace && trace->is_view_of_state(x);
  if (x.is_placed()) return require_writable(part_of(x, 0), what);
  if (!x.storage() && !is_view_of_state) Trace::refuse_write(x, what);
  if (is_view_of_state ? trace->is_read_only(x) : x.storage()->read_only())
    throw Error(ErrorKind::value, std::string(what) + ": the tensor's storage is read-only");
  if (!overlaps_itself(x)) return;
  throw Error(ErrorKind::value, std::string(what) + ": elements of the tensor of shape " +
                                    x.shape().to_string() + " and strides " +
                                    x.strides().to_string() + " share memory; write to a clone()");
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  // As numbers: pointers into different storages have no order.
  const auto range = [](const Tensor& x) {
    std::int64_t first = 0, last = 0;
    for (std::size_t d = 0; d < x.rank(); ++d) {
      const std::int64_t stride = x.strides()[d];
      (stride < 0 ? first : last) += stride * (x.shape()[d] - 1);
    }
    const auto bytes = static_cast<std::int64_t>(x.element_size());
    const std::byte* const begin = first_element(x);
    return std::pair(reinterpret_cast<std::uintptr_t>(begin + first * bytes),
                     reinterpret_cast<std::uintptr_t>(begin + (last + 1) * bytes));
  };
  const auto [a_begin, a_end] = range(a);
  const auto [b_begin, b_end] = range(b);
  return a_begin < b_end && b_begin < a_end;
}

bool share_memory(const Tensor& a, const Tensor& b) {
  const std::shared_ptr<Storage>&x = memory_of(a), &y = memory_of(b);
  if (x == y) return true;
  if (!x || !y || x->device() != y->device()) return false;
  // As numbers: pointers into different storages have no order.
  const auto begin = [](const Storage& s) { return reinterpret_cast<std::uintptr_t>(s.data()); };
  return begin(*x) < begin(*y) + y->bytes() && begin(*y) < begin(*x) + x->bytes();
}

void require_no_flow(const Tensor& x, const char* what) {
  if (!x.requires_grad() || !grad_is_enabled()) return;
  throw Error(
      ErrorKind::value,
      std::string(what) + ": gradients flow through the tensor of shape " + x.shape().to_string() +
          ", and a write would be lost to them\n  help: write inside a scope of ein::NoGrad");
}

void require_no_flow_from(const Tensor& source, const Tensor& target, const char* what) {
  if (!source.requires_grad() || !grad_is_enabled()) return;
  throw Error(ErrorKind::value,
              std::string(what) + ": gradients flow through the source of shape " +
                  source.shape().to_string() + ", and the tensor of shape " +
                  target.shape().to_string() +
                  " that is written to would not pass them on\n"
                  "  help: give its detach(), or write inside a scope of ein::NoGrad");
}

}  // namespace ein::engine
