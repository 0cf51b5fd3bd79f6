// Arrays of Python as tensors, and tensors as arrays of the library that a call's operands are of.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ein/tensor.hpp>

namespace ein::python {

/// Python's own error is set; nothing is to be added.
struct PythonError : std::exception {};

/// An operand is a tensor of PyTorch that wants a gradient, which the call would lose.
struct GradientWanted : std::exception {};

/// Owns a reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref borrowed(PyObject* object) { return Ref(Py_XNewRef(object)); }
  /// Of what a function of Python's returned: a PythonError for null.
  static Ref checked(PyObject* owned) {
    if (owned == nullptr) throw PythonError();
    return Ref(owned);
  }
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* const before = object_;
    object_ = other.release();
    Py_XDECREF(before);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() {
    PyObject* const object = object_;
    object_ = nullptr;
    return object;
  }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// Makes an Error, PythonError or other exception Python's; returns null. To be called where one is
/// being handled.
PyObject* set_python_error();

/// What a call's results are to be: what its first operand is that is no NumPy array, else NumPy
/// arrays.
class Like {
 public:
  void see(PyObject* operand);
  /// A tensor as an array of that library, without a copy, but for small ones. `operands` are the
  /// call's, with their tensors: a result that views one of them keeps it alive.
  PyObject* make(const Tensor& tensor, std::span<PyObject* const> objects,
                 std::span<const Tensor> operands) const;
  /// One, or a tuple of several.
  PyObject* make(const std::vector<Tensor>& results, std::span<PyObject* const> objects,
                 std::span<const Tensor> operands) const;

 private:
  PyObject* foreign_ = nullptr;  // borrowed from the call
};

/// Where an array's elements lie, which it keeps alive.
struct ArrayMemory {
  const PyTypeObject* type = nullptr;
  std::intptr_t element = 0;  // its type, as the array's library has it
  bool is_foreign = false;    // no NumPy array
  std::byte* first = nullptr;
  std::size_t rank = 0;
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;  // in what its library counts
};
/// Of a NumPy array, or of one of a library that tells it without Python's calls. False for others,
/// and for what tensor_of may refuse. A GradientWanted as tensor_of throws it.
bool look_at_memory(PyObject* object, ArrayMemory& found);

/// What an array is that is to be made: of a result of a call.
struct ArrayLayout {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes{}, strides{};  // in elements
  std::size_t bytes = 0;
  bool is_contiguous = false, repeats = false;  // some elements lie at one place

  ArrayLayout() = default;
  explicit ArrayLayout(const Tensor& x);
  /// Whether a NewArray can have it: few elements side by side.
  bool can_be_new() const;
};

/// An array with memory of its own, whose elements are to be written.
class NewArray {
 public:
  /// Of the kind of `like`, a NumPy array or what look_at_memory takes.
  NewArray(const ArrayLayout& layout, PyObject* like);
  ~NewArray();
  NewArray(const NewArray&) = delete;
  NewArray& operator=(const NewArray&) = delete;
  std::byte* data() const { return data_; }
  PyObject* release();

 private:
  struct Block;
  Ref numpy_;
  Block* block_ = nullptr;  // of another library
  PyObject* like_;
  std::byte* data_ = nullptr;
};
/// A NumPy array that views another one, from `first` on.
PyObject* array_viewing(PyObject* numpy, const ArrayLayout& layout, std::byte* first);

/// An ein.Tensor, a NumPy array, whatever has DLPack, or a number or list that NumPy makes an array
/// of. Shares memory; an Error where the array cannot be a tensor.
Tensor tensor_of(PyObject* object);
/// Whether it is one by itself, and no number or list.
bool is_array(PyObject* object);

PyObject* to_numpy(const Tensor& tensor);
/// A new ein.Tensor.
PyObject* to_ein(const Tensor& tensor);
/// The ein.Tensor's, or null.
const Tensor* ein_tensor(PyObject* object);

/// "f32" and NumPy's and PyTorch's dtypes by their names: float32, bool, bfloat16 ...
DType dtype_of_python(PyObject* object);

/// "cpu", "cuda", "cuda:1".
Device device_named(const std::string& text);

void import_numpy();  // a PythonError where there is none

/// This thread is known to hold the GIL as long as it lives, so that what is dropped meanwhile need
/// not ask for it.
class HoldsGil {
 public:
  HoldsGil() : before_(flag()) { flag() = true; }
  ~HoldsGil() { flag() = before_; }
  HoldsGil(const HoldsGil&) = delete;
  HoldsGil& operator=(const HoldsGil&) = delete;
  static bool here() { return flag(); }

 private:
  friend class WithoutGil;
  friend class WithGil;
  static bool& flag();
  bool before_;
};

/// Releases the GIL as long as it lives, if `wanted`.
class WithoutGil {
 public:
  explicit WithoutGil(bool wanted) {
    if (!wanted) return;
    held_ = std::exchange(HoldsGil::flag(), false);
    state_ = PyEval_SaveThread();
  }
  ~WithoutGil() {
    if (state_ == nullptr) return;
    PyEval_RestoreThread(state_);
    HoldsGil::flag() = held_;
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_ = nullptr;
  bool held_ = false;
};

/// Holds the GIL in a function that ein calls, which a WithoutGil around may have released.
class WithGil {
 public:
  WithGil() : state_(PyGILState_Ensure()), before_(std::exchange(HoldsGil::flag(), true)) {}
  ~WithGil() {
    HoldsGil::flag() = before_;
    PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
  bool before_;
};

}  // namespace ein::python
