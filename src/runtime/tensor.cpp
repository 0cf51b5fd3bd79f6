// The members of Tensor that compute or copy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/tensor.hpp>

#include "runtime/device.hpp"
#include "runtime/map.hpp"
#include "runtime/trace.hpp"

namespace ein {
namespace {

/// Whether two elements of `x` share memory.
bool overlaps_itself(const Tensor& x) {
  struct Dim {
    Size stride, size;
  };
  std::vector<Dim> dims;
  Size last = 0;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (x.shape()[d] == 0) return false;
    if (x.shape()[d] == 1) continue;
    dims.push_back({x.strides()[d], x.shape()[d]});
    last += x.strides()[d] * (x.shape()[d] - 1);
  }
  if (x.numel() > last + 1) return true;
  // Each dimension that steps over all the smaller ones together keeps them apart.
  std::sort(dims.begin(), dims.end(),
            [](const Dim& a, const Dim& b) { return a.stride < b.stride; });
  Size reach = 0;
  const bool nested = std::all_of(dims.begin(), dims.end(), [&](const Dim& dim) {
    const bool steps_over = dim.stride > reach;
    reach += dim.stride * (dim.size - 1);
    return steps_over;
  });
  if (nested) return false;
  // Interleaved dimensions: look at each element's place.
  std::vector<bool> seen(static_cast<std::size_t>(last) + 1);
  std::vector<std::int64_t> at(dims.size(), 0);
  std::int64_t place = 0;
  for (std::int64_t n = x.numel(); n > 0; --n) {
    if (seen[static_cast<std::size_t>(place)]) return true;
    seen[static_cast<std::size_t>(place)] = true;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      place += dims[d].stride;
      if (++at[d] < dims[d].size) break;
      place -= at[d] * dims[d].stride;
      at[d] = 0;
    }
  }
  return false;
}

void require_writable(const Tensor& x, const char* what) {
  const engine::Trace* const trace = engine::Trace::active();
  const bool is_view_of_state = trace && trace->is_view_of_state(x);
  if (!x.storage() && !is_view_of_state) engine::Trace::refuse_write(x, what);
  if (is_view_of_state ? trace->is_read_only(x) : x.storage()->read_only())
    throw Error(ErrorKind::value, std::string(what) + ": the tensor's storage is read-only");
  if (!overlaps_itself(x)) return;
  throw Error(ErrorKind::value, std::string(what) + ": elements of the tensor of shape " +
                                    x.shape().to_string() + " and strides " +
                                    x.strides().to_string() + " share memory; write to a clone()");
}

/// Whether the bytes that two tensors span overlap.
bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  // As numbers: pointers into different storages have no order.
  const auto range = [](const Tensor& x) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < x.rank(); ++d) last += x.strides()[d] * (x.shape()[d] - 1);
    const auto begin = reinterpret_cast<std::uintptr_t>(engine::first_element(x));
    return std::pair(begin, begin + static_cast<std::uintptr_t>(last + 1) * x.element_size());
  };
  const auto [a_begin, a_end] = range(a);
  const auto [b_begin, b_end] = range(b);
  return a_begin < b_end && b_begin < a_end;
}

/// The same elements in a tensor of its own: a call like any other where gradients flow or a
/// function is traced.
Tensor converted(const char* what, const Tensor& x, DType dtype) {
  if (engine::Trace::active() || (x.requires_grad() && grad_is_enabled())) {
    const Tensor* operand = &x;
    return engine::map(what, Ex::input(0), {&operand, 1}, conversion_type(x.dtype(), dtype), dtype);
  }
  Tensor copy = empty(x.shape(), dtype, x.device());
  engine::copy(x, copy);
  return copy;
}

void require_no_flow(const Tensor& x, const char* what) {
  if (!x.requires_grad() || !grad_is_enabled()) return;
  throw Error(
      ErrorKind::value,
      std::string(what) + ": gradients flow through the tensor of shape " + x.shape().to_string() +
          ", and a write would be lost to them\n  help: write inside a scope of ein::NoGrad");
}

void require_no_flow_from(const Tensor& source, const Tensor& target) {
  if (!source.requires_grad() || !grad_is_enabled()) return;
  throw Error(ErrorKind::value,
              "copy_from: gradients flow through the source of shape " +
                  source.shape().to_string() + ", and the tensor of shape " +
                  target.shape().to_string() +
                  " that is written to would not pass them on\n"
                  "  help: copy from source.detach(), or write inside a scope of ein::NoGrad");
}

}  // namespace

Tensor Tensor::clone() const { return converted("clone", *this, dtype()); }

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType wanted) const {
  return wanted == dtype() ? *this : converted("to", *this, wanted);
}

void Tensor::fill(Scalar value) const {
  require_no_flow(*this, "fill");
  require_writable(*this, "fill");
  const Tensor one = full({}, value, dtype(), device());
  if (engine::Trace::active()) return engine::copy(engine::broadcast(one, shape()), *this);
  engine::copy(Tensor(one.storage(), dtype(), shape(), Strides(rank(), 0)), *this);
  storage()->count_write();
}

void Tensor::copy_from(const Tensor& given) const {
  require_no_flow(*this, "copy_from");
  require_no_flow_from(given, *this);
  const Tensor source = given.to(device());
  require_writable(*this, "copy_from");
  if (!(source.shape() == shape())) {
    throw Error(ErrorKind::shape, "copy_from: the source has shape " + source.shape().to_string() +
                                      ", the tensor " + shape().to_string());
  }
  if (engine::Trace::active()) return engine::copy(source.to(dtype()), *this);
  engine::copy(may_overlap(source, *this) ? source.clone() : source, *this);
  storage()->count_write();
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const Tensor values = to(cpu).to(dtype_of<T>).contiguous();
  if constexpr (std::is_same_v<T, bool>) {
    // Memory that others wrote may hold bytes that are no bool.
    const auto* bytes = static_cast<const std::uint8_t*>(values.raw_data());
    std::vector<bool> result(static_cast<std::size_t>(values.numel()));
    std::transform(bytes, bytes + result.size(), result.begin(),
                   [](std::uint8_t byte) { return byte != 0; });
    return result;
  } else {
    const T* first = values.data<T>();
    return std::vector<T>(first, first + values.numel());
  }
}

template <class T>
T Tensor::item() const {
  if (numel() != 1) {
    throw Error(ErrorKind::shape, "item: the tensor of shape " + shape().to_string() + " has " +
                                      to_string(numel()) + " elements, one is wanted");
  }
  return to_vector<T>().front();
}

template <class T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Device device) {
  if (checked_numel(shape, sizeof(T)) != static_cast<std::int64_t>(values.size())) {
    throw Error(ErrorKind::shape, "from_vector: shape " + shape.to_string() + " wants " +
                                      to_string(numel(shape)) + " values, got " +
                                      std::to_string(values.size()));
  }
  const Tensor x = empty(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), x.data<T>());
  return x.to(device);
}

#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  template std::vector<type> Tensor::to_vector<type>() const;       \
  template type Tensor::item<type>() const;                         \
  template Tensor from_vector<type>(const std::vector<type>&, const Shape&, Device);
#include <ein/dtypes.hpp>

// --- text ---

namespace {

std::string element_text(const Tensor& x) {
  if (x.dtype() == DType::boolean) return x.item<bool>() ? "true" : "false";
  if (x.dtype() == DType::u64) return std::to_string(x.item<std::uint64_t>());
  if (is_integral(x.dtype())) return std::to_string(x.item<std::int64_t>());
  if (std::isnan(x.item())) return "nan";  // whatever its sign
  char text[32];
  std::snprintf(text, sizeof text, x.dtype() == DType::f64 ? "%.10g" : "%.6g", x.item());
  return text;
}

constexpr std::int64_t longest_shown = 8;

void write(const Tensor& x, std::size_t indent, std::string& text) {
  if (x.rank() == 0) {
    text += element_text(x);
    return;
  }
  const std::int64_t size = x.shape()[0];
  const std::string between = x.rank() == 1 ? ", " : ",\n" + std::string(indent + 1, ' ');
  text += "[";
  for (std::int64_t i = 0; i < size; ++i) {
    if (i > 0) text += between;
    if (size > longest_shown && i == longest_shown / 2) {
      text += "...";
      i = size - longest_shown / 2 - 1;
      continue;
    }
    write(x[i], indent + 1, text);
  }
  text += "]";
}

}  // namespace

std::string to_string(const Tensor& x) {
  std::string text;
  write(x.to(cpu), 0, text);
  return text;
}

}  // namespace ein
