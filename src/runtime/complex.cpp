#include "runtime/complex.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ein/create.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "runtime/map.hpp"
#include "runtime/mesh.hpp"

namespace ein {
namespace engine {

Shape real_shape(DType dtype, Shape shape) {
  if (is_complex(dtype)) shape.push_back(2);
  return shape;
}

Strides real_strides(DType dtype, Strides strides) {
  if (!is_complex(dtype)) return strides;
  for (Size& stride : strides) stride *= 2;
  strides.push_back(1);
  return strides;
}

Tensor as_real(const Tensor& x) {
  if (!is_complex(x.dtype())) return x;
  if (x.is_placed())
    return with_parts(x, real_shape(x.dtype(), x.shape()), placement_of(x), as_real);
  detail::TensorData data = x.impl();
  data.shape = real_shape(data.dtype, std::move(data.shape));
  data.strides = real_strides(data.dtype, std::move(data.strides));
  data.offset *= 2;
  data.dtype = real_dtype(data.dtype);
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

namespace {

/// The same memory with each two neighbours as a number; none where that is no view.
std::optional<Tensor> viewed_as_complex(const Tensor& x) {
  detail::TensorData data = x.impl();
  const bool has_elements = std::find(data.shape.begin(), data.shape.end(), 0) == data.shape.end();
  Shape shape;
  Strides strides;
  for (std::size_t d = 0; d + 1 < data.shape.rank(); ++d) {
    const Size stride = data.strides[d];
    const bool matters = has_elements && !is_one(data.shape[d]);
    if (matters && stride.is_number() && stride.word() % 2 != 0) return std::nullopt;
    shape.push_back(data.shape[d]);
    strides.push_back(matters ? stride / 2 : Size(1));
  }
  if (has_elements && (data.strides.back() != 1 || data.offset % 2 != 0)) return std::nullopt;
  data.shape = std::move(shape);
  data.strides = std::move(strides);
  data.offset /= 2;
  data.dtype = complex_dtype(data.dtype);
  return Tensor(std::make_shared<const detail::TensorData>(std::move(data)));
}

}  // namespace

Tensor as_complex(const Tensor& x) {
  if (x.is_placed()) {
    const Shape shape(std::span(x.shape().begin(), x.rank() - 1));
    Placement placement = placement_of(x);
    placement.dims.resize(shape.rank());
    return with_parts(x, shape, placement, as_complex);
  }
  if (auto view = viewed_as_complex(x)) return *std::move(view);
  return *viewed_as_complex(x.clone());
}

}  // namespace engine

namespace {

Tensor part(const Tensor& x, std::int64_t which) {
  std::vector<Index> indices(x.rank(), every);
  indices.emplace_back(which);
  return engine::as_real(x).at(indices);
}

DType float_of(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

void require_real(const char* what, const Tensor& x) {
  if (!is_complex(x.dtype())) return;
  throw Error(ErrorKind::dtype, std::string(what) + ": wants real numbers, got " +
                                    std::string(name(x.dtype())) +
                                    "\n  help: ein::real(x) and ein::imag(x) are its parts");
}

/// Two tensors of one float dtype and shape.
std::pair<Tensor, Tensor> alike(const char* what, const Tensor& a, const Tensor& b) {
  require_real(what, a);
  require_real(what, b);
  const DType dtype = float_of(promote(a.dtype(), b.dtype()));
  const Tensor* const both[] = {&a, &b};
  const Shape shape = engine::broadcast_shape(what, both);
  const auto stretched = [&](const Tensor& x) {
    const Tensor converted = x.to(dtype);
    return x.shape() == shape ? converted : engine::broadcast(converted, shape);
  };
  return {stretched(a), stretched(b)};
}

}  // namespace

Tensor complex(const Tensor& real, const Tensor& imag) {
  const auto [a, b] = alike("complex", real, imag);
  return engine::as_complex(rearrange(std::vector<Tensor>{a, b}, "part ... -> ... part"));
}

Tensor polar(const Tensor& radius, const Tensor& angle) {
  const auto [r, phi] = alike("polar", radius, angle);
  return complex(r * cos(phi), r * sin(phi));
}

Tensor real(const Tensor& x) { return is_complex(x.dtype()) ? part(x, 0) : x; }

Tensor imag(const Tensor& x) {
  if (is_complex(x.dtype())) return part(x, 1);
  throw Error(ErrorKind::dtype, "imag: " + std::string(name(x.dtype())) +
                                    " has no imaginary part\n  help: ein::zeros(x.shape())");
}

Tensor conj(const Tensor& x) {
  if (!is_complex(x.dtype())) return x;
  const Tensor signs = tensor({1.0, -1.0}, real_dtype(x.dtype()), x.device());
  return engine::as_complex(engine::as_real(x) * signs);
}

Tensor angle(const Tensor& x) {
  return is_complex(x.dtype()) ? atan2(imag(x), real(x)) : atan2(0, x);
}

Tensor view_as_real(const Tensor& x) {
  if (is_complex(x.dtype())) return engine::as_real(x);
  throw Error(ErrorKind::dtype,
              "view_as_real: wants complex numbers, got " + std::string(name(x.dtype())));
}

Tensor view_as_complex(const Tensor& x) {
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64) {
    throw Error(ErrorKind::dtype,
                "view_as_complex: wants f32 or f64, got " + std::string(name(x.dtype())));
  }
  if (x.is_placed()) {
    if (x.rank() > 0 && x.shape().back() == 2 &&
        engine::placement_of(x).split(x.rank() - 1).empty())
      return engine::as_complex(x);
    throw Error(ErrorKind::placement,
                "view_as_complex: wants a last axis of size 2 that is whole; got shape " +
                    x.shape().to_string() + ", placed \"" + placement(x) + "\"");
  }
  const bool has_parts = x.rank() > 0 && x.shape().back() == 2;
  const auto view = has_parts ? engine::viewed_as_complex(x) : std::nullopt;
  if (view) return *view;
  throw Error(ErrorKind::shape,
              "view_as_complex: wants a last axis of size 2 that lies side by side, between even "
              "strides and from an even offset; got shape " +
                  x.shape().to_string() + ", strides " + x.strides().to_string() + ", offset " +
                  std::to_string(x.offset()) +
                  "\n  help: ein::complex(real, imag) makes a new tensor");
}

}  // namespace ein
