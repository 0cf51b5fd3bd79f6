// Tensor: strided, shared storage with a dtype.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/device.hpp>
#include <ein/dtype.hpp>
#include <ein/shape.hpp>

namespace ein {

/// A block of bytes that tensors share. `data` is 64-byte aligned when ein allocated it.
class Storage {
 public:
  /// Allocates; an ein::Error of kind `memory` when the machine has no more.
  static std::shared_ptr<Storage> allocate(std::size_t bytes);
  /// Wraps memory that `owner` keeps alive (a mapped file, an Eigen matrix, ...), or, where that is
  /// null, the caller, as long as a tensor views it.
  static std::shared_ptr<Storage> wrap(void* data, std::size_t bytes, std::shared_ptr<void> owner,
                                       bool read_only = false);

  Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner, bool read_only)
      : data_(data), bytes_(bytes), owner_(std::move(owner)), read_only_(read_only) {}
  /// Memory of a device that the host cannot reach.
  Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner, Device device)
      : data_(data), bytes_(bytes), owner_(std::move(owner)), device_(device), on_host_(false) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// An address of the device's: the host can use it where on_host() says so.
  std::byte* data() const { return data_; }
  bool on_host() const { return on_host_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool read_only() const { return read_only_; }

  /// How often a tensor wrote into it.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void count_write() { version_.fetch_add(1, std::memory_order_relaxed); }

  /// Whether gradients flow through a tensor that views it.
  bool has_gradients() const { return gradients_.load(std::memory_order_relaxed) > 0; }
  void count_gradient(int more) { gradients_.fetch_add(more, std::memory_order_relaxed); }

 private:
  std::byte* data_;
  std::size_t bytes_;
  std::shared_ptr<void> owner_;  // null: data_ came from allocate()
  Device device_ = cpu;
  bool read_only_ = false;
  bool on_host_ = true;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<int> gradients_{0};  // tensors with a gradient state
};

/// A number given where a tensor could stand: `x + 1`, `x.fill(0.5)`. It takes the tensor's dtype,
/// except that a fraction beside an integer tensor makes the result f32, and a complex number
/// beside a real tensor c64, or c128 beside f64.
class Scalar {
 public:
  /// A bool, or an element of std::vector<bool>. Nothing else becomes one on the way: no pointer,
  /// no enumerator.
  template <class T>
  requires(std::is_same_v<T, bool> || std::is_same_v<T, std::vector<bool>::reference> ||
           std::is_same_v<T, std::vector<bool>::const_reference>) Scalar(T v)
      : real_(static_cast<bool>(v)), integer_(static_cast<bool>(v)), integral_(true) {}
  template <class T>
  requires(std::is_enum_v<T>&& std::convertible_to<T, std::int64_t>) Scalar(T v)
      : Scalar(static_cast<std::underlying_type_t<T>>(v)) {}
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Scalar(T v)
      : real_(static_cast<double>(v)), integer_(0), integral_(std::is_integral_v<T>) {
    if constexpr (std::is_integral_v<T>) {
      integer_ = static_cast<std::int64_t>(v);
      large_ = (v < T(0)) != (integer_ < 0);
      integral_ = !large_;
    }
  }
  template <detail::ComplexNumber T>
  Scalar(T v) : real_(v.real()), integer_(0), integral_(false), imag_(v.imag()), complex_(true) {}
  /// A size, maybe one that only a call knows.
  Scalar(Size v)
      : real_(v.is_number() ? static_cast<double>(v.word()) : 0),
        integer_(v.is_number() ? v.word() : 0),
        integral_(true),
        formula_(v.is_number() ? Size() : v) {}
  double real() const { return real_; }
  bool is_complex() const { return complex_; }
  double imag() const { return imag_; }
  /// The exact value; only meaningful when `is_integer()`.
  std::int64_t integer() const { return integer_; }
  /// Whether it was given as an integer; one of 2^63 or more counts as a fraction, but beside u64.
  bool is_integer() const { return integral_; }
  /// Whether it was given as an integer of 2^63 or more; integer() then has its bits.
  bool is_large_integer() const { return large_; }
  /// The size that it is, where that is no number yet.
  std::optional<Size> formula() const {
    return formula_.is_number() ? std::nullopt : std::optional(formula_);
  }

 private:
  double real_;
  std::int64_t integer_;
  bool integral_;
  bool large_ = false;
  double imag_ = 0;
  bool complex_ = false;
  Size formula_{};
};

/// Half-open range of positions along one axis, `begin`, `begin + step`, ... below `end`. Negative
/// bounds count from the end of the axis; `step` is at least 1.
struct Slice {
  Size begin = 0;
  Size end = INT64_MAX;
  std::int64_t step = 1;
};
inline Slice slice(Size begin, Size end = INT64_MAX, std::int64_t step = 1) {
  return {begin, end, step};
}
/// Every position along an axis.
inline constexpr Slice every{};

struct TensorSlice;

/// One entry of `x.at(...)`: a position (drops the axis; negative counts from the end), a Slice, or
/// a slice that begins where a tensor says.
class Index {
 public:
  Index(Size position) : position_(position), is_position_(true) {}
  Index(detail::IntegerNumber auto position) : Index(Size(position)) {}
  Index(Slice range) : range_(range), is_position_(false) {}
  Index(const TensorSlice& range);
  bool is_position() const { return is_position_; }
  Size position() const { return position_; }
  const Slice& range() const { return range_; }
  /// Null unless it begins where a tensor says.
  const TensorSlice* tensor_range() const { return tensor_range_.get(); }

 private:
  Size position_ = 0;
  Slice range_;
  bool is_position_;
  std::shared_ptr<const TensorSlice> tensor_range_{};
};

class Tensor;

namespace detail {

/// A value of a graph that is being traced.
struct TracedValue {
  std::uint64_t trace = 0;  // 0: none
  int id = -1;
  Device device = cpu;
};
struct GradState;
struct PlacedData;

struct TensorData {
  std::shared_ptr<Storage> storage;  // null: a traced value, which has no elements yet, or a placed
                                     // tensor, whose parts have their own
  Shape shape;
  Strides strides;
  std::int64_t offset = 0;  // elements
  DType dtype = DType::f32;
  TracedValue traced{};
  mutable std::shared_ptr<GradState> grad{};   // null: gradients do not flow here
  std::shared_ptr<const PlacedData> placed{};  // null: whole on every process
  bool is_traced() const { return !storage && !placed; }
};

/// A view as Tensor's constructor makes it, whether gradients flow through the storage or not.
std::shared_ptr<const TensorData> view_of(std::shared_ptr<Storage> storage, DType dtype,
                                          Shape shape, Strides strides, std::int64_t offset);

/// Of a traced or a placed tensor.
[[noreturn]] void no_elements_here(const TensorData& data);
[[noreturn]] void not_on_the_host(const TensorData& data);

}  // namespace detail

/// An n-dimensional array. Copying a Tensor shares its storage, as `rearrange`, slices and views do
/// whenever strides can express the result; writing through one is seen by all. A
/// default-constructed Tensor is an empty f32 vector.
class Tensor {
 public:
  Tensor();
  /// A view of `storage`: element (i0, i1, ...) lies at `offset + Σ strides[d]·i_d`. Throws an
  /// Error of kind `shape` when that can reach outside the storage; of kind `value` when gradients
  /// flow through a tensor of this storage, since this view would lose them, outside of any NoGrad.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, Shape shape, Strides strides,
         std::int64_t offset = 0);
  explicit Tensor(std::shared_ptr<const detail::TensorData> data) : data_(std::move(data)) {}

  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;
  /// `x[0][0] = 100`: writes `value` into every element of the view on the left.
  void operator=(Scalar value) && { fill(value); }

  const Shape& shape() const { return data_->shape; }
  const Strides& strides() const { return data_->strides; }
  DType dtype() const { return data_->dtype; }
  std::size_t rank() const { return data_->shape.rank(); }
  Size numel() const { return ein::numel(data_->shape); }
  /// Position of the first element in the storage, in elements.
  std::int64_t offset() const { return data_->offset; }
  std::size_t element_size() const { return size_of(data_->dtype); }
  /// Bytes of the elements, gaps not counted: numel · element_size.
  std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * element_size(); }
  Device device() const { return data_->storage ? data_->storage->device() : data_->traced.device; }
  /// Null in a function that ein::compile traces, where a tensor has no elements, and of a tensor
  /// that is placed on a mesh.
  const std::shared_ptr<Storage>& storage() const { return data_->storage; }

  /// The first element's address, type unchecked. An Error of kind `device` when the host
  /// cannot reach it.
  void* raw_data() const {
    if (!data_->storage) detail::no_elements_here(*data_);
    if (!data_->storage->on_host()) detail::not_on_the_host(*data_);
    return data_->storage->data() + data_->offset * static_cast<std::int64_t>(element_size());
  }
  /// The first element's address; an Error of kind `dtype` when T is not this tensor's type.
  template <class T>
  T* data() const {
    require_dtype(dtype_of<T>);
    return static_cast<T*>(raw_data());
  }

  /// Row-major without gaps.
  bool is_contiguous() const;
  /// Whether two tensors view the same block of memory.
  bool same_storage(const Tensor& other) const {
    return storage() == other.storage() && data_->placed == other.data_->placed;
  }

  /// This tensor if it is contiguous, else a row-major copy.
  Tensor contiguous() const;
  /// A copy with storage of its own.
  Tensor clone() const;
  /// The same elements, row-major, in another shape, sharing storage; an Error of kind `shape`
  /// naming shape and strides when no strides can express it.
  Tensor view(const Shape& shape) const;
  /// `view` where possible, else a copy.
  Tensor reshape(const Shape& shape) const;
  /// Rows and columns of a matrix exchanged, as a view. Other ranks: use `rearrange`.
  Tensor transpose() const;
  /// Converted to `dtype`; this tensor if it has it already.
  Tensor to(DType dtype) const;
  /// Copied to `device`, row-major; this tensor if it is there already. Gradients flow back.
  Tensor to(Device device) const;

  /// The sub-array at `position` of the first axis, as a view.
  Tensor operator[](Size position) const { return at({Index(position)}); }
  /// A view by one entry per leading axis: positions and slices, `x.at({1, ein::slice(0, 2)})`. A
  /// slice that begins where a tensor says must lie inside its axis: an Error of kind `value`, in a
  /// compiled function when it runs.
  Tensor at(std::initializer_list<Index> indices) const {
    return at(std::span(indices.begin(), indices.size()));
  }
  Tensor at(std::span<const Index> indices) const;
  /// The same: `x(1, 2)` is a tensor of one element, `x(1)` and `x(ein::every, 2)` a row and a
  /// column; `x(1, 2) = 5` writes.
  template <class... Indices>
  requires(sizeof...(Indices) > 0 && (std::convertible_to<const Indices&, Index> && ...)) Tensor
  operator()(const Indices&... indices) const {
    return at({Index(indices)...});
  }
#if defined(__cpp_multidimensional_subscript)
  /// The same in C++23. C++20 reads `x[1, 2]` as x[2], and warns.
  template <class... Indices>
  requires(sizeof...(Indices) > 1 && (std::convertible_to<const Indices&, Index> && ...)) Tensor
  operator[](const Indices&... indices) const {
    return at({Index(indices)...});
  }
#endif

  /// Whether some axis of it is split over processes: see <ein/mesh.hpp>.
  bool is_placed() const { return data_->placed != nullptr; }
  /// The part that this process has; this tensor if it is whole. Writing through it is seen. Where
  /// one process stands for all of a mesh, `process` says whose.
  Tensor local(int process = 0) const;

  /// The only element's value; an Error of kind `shape` when there is not exactly one.
  template <class T = double>
  T item() const;
  /// All elements, converted to T.
  template <class T>
  std::vector<T> to_vector(Order order = Order::row_major) const;

  /// Sets every element. Writing to a read-only storage, or through a view in which elements
  /// overlap (a repeated axis), is an Error of kind `value`.
  void fill(Scalar value) const;
  /// Copies the elements of `source` (same shape; converted to this dtype) into this tensor's
  /// storage.
  void copy_from(const Tensor& source) const;

  // --- gradients: see <ein/autograd.hpp> ---

  /// Whether gradients flow to this tensor: it was asked for, or computed from one where it was.
  bool requires_grad() const { return data_->grad != nullptr; }
  /// Asks for its gradient, or no longer; an Error of kind `dtype` unless it is floating-point, of
  /// kind `value` when it was computed from others. Copies of the handle share this.
  const Tensor& requires_grad(bool wanted) const;
  /// Adds d this / d leaf to the grad() of every leaf that this scalar was computed from;
  /// `cotangent` has this tensor's shape where it is no scalar.
  void backward() const;
  void backward(const Tensor& cotangent) const;
  /// The gradient that backward() left here; an Error of kind `value` when there is none.
  Tensor grad() const;
  bool has_grad() const;
  void set_grad(const Tensor& gradient) const;
  /// Drops the gradient and frees its memory.
  void zero_grad() const;
  /// Asks backward() to leave a gradient here although this was computed from others.
  void retain_grad() const;
  /// The same elements, through which no gradient flows.
  Tensor detach() const;

  /// What the library keeps of a tensor.
  const detail::TensorData& impl() const { return *data_; }

 private:
  void require_dtype(DType wanted) const;
  std::shared_ptr<const detail::TensorData> data_;
};

/// `count` neighbouring positions along one axis, from the one that `first` holds on.
struct TensorSlice {
  Tensor first;
  Size count = 0;
};
/// The slice of `count` positions from `first` on, a tensor of one i64 or i32, which may be a value
/// of a compiled function: `cache.at({ein::slice_of(position, 2)}).copy_from(rows)`. Errors of
/// kinds `shape` and `dtype` for another tensor, and of kind `value` for a negative count. Unlike a
/// number, a negative `first` does not count from the end.
TensorSlice slice_of(const Tensor& first, Size count);
/// The positions from `first` on that lie before `end`, as slice_of has them. In a function that
/// ein::compile traces `end` must be computed as `first` plus a number, since sizes do not depend
/// on values there: else an Error of kind `value`.
TensorSlice slice(const Tensor& first, const Tensor& end);

/// A tensor's elements written as nested brackets, long axes shortened.
std::string to_string(const Tensor& x);

}  // namespace ein
