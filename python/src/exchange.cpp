#include "exchange.hpp"

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <ein/create.hpp>
#include <ein/detail/wrap_elements.hpp>
#include <ein/dlpack.hpp>
#include <ein/error.hpp>
#include "api/dlpack.hpp"
#include "module.hpp"
#include "tensor/dlpack_abi.hpp"

namespace ein::python {

namespace nb = nanobind;

namespace {

// --- dtypes of NumPy ---

/// By NumPy's number of a type; and the type of each dtype of ein.
struct NumpyTypes {
  std::array<std::optional<DType>, NPY_NTYPES_LEGACY> ours{};
  std::array<PyArray_Descr*, std::size(all_dtypes)> theirs{};
};
NumpyTypes& numpy_types() {
  static NumpyTypes types;
  return types;
}

void know_numpy_types() {
  NumpyTypes& types = numpy_types();
  for (const DType dtype : all_dtypes) {
    const std::string_view code = detail::row_of(dtype).npy;
    if (code.empty()) continue;
    const Ref text = Ref::checked(
        PyUnicode_FromStringAndSize(code.data(), static_cast<Py_ssize_t>(code.size())));
    PyArray_Descr* type = nullptr;
    if (PyArray_DescrConverter(text.get(), &type) != NPY_SUCCEED) throw PythonError();
    types.theirs[static_cast<std::size_t>(dtype)] = type;  // kept for good
  }
  for (int number = 0; number < NPY_NTYPES_LEGACY; ++number) {
    PyArray_Descr* const type = PyArray_DescrFromType(number);
    if (type == nullptr) {
      PyErr_Clear();
      continue;
    }
    for (const DType dtype : all_dtypes) {
      const PyArray_Descr* const same = types.theirs[static_cast<std::size_t>(dtype)];
      if (same != nullptr && PyArray_EquivTypes(type, const_cast<PyArray_Descr*>(same)))
        types.ours[static_cast<std::size_t>(number)] = dtype;
    }
    Py_DECREF(type);
  }
}

/// NumPy's name of a dtype, as ml_dtypes and others have it.
std::string name_of(PyArray_Descr* type) {
  const Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "name"));
  const char* const text = name ? PyUnicode_AsUTF8AndSize(name.get(), nullptr) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text == nullptr ? "?" : text;
}

struct ForeignName {
  std::string_view name;
  DType dtype;
};
constexpr ForeignName foreign_names[] = {
    {"float64", DType::f64},
    {"float32", DType::f32},
    {"float16", DType::f16},
    {"bfloat16", DType::bf16},
    {"float8_e4m3fn", DType::f8e4m3},
    {"float8_e5m2", DType::f8e5m2},
    {"int64", DType::i64},
    {"int32", DType::i32},
    {"int16", DType::i16},
    {"int8", DType::i8},
    {"uint64", DType::u64},
    {"uint32", DType::u32},
    {"uint16", DType::u16},
    {"uint8", DType::u8},
    {"bool", DType::boolean},
    {"complex64", DType::c64},
    {"complex128", DType::c128},
};
static_assert(std::size(foreign_names) == std::size(all_dtypes));

std::optional<DType> dtype_named(std::string_view name) {
  for (const ForeignName& row : foreign_names) {
    if (row.name == name) return row.dtype;
  }
  return parse_dtype(name);
}

DType dtype_of_array(PyArrayObject* array) {
  PyArray_Descr* const type = PyArray_DESCR(array);
  if (PyArray_ISNOTSWAPPED(array)) {
    const int number = type->type_num;
    if (number >= 0 && number < NPY_NTYPES_LEGACY) {
      if (const auto dtype = numpy_types().ours[static_cast<std::size_t>(number)]) return *dtype;
    } else if (const auto dtype = dtype_named(name_of(type))) {
      return *dtype;
    }
    throw Error(ErrorKind::dtype, "an array of NumPy's dtype " + name_of(type) +
                                      " is no tensor\n  help: ein has " + list_dtypes());
  }
  throw Error(ErrorKind::dtype, "an array of " + name_of(type) +
                                    " in another byte order than the machine's is no tensor\n"
                                    "  help: x.astype(x.dtype.newbyteorder('=')) copies it");
}

// --- from NumPy ---

/// The storage of an array of Python's, which it keeps. A tensor's pointer to `storage` owns all of
/// it.
struct PythonStorage {
  PyObject* object;
  Storage storage;

  PythonStorage(PyObject* array, const detail::MemoryReach& reach, bool read_only)
      : object(Py_NewRef(array)),
        // An owner that is not null, and owns nothing: what frees the memory is the reference.
        storage(reach.lowest, reach.bytes, std::shared_ptr<void>(std::shared_ptr<void>(), this),
                read_only) {}
  PythonStorage(const PythonStorage&) = delete;
  PythonStorage& operator=(const PythonStorage&) = delete;
  ~PythonStorage() {
    if (HoldsGil::here()) {
      Py_DECREF(object);
    } else if (Py_IsInitialized()) {  // at the end of the process nobody needs it back
      const PyGILState_STATE state = PyGILState_Ensure();
      Py_DECREF(object);
      PyGILState_Release(state);
    }
  }
};

[[noreturn]] void no_view(PyArrayObject* array, const std::string& why) {
  throw Error(ErrorKind::value,
              "an array of " + name_of(PyArray_DESCR(array)) + " " + why +
                  " is no tensor\n  help: np.array(x) is one, a copy without that");
}

Tensor of_numpy(PyArrayObject* array) {
  auto* const object = reinterpret_cast<PyObject*>(array);
  if (!PyArray_CheckExact(object) && PyObject_HasAttrString(object, "mask"))
    no_view(array, "with a mask, which ein would not see,");
  const DType dtype = dtype_of_array(array);
  const auto rank = static_cast<std::size_t>(PyArray_NDIM(array));
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  Shape shape(rank, 0);
  Strides strides(rank, 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const int dim = static_cast<int>(d);
    shape[d] = static_cast<std::int64_t>(PyArray_DIM(array, dim));
    const auto stride = static_cast<std::int64_t>(PyArray_STRIDE(array, dim));
    if (stride % size != 0 && PyArray_DIM(array, dim) > 1)
      no_view(array, "whose strides are no multiples of its elements' size");
    strides[d] = stride / size;
  }
  if (!PyArray_ISALIGNED(array)) no_view(array, "whose elements are not aligned");
  const detail::MemoryReach reach =
      detail::reach_of_elements(PyArray_DATA(array), dtype, shape, strides);
  const auto kept = std::make_shared<PythonStorage>(object, reach, !PyArray_ISWRITEABLE(array));
  // What Tensor's constructor would check has been.
  return Tensor(std::make_shared<const detail::TensorData>(
      detail::TensorData{std::shared_ptr<Storage>(kept, &kept->storage), std::move(shape),
                         std::move(strides), reach.offset, dtype}));
}

// --- to NumPy ---

PyArray_Descr* numpy_type(DType dtype) {
  if (PyArray_Descr* const type = numpy_types().theirs[static_cast<std::size_t>(dtype)]) {
    Py_INCREF(type);
    return type;
  }
  // Those that NumPy lacks are in ml_dtypes.
  const Ref module(PyImport_ImportModule("ml_dtypes"));
  for (const ForeignName& row : foreign_names) {
    if (!module || row.dtype != dtype) continue;
    const Ref type(PyObject_GetAttrString(module.get(), std::string(row.name).c_str()));
    PyArray_Descr* found = nullptr;
    if (type && PyArray_DescrConverter(type.get(), &found) == NPY_SUCCEED) return found;
  }
  PyErr_Clear();
  throw Error(ErrorKind::dtype,
              "NumPy has no " + std::string(name(dtype)) +
                  "\n  help: pip install ml_dtypes, which adds it; or convert the "
                  "tensor by to(\"f32\")");
}

/// An array over memory that `owner` keeps.
PyObject* view_for_numpy(const ArrayLayout& layout, std::byte* first, bool is_writable, Ref owner) {
  if (layout.sizes.size() > NPY_MAXDIMS) {
    throw Error(ErrorKind::rank, "NumPy's arrays have at most " + std::to_string(NPY_MAXDIMS) +
                                     " axes, and the result has " +
                                     std::to_string(layout.sizes.size()));
  }
  std::array<npy_intp, NPY_MAXDIMS> strides;
  const auto size = static_cast<npy_intp>(size_of(layout.dtype));
  for (std::size_t d = 0; d < layout.strides.size(); ++d)
    strides[d] = static_cast<npy_intp>(layout.strides[d]) * size;
  Ref array = Ref::checked(PyArray_NewFromDescr(
      &PyArray_Type, numpy_type(layout.dtype), static_cast<int>(layout.sizes.size()),
      layout.sizes.data(), strides.data(), first,
      is_writable && !layout.repeats ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array.get()),
                      NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), owner.release()) < 0)
    throw PythonError();
  return array.release();
}
PyObject* view_for_numpy(const Tensor& x, Ref owner) {
  return view_for_numpy(ArrayLayout(x), static_cast<std::byte*>(x.raw_data()),
                        !x.storage()->read_only(), std::move(owner));
}

constexpr const char* kept_name = "ein.Tensor";
Ref kept(const Tensor& x) {
  auto* const tensor = new Tensor(x);
  PyObject* const capsule = PyCapsule_New(tensor, kept_name, [](PyObject* self) {
    delete static_cast<Tensor*>(PyCapsule_GetPointer(self, kept_name));
  });
  if (capsule == nullptr) delete tensor;
  return Ref::checked(capsule);
}

/// So few bytes are copied sooner than kept.
constexpr std::size_t most_copied = 2048;

PyArrayObject* new_numpy(const ArrayLayout& layout) {
  return reinterpret_cast<PyArrayObject*>(
      Ref::checked(PyArray_NewFromDescr(&PyArray_Type, numpy_type(layout.dtype),
                                        static_cast<int>(layout.sizes.size()), layout.sizes.data(),
                                        nullptr, nullptr, 0, nullptr))
          .release());
}

PyObject* copied_for_numpy(const Tensor& x) {
  PyArrayObject* const array = new_numpy(ArrayLayout(x));
  std::memcpy(PyArray_DATA(array), x.raw_data(), x.nbytes());
  return reinterpret_cast<PyObject*>(array);
}

// --- DLPack ---

constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* unversioned_name = "dltensor";

/// What a type has for exchange.
struct ForeignType {
  PyTypeObject* type = nullptr;
  bool has_dlpack = false;
  const DLPackExchangeAPI* api = nullptr;  // functions without calls of Python's between, or null
  bool may_want_gradient = false;          // its objects say whether they want a gradient
};

PyObject* gradient_name() {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  return name;
}

/// Kept for the types that were seen last.
ForeignType foreign_type(PyTypeObject* type) {
  static std::array<ForeignType, 4> seen{};  // guarded by the GIL; a type that is here is not freed
  static std::size_t next = 0;
  for (const ForeignType& entry : seen) {
    if (entry.type == type) return entry;
  }
  ForeignType found;
  found.type = type;
  auto* const object = reinterpret_cast<PyObject*>(type);
  const Ref capsule(PyObject_GetAttrString(object, "__dlpack_c_exchange_api__"));
  if (capsule && PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api")) {
    found.api = static_cast<const DLPackExchangeAPI*>(
        PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
    // Of a later version it has an earlier one behind it.
    while (found.api != nullptr && found.api->header.version.major > 1)
      found.api = reinterpret_cast<const DLPackExchangeAPI*>(found.api->header.prev_api);
  }
  PyErr_Clear();
  found.has_dlpack = PyObject_HasAttrString(object, "__dlpack__") != 0;
  found.may_want_gradient = PyObject_HasAttr(object, gradient_name()) != 0;
  Py_INCREF(type);
  Py_XDECREF(seen[next].type);
  seen[next] = found;
  next = (next + 1) % seen.size();
  return found;
}

/// Whether a tensor of PyTorch wants a gradient where gradients are recorded.
bool wants_gradient(PyObject* object) {
  const Ref wanted(PyObject_GetAttr(object, gradient_name()));
  if (!wanted) PyErr_Clear();
  if (wanted.get() != Py_True) return false;
  const Ref torch = Ref::checked(PyImport_ImportModule("torch"));
  const Ref enabled = Ref::checked(PyObject_CallMethod(torch.get(), "is_grad_enabled", nullptr));
  return enabled.get() == Py_True;
}

/// What a method of PyTorch's tensors without arguments says; of other objects nothing.
bool says_yes(PyObject* object, PyObject* method) {
  const Ref answer(PyObject_CallMethodNoArgs(object, method));
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}
PyObject* is_negative_name() {
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  return name;
}
PyObject* is_conjugate_name() {
  static PyObject* const name = PyUnicode_InternFromString("is_conj");
  return name;
}

/// A tensor of PyTorch may stand for the conjugates or the negatives of what its memory has, as
/// x.conj() and x.conj().imag do, which DLPack does not say: then one that has them in memory. Null
/// for others.
Ref resolved(PyObject* object) {
  if (says_yes(object, is_conjugate_name()))
    return Ref::checked(PyObject_CallMethod(object, "resolve_conj", nullptr));
  if (says_yes(object, is_negative_name()))
    return Ref::checked(PyObject_CallMethod(object, "resolve_neg", nullptr));
  return Ref();
}

/// Waits for what the producer's library has given to a GPU: ein works on a stream of its own.
void wait_for_producer(PyObject* object) {
  const Ref torch = Ref::checked(PyImport_ImportModule("torch"));
  const Ref gpus = Ref::checked(PyObject_GetAttrString(torch.get(), "cuda"));
  const Ref device = Ref::checked(PyObject_GetAttrString(object, "device"));
  const Ref stream =
      Ref::checked(PyObject_CallMethod(gpus.get(), "current_stream", "O", device.get()));
  Ref::checked(PyObject_CallMethod(stream.get(), "synchronize", nullptr));
}

template <class Managed>
Tensor taken(Managed* managed) {
  std::unique_ptr<Managed, detail::DropDlpack> dropped(managed);
  Tensor x = from_dlpack(managed);
  dropped.release();
  return x;
}

template <class Managed>
Tensor of_capsule(PyObject* capsule, const char* name, const char* used_name) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) throw PythonError();
  Tensor x = from_dlpack(managed);  // until then the capsule drops it
  PyCapsule_SetName(capsule, used_name);
  return x;
}

/// By the method that all have.
Tensor by_method(PyObject* object) {
  const Ref method(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    const Ref type = Ref::checked(
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__name__"));
    const char* const text = PyUnicode_AsUTF8AndSize(type.get(), nullptr);
    throw Error(ErrorKind::value,
                std::string("an operand of type ") + (text == nullptr ? "?" : text) +
                    " is no tensor\n  help: ein takes ein.Tensor, NumPy arrays and what has "
                    "__dlpack__, as tensors of PyTorch, JAX and CuPy do");
  }
  const Ref none(PyTuple_New(0));
  const Ref version(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
  if (!none || !version) throw PythonError();
  Ref capsule(PyObject_Call(method.get(), none.get(), version.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // before DLPack 1.0
    PyErr_Clear();
    capsule = Ref(PyObject_Call(method.get(), none.get(), nullptr));
  }
  if (!capsule) throw PythonError();
  if (PyCapsule_IsValid(capsule.get(), versioned_name)) {
    return of_capsule<DLManagedTensorVersioned>(capsule.get(), versioned_name,
                                                "used_dltensor_versioned");
  }
  return of_capsule<DLManagedTensor>(capsule.get(), unversioned_name, "used_dltensor");
}

Tensor of_foreign(PyObject* object) {
  const ForeignType type = foreign_type(Py_TYPE(object));
  if (type.may_want_gradient && wants_gradient(object)) throw GradientWanted();
  if (type.may_want_gradient) {
    if (const Ref plain = resolved(object)) return of_foreign(plain.get());
  }
  if (type.api == nullptr || type.api->managed_tensor_from_py_object_no_sync == nullptr)
    return by_method(object);
  DLManagedTensorVersioned* managed = nullptr;
  if (type.api->managed_tensor_from_py_object_no_sync(object, &managed) != 0) throw PythonError();
  Tensor x = taken(managed);
  if (x.device() != cpu) wait_for_producer(object);
  return x;
}

/// The library that a type is of: "torch" of torch.nn.parameter.Parameter.
std::string library_of(PyObject* object) {
  const Ref module = Ref::checked(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
  const char* const text = PyUnicode_AsUTF8AndSize(module.get(), nullptr);
  if (text == nullptr) throw PythonError();
  const std::string name(text);
  return name.substr(0, name.find('.'));
}

/// By the library's own from_dlpack.
PyObject* by_function(const Tensor& x, PyObject* like) {
  const std::string library = library_of(like);
  const bool has_strides = library != "jax" && library != "jaxlib";
  const Ref ours = Ref::checked(to_ein(has_strides ? x : x.contiguous()));
  Ref space(PyObject_HasAttrString(like, "__array_namespace__")
                ? PyObject_CallMethod(like, "__array_namespace__", nullptr)
                : PyImport_ImportModule(library.c_str()));
  return Ref::checked(PyObject_CallMethod(Ref::checked(space.release()).get(), "from_dlpack", "O",
                                          ours.get()))
      .release();
}

PyObject* to_foreign(const Tensor& x, PyObject* like) {
  const DLPackExchangeAPI* const api = foreign_type(Py_TYPE(like)).api;
  if (api == nullptr || api->managed_tensor_to_py_object_no_sync == nullptr)
    return by_function(x, like);
  DlpackPointer managed(to_dlpack(x));
  void* object = nullptr;
  if (api->managed_tensor_to_py_object_no_sync(managed.get(), &object) != 0) throw PythonError();
  managed.release();
  return static_cast<PyObject*>(object);
}

}  // namespace

// --- memory of arrays ---

static_assert(std::is_same_v<npy_intp, std::int64_t>);

namespace {

bool look_at_numpy(PyArrayObject* array, ArrayMemory& found) {
  const int type = PyArray_TYPE(array);
  if (!PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array) || type < 0 ||
      type >= NPY_NTYPES_LEGACY)
    return false;
  found.element = type;
  found.is_foreign = false;
  found.first = static_cast<std::byte*>(PyArray_DATA(array));
  found.rank = static_cast<std::size_t>(PyArray_NDIM(array));
  found.sizes = PyArray_DIMS(array);
  found.strides = PyArray_STRIDES(array);
  return true;
}

bool look_at_foreign(PyObject* object, ArrayMemory& found) {
  const ForeignType type = foreign_type(Py_TYPE(object));
  if (type.api == nullptr || type.api->dltensor_from_py_object_no_sync == nullptr ||
      type.api->managed_tensor_to_py_object_no_sync == nullptr)
    return false;
  if (type.may_want_gradient && wants_gradient(object)) throw GradientWanted();
  DLTensor x{};
  if (type.api->dltensor_from_py_object_no_sync(object, &x) != 0) {
    PyErr_Clear();
    return false;
  }
  if (x.device.device_type != kDLCPU || x.ndim < 0 || (x.ndim > 0 && x.strides == nullptr))
    return false;
  if (type.may_want_gradient &&
      (says_yes(object, is_negative_name()) ||
       (x.dtype.code == kDLComplex && says_yes(object, is_conjugate_name()))))
    return false;
  found.element = x.dtype.code | x.dtype.bits << 8 | x.dtype.lanes << 16;
  found.is_foreign = true;
  found.first = static_cast<std::byte*>(x.data) + x.byte_offset;
  found.rank = static_cast<std::size_t>(x.ndim);
  found.sizes = x.shape;
  found.strides = x.strides;
  return true;
}

}  // namespace

bool look_at_memory(PyObject* object, ArrayMemory& found) {
  found.type = Py_TYPE(object);
  return PyArray_CheckExact(object) ? look_at_numpy(reinterpret_cast<PyArrayObject*>(object), found)
                                    : look_at_foreign(object, found);
}

ArrayLayout::ArrayLayout(const Tensor& x)
    : dtype(x.dtype()), bytes(x.nbytes()), is_contiguous(x.is_contiguous()) {
  for (std::size_t d = 0; d < x.rank(); ++d) {
    sizes.push_back(x.shape()[d]);
    strides.push_back(x.strides()[d]);
    repeats = repeats || (strides[d] == 0 && sizes[d] > 1);
  }
}

bool ArrayLayout::can_be_new() const {
  return is_contiguous && bytes <= most_copied && sizes.size() <= NPY_MAXDIMS;
}

/// One block of memory: this, the sizes and strides, and the elements.
struct NewArray::Block {
  DLManagedTensorVersioned managed;

  static Block* make(const ArrayLayout& layout) {
    constexpr std::size_t line = 64;
    const std::size_t rank = layout.sizes.size();
    const std::size_t before =
        (sizeof(Block) + 2 * rank * sizeof(std::int64_t) + line - 1) / line * line;
    auto* const memory =
        static_cast<std::byte*>(::operator new(before + layout.bytes, std::align_val_t(line)));
    auto* const block = new (memory) Block();
    auto* const sizes = reinterpret_cast<std::int64_t*>(block + 1);
    std::copy(layout.sizes.begin(), layout.sizes.end(), sizes);
    std::copy(layout.strides.begin(), layout.strides.end(), sizes + rank);
    block->managed.version = {1, 0};
    block->managed.manager_ctx = block;
    block->managed.deleter = [](DLManagedTensorVersioned* self) {
      drop(static_cast<Block*>(self->manager_ctx));
    };
    DLTensor& x = block->managed.dl_tensor;
    x.data = memory + before;
    x.device = {kDLCPU, 0};
    x.ndim = static_cast<std::int32_t>(rank);
    x.dtype = dlpack_type(layout.dtype);
    x.shape = sizes;
    x.strides = sizes + rank;
    return block;
  }
  static void drop(Block* block) { ::operator delete(block, std::align_val_t(64)); }
};

NewArray::NewArray(const ArrayLayout& layout, PyObject* like) : like_(like) {
  if (PyArray_CheckExact(like)) {
    PyArrayObject* const array = new_numpy(layout);
    numpy_ = Ref(reinterpret_cast<PyObject*>(array));
    data_ = static_cast<std::byte*>(PyArray_DATA(array));
  } else {
    block_ = Block::make(layout);
    data_ = static_cast<std::byte*>(block_->managed.dl_tensor.data);
  }
}

NewArray::~NewArray() {
  if (block_ != nullptr) Block::drop(block_);
}

PyObject* NewArray::release() {
  if (block_ == nullptr) return numpy_.release();
  void* object = nullptr;
  if (foreign_type(Py_TYPE(like_))
          .api->managed_tensor_to_py_object_no_sync(&block_->managed, &object) != 0)
    throw PythonError();
  block_ = nullptr;
  return static_cast<PyObject*>(object);
}

PyObject* array_viewing(PyObject* numpy, const ArrayLayout& layout, std::byte* first) {
  return view_for_numpy(layout, first, PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(numpy)),
                        Ref::borrowed(numpy));
}

bool& HoldsGil::flag() {
  thread_local bool holds = false;
  return holds;
}

void import_numpy() {
  if (_import_array() < 0) throw PythonError();
  know_numpy_types();
}

bool is_array(PyObject* object) {
  return PyArray_Check(object) || foreign_type(Py_TYPE(object)).has_dlpack ||
         PyObject_HasAttrString(object, "__dlpack__");
}

Tensor tensor_of(PyObject* object) {
  if (PyArray_Check(object)) return of_numpy(reinterpret_cast<PyArrayObject*>(object));
  if (foreign_type(Py_TYPE(object)).api != nullptr) return of_foreign(object);
  if (const Tensor* const tensor = ein_tensor(object)) return *tensor;
  if (PyNumber_Check(object) && !is_array(object)) {
    // A number, or one of NumPy's scalars.
    const Ref array = Ref::checked(PyArray_FromAny(object, nullptr, 0, 0, 0, nullptr));
    return of_numpy(reinterpret_cast<PyArrayObject*>(array.get()));
  }
  return of_foreign(object);
}

const Tensor* ein_tensor(PyObject* object) {
  return nb::inst_check(object) && nb::isinstance<Tensor>(object) ? nb::inst_ptr<Tensor>(object)
                                                                  : nullptr;
}

PyObject* to_ein(const Tensor& tensor) { return nb::cast(tensor).release().ptr(); }

PyObject* to_numpy(const Tensor& tensor) {
  if (!tensor.storage()) detail::no_elements_here(tensor.impl());
  return view_for_numpy(tensor, kept(tensor));
}

void Like::see(PyObject* operand) {
  if (foreign_ == nullptr && !PyArray_Check(operand) && is_array(operand)) foreign_ = operand;
}

PyObject* Like::make(const Tensor& tensor, std::span<PyObject* const> objects,
                     std::span<const Tensor> operands) const {
  if (foreign_ != nullptr)
    return ein_tensor(foreign_) != nullptr ? to_ein(tensor) : to_foreign(tensor, foreign_);
  if (!tensor.storage()) return to_ein(tensor);  // of a function that is traced
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (tensor.storage() == operands[k].storage() && PyArray_Check(objects[k]))
      return view_for_numpy(tensor, Ref::borrowed(objects[k]));
  }
  if (ArrayLayout(tensor).can_be_new()) return copied_for_numpy(tensor);
  return view_for_numpy(tensor, kept(tensor));
}

PyObject* Like::make(const std::vector<Tensor>& results, std::span<PyObject* const> objects,
                     std::span<const Tensor> operands) const {
  if (results.size() == 1) return make(results.front(), objects, operands);
  Ref tuple = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (std::size_t i = 0; i < results.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), make(results[i], objects, operands));
  }
  return tuple.release();
}

DType dtype_of_python(PyObject* object) {
  // A text, numpy.float32, numpy.dtype("float32"), torch.float32.
  std::string name;
  Ref text = PyUnicode_Check(object) ? Ref::borrowed(object)
                                     : Ref(PyObject_GetAttrString(object, "__name__"));
  if (!text) {
    PyErr_Clear();
    text = Ref(PyObject_GetAttrString(object, "name"));
  }
  if (!text) {
    PyErr_Clear();
    text = Ref::checked(PyObject_Str(object));
  }
  if (const char* const utf8 = PyUnicode_AsUTF8AndSize(text.get(), nullptr))
    name = utf8;
  else
    throw PythonError();
  if (name.rfind('.') != name.npos) name = name.substr(name.rfind('.') + 1);
  if (const auto dtype = dtype_named(name == "bool_" ? "bool" : name)) return *dtype;
  throw Error(ErrorKind::dtype, "ein has no dtype '" + name + "'\n  help: it has " + list_dtypes());
}

}  // namespace ein::python
