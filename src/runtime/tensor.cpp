// The members of Tensor that compute or copy.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include <ein/autograd.hpp>
#include <ein/complex.hpp>
#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/tensor.hpp>

#include "compile/operand.hpp"
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"
#include "runtime/trace.hpp"
#include "runtime/writes.hpp"

namespace ein {
namespace {

/// The same elements in a tensor of its own: a call like any other where gradients flow or a
/// function is traced.
Tensor converted(const char* what, const Tensor& x, DType dtype) {
  const bool gains_parts = is_complex(dtype) != is_complex(x.dtype());
  if (engine::Trace::active() || gains_parts || x.is_placed() ||
      (x.requires_grad() && grad_is_enabled())) {
    const Tensor* operand = &x;
    return engine::map(what, Ex::input(0), {&operand, 1}, conversion_type(x.dtype(), dtype), dtype);
  }
  Tensor copy = empty(x.shape(), dtype, x.device());
  engine::copy(x, copy);
  return copy;
}

}  // namespace

Tensor Tensor::clone() const { return converted("clone", *this, dtype()); }

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType wanted) const {
  return wanted == dtype() ? *this : converted("to", *this, wanted);
}

void Tensor::fill(Scalar value) const {
  engine::require_no_flow(*this, "fill");
  engine::require_writable(*this, "fill");
  if (data_->placed && !engine::Trace::active()) {
    for (const Tensor& part : data_->placed->parts) part.fill(value);
    return;
  }
  const Tensor one = full({}, value, dtype(), device());
  if (engine::Trace::active()) return engine::copy(engine::broadcast(one, shape()), *this);
  engine::copy(Tensor(one.storage(), dtype(), shape(), Strides(rank(), 0)), *this);
  storage()->count_write();
}

void Tensor::copy_from(const Tensor& given) const {
  engine::require_no_flow(*this, "copy_from");
  engine::require_no_flow_from(given, *this, "copy_from");
  const Tensor source = given.to(device());
  engine::require_writable(*this, "copy_from");
  if ((is_placed() || source.is_placed()) && !engine::Trace::active())
    return engine::copy_parts(source, *this);
  if (!(source.shape() == shape())) {
    throw Error(ErrorKind::shape, "copy_from: the source has shape " + source.shape().to_string() +
                                      ", the tensor " + shape().to_string());
  }
  if (engine::Trace::active()) return engine::copy(source.to(dtype()), *this);
  engine::copy(engine::may_overlap(source, *this) ? source.clone() : source, *this);
  storage()->count_write();
}

namespace {

Tensor with_axes_reversed(const Tensor& x) {
  if (!x.storage()) detail::no_elements_here(x.impl());
  Shape shape = x.shape();
  Strides strides = x.strides();
  std::reverse(shape.begin(), shape.end());
  std::reverse(strides.begin(), strides.end());
  return Tensor(detail::view_of(x.storage(), x.dtype(), shape, strides, x.offset()));
}

}  // namespace

template <class T>
std::vector<T> Tensor::to_vector(Order order) const {
  const Tensor here = to(cpu).to(dtype_of<T>);
  const Tensor values = (order == Order::row_major ? here : with_axes_reversed(here)).contiguous();
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
Tensor from_vector(const std::vector<T>& values, const Shape& shape, Order order, Device device) {
  if (checked_numel(shape, sizeof(T)) != static_cast<std::int64_t>(values.size())) {
    throw Error(ErrorKind::shape, "from_vector: shape " + shape.to_string() + " wants " +
                                      to_string(numel(shape)) + " values, got " +
                                      std::to_string(values.size()));
  }
  const Tensor x = engine::with_memory(shape, dtype_of<T>, cpu);
  std::copy(values.begin(), values.end(), x.data<T>());
  if (order == Order::row_major) return x.to(device);
  return Tensor(x.storage(), x.dtype(), shape, contiguous_strides(shape, order))
      .contiguous()
      .to(device);
}

#define EIN_COMPLEX EIN_DTYPE
#define EIN_DTYPE(dtype, type, text, npy, safetensors, cuda, typed) \
  template std::vector<type> Tensor::to_vector<type>(Order) const;  \
  template type Tensor::item<type>() const;                         \
  template Tensor from_vector<type>(const std::vector<type>&, const Shape&, Order, Device);
#include <ein/detail/dtypes.hpp>

// --- text ---

namespace {

std::string element_text(const Tensor& x) {
  if (x.dtype() == DType::boolean) return x.item<bool>() ? "true" : "false";
  if (x.dtype() == DType::u64) return std::to_string(x.item<std::uint64_t>());
  if (is_integral(x.dtype())) return std::to_string(x.item<std::int64_t>());
  if (is_complex(x.dtype())) {
    const std::string b = element_text(imag(x));
    return element_text(real(x)) + (b.starts_with('-') ? "" : "+") + b + "i";
  }
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
  if (x.is_placed() || !x.storage()) detail::no_elements_here(x.impl());
  std::string text;
  write(x.to(cpu), 0, text);
  return text;
}

}  // namespace ein
