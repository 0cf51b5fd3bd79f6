// Calls with a pattern, from the table of operations: `einsum(x, y, "i k, k j -> i j")`. Each row
// of the table is a function here, with its text for help().
#include <Python.h>

#include <nanobind/stl/string.h>

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/cost.hpp>
#include <ein/error.hpp>
#include <ein/map.hpp>
#include <ein/named.hpp>
#include <ein/ops.hpp>
#include "api/calls.hpp"
#include "calls.hpp"
#include "exchange.hpp"
#include "kept_calls.hpp"
#include "module.hpp"
#include "python_function.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

std::string_view text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(object, &size);
  if (utf8 == nullptr) throw PythonError();
  return {utf8, static_cast<std::size_t>(size)};
}

[[noreturn]] void misused(Operation op, const std::string& what) {
  throw Error(ErrorKind::value, std::string(name(op)) + ": " + what);
}

std::int64_t integer_of(Operation op, std::string_view keyword, PyObject* object) {
  const Ref index(PyNumber_Index(object));
  if (!index) {
    PyErr_Clear();
    misused(op, std::string(keyword) + " must be an integer");
  }
  const long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw Error(ErrorKind::overflow,
                std::string(name(op)) + ": " + std::string(keyword) + " exceeds 63 bits");
  }
  return value;
}

double real_of(Operation op, std::string_view keyword, PyObject* object) {
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    misused(op, std::string(keyword) + " must be a number");
  }
  return value;
}

bool flag_of(PyObject* object) {
  const int value = PyObject_IsTrue(object);
  if (value < 0) throw PythonError();
  return value != 0;
}

/// One, or those of a list or tuple.
template <class F>
void for_each_of(PyObject* object, const F& f) {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return f(object);
  const Py_ssize_t count = PySequence_Size(object);
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Ref item = Ref::checked(PySequence_GetItem(object, i));
    f(item.get());
  }
}

/// What a call says beside operands, pattern and sizes: a keyword, the operations that read it, as
/// the table says it or by name, and where it goes.
struct Keyword {
  const char* name;
  const char* type;  // as a stub has it
  const char* default_;
  unsigned said;        // of CallSays; 0: `of` says which operations
  const Operation* of;  // ends with one that has no builder
  void (*take)(Arguments& to, PyObject* value);
};

constexpr Operation none = Operation::layer;
constexpr Operation sorts[] = {Operation::sort, none}, tops[] = {Operation::top_k, none},
                    searches[] = {Operation::searchsorted, none}, rolls[] = {Operation::roll, none},
                    pads[] = {Operation::pad, none},
                    triangles[] = {Operation::tril, Operation::triu, none},
                    diagonals[] = {Operation::diagonal, Operation::from_diagonal, none},
                    draws[] = {Operation::multinomial, none},
                    histograms[] = {Operation::histogram, none},
                    quantiles[] = {Operation::quantile, none},
                    losses[] = {Operation::cross_entropy, none}, sums[] = {Operation::einsum, none};

void add_numbers(Arguments& to, const char* keyword, PyObject* value, std::size_t at) {
  std::vector<Size> numbers;
  for_each_of(value, [&](PyObject* one) { numbers.emplace_back(integer_of(to.op, keyword, one)); });
  to.numbers.insert(to.numbers.begin() + static_cast<std::ptrdiff_t>(at), numbers.begin(),
                    numbers.end());
}

Scalar scalar_of(Operation op, std::string_view keyword, PyObject* value) {
  if (PyBool_Check(value)) return Scalar(value == Py_True);
  if (PyIndex_Check(value)) return Scalar(integer_of(op, keyword, value));
  return Scalar(real_of(op, keyword, value));
}

const Keyword keywords[] = {
    {"dtype", "DTypeLike | None", "None", grammar::CallSays::dtype, nullptr,
     [](Arguments& to, PyObject* value) {
       if (value != Py_None) to.named.dtype = dtype_of_python(value);
     }},
    {"eps", "float", "1e-5, of rms_norm 1e-6", grammar::CallSays::eps, nullptr,
     [](Arguments& to, PyObject* value) {
       to.named.eps = real_of(to.op, "eps", value);
       if (!(to.named.eps >= 0)) misused(to.op, "eps must not be negative");
     }},
    {"k", "int", nullptr, grammar::CallSays::count, nullptr,
     [](Arguments& to, PyObject* value) { to.named.k = integer_of(to.op, "k", value); }},
    {"descending", "bool", "False", 0, sorts,
     [](Arguments& to, PyObject* value) { to.named.descending = flag_of(value); }},
    {"least", "bool", "False", 0, tops,
     [](Arguments& to, PyObject* value) { to.named.descending = !flag_of(value); }},
    {"right", "bool", "False", 0, searches,
     [](Arguments& to, PyObject* value) { to.named.right = flag_of(value); }},
    {"shifts", "int | Sequence[int]", nullptr, 0, rolls,
     [](Arguments& to, PyObject* value) { add_numbers(to, "shifts", value, 0); }},
    {"before", "int | Sequence[int]", nullptr, 0, pads,
     [](Arguments& to, PyObject* value) {
       const std::size_t others = to.numbers.size();
       add_numbers(to, "before", value, 0);
       to.named.k = static_cast<std::int64_t>(to.numbers.size() - others);
     }},
    {"after", "int | Sequence[int]", nullptr, 0, pads,
     [](Arguments& to, PyObject* value) { add_numbers(to, "after", value, to.numbers.size()); }},
    {"value", "float", "0", 0, pads,
     [](Arguments& to, PyObject* value) { to.named.otherwise = scalar_of(to.op, "value", value); }},
    {"mode", "Literal['reflect', 'replicate', 'wrap'] | None", "None", 0, pads,
     [](Arguments& to, PyObject* value) {
       if (value == Py_None) return;
       const std::string_view mode = text_of(value);
       if (mode == "reflect")
         to.named.pad_mode = PadMode::reflect;
       else if (mode == "replicate")
         to.named.pad_mode = PadMode::replicate;
       else if (mode == "wrap")
         to.named.pad_mode = PadMode::wrap;
       else
         misused(to.op, "mode may be 'reflect', 'replicate' or 'wrap'");
     }},
    {"diagonal", "int", "0", 0, triangles,
     [](Arguments& to, PyObject* value) { add_numbers(to, "diagonal", value, 0); }},
    {"otherwise", "float", "0", 0, triangles,
     [](Arguments& to, PyObject* value) {
       to.named.otherwise = scalar_of(to.op, "otherwise", value);
     }},
    {"offset", "int", "0", 0, diagonals,
     [](Arguments& to, PyObject* value) { add_numbers(to, "offset", value, 0); }},
    {"samples", "int", nullptr, 0, draws,
     [](Arguments& to, PyObject* value) { add_numbers(to, "samples", value, 0); }},
    {"bins", "int", nullptr, 0, histograms,
     [](Arguments& to, PyObject* value) { add_numbers(to, "bins", value, 0); }},
    {"range", "tuple[float, float]", nullptr, 0, histograms,
     [](Arguments& to, PyObject* value) {
       for_each_of(value, [&](PyObject* one) { to.reals.push_back(real_of(to.op, "range", one)); });
     }},
    {"q", "float | Sequence[float]", nullptr, 0, quantiles,
     [](Arguments& to, PyObject* value) {
       to.named.keeps_axis = PyList_Check(value) || PyTuple_Check(value);
       for_each_of(value, [&](PyObject* one) { to.reals.push_back(real_of(to.op, "q", one)); });
     }},
    {"interpolation", "Literal['linear', 'lower', 'higher', 'nearest', 'midpoint']", "'linear'", 0,
     quantiles,
     [](Arguments& to, PyObject* value) {
       const std::string_view word = text_of(value);
       constexpr std::string_view words[] = {"linear", "lower", "higher", "nearest", "midpoint"};
       for (std::size_t i = 0; i < std::size(words); ++i) {
         if (words[i] != word) continue;
         to.named.interpolation = static_cast<Interpolation>(i);
         return;
       }
       misused(to.op, "interpolation may be 'linear', 'lower', 'higher', 'nearest' or 'midpoint'");
     }},
    {"ignored", "int | None", "None", 0, losses,
     [](Arguments& to, PyObject* value) {
       if (value != Py_None) to.named.ignored = integer_of(to.op, "ignored", value);
     }},
    {"smoothing", "float", "0", 0, losses,
     [](Arguments& to, PyObject* value) {
       to.named.smoothing = real_of(to.op, "smoothing", value);
     }},
    {"sums_alone", "bool", "False", 0, sums,
     [](Arguments& to, PyObject* value) { to.sums_alone = flag_of(value); }},
    {"max_intermediate", "int", "0", 0, sums,
     [](Arguments& to, PyObject* value) {
       to.max_intermediate = integer_of(to.op, "max_intermediate", value);
     }},
};

bool is_read_by(const Keyword& keyword, Operation op) {
  if (keyword.said != 0) return (info(op).reads & keyword.said) != 0;
  for (const Operation* reader = keyword.of; *reader != none; ++reader) {
    if (*reader == op) return true;
  }
  return false;
}

const Keyword* find_keyword(std::string_view name, Operation op) {
  for (const Keyword& keyword : keywords) {
    if (keyword.name == name && is_read_by(keyword, op)) return &keyword;
  }
  return nullptr;
}

/// A keyword of the operation, or else the size of an axis. A dtype as a number is the size of an
/// axis of that name.
void take_keyword(Arguments& to, PyObject* key, PyObject* value) {
  const std::string_view name = text_of(key);
  const Keyword* const keyword = find_keyword(name, to.op);
  if (keyword != nullptr && !(name == "dtype" && PyLong_Check(value)))
    return keyword->take(to, value);
  if ((info(to.op).reads & grammar::CallSays::sizes) == 0) {
    throw Error(ErrorKind::axis_argument, std::string(ein::name(to.op)) +
                                              ": takes no sizes of axes, and no '" +
                                              std::string(name) + "'");
  }
  to.sizes.push_back({name, integer_of(to.op, name, value)});
}

}  // namespace

void Arguments::add_operand(PyObject* object) {
  like.see(object);
  operands.push_back(tensor_of(object));
  objects.push_back(object);
}

Arguments::Arguments(Operation operation, PyObject* const* given, std::size_t count,
                     PyObject* names)
    : op(operation) {
  operands.reserve(count);
  objects.reserve(count);
  named.eps = op == Operation::rms_norm ? 1e-6 : 1e-5;
  if ((info(op).reads & grammar::CallSays::eps) == 0) named.eps = 0;
  named.descending = op == Operation::top_k;
  std::size_t at = 0;
  for (; at < count && !PyUnicode_Check(given[at]); ++at) {
    if (!PyList_Check(given[at]) && !(PyTuple_Check(given[at]))) {
      add_operand(given[at]);
      continue;
    }
    is_list = true;
    for_each_of(given[at], [&](PyObject* one) { add_operand(one); });
  }
  if (at == count) misused(op, "the pattern is missing, a str behind the operands");
  pattern = text_of(given[at++]);
  take_others(given + at, count - at, names);
  named.numbers = numbers;
  named.reals = reals;
}

void Arguments::take_others(PyObject* const* given, std::size_t count, PyObject* names) {
  const bool wants_function = info(op).stands == OperationInfo::with_a_function;
  const bool wants_reduction = op == Operation::reduce;
  std::size_t at = 0;
  if (wants_function && at < count) function = given[at++];
  if ((wants_reduction || wants_function) && at < count) take_reduction(given[at++]);
  // Others that stand behind the pattern without a name: those of the operation, in their order.
  for (const Keyword& keyword : keywords) {
    if (at == count) break;
    if (keyword.default_ == nullptr && is_read_by(keyword, op)) keyword.take(*this, given[at++]);
  }
  if (at < count) misused(op, "too many arguments behind the pattern");
  const std::size_t keys = names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_Size(names));
  for (std::size_t i = 0; i < keys; ++i) {
    const Ref key = Ref::checked(PySequence_GetItem(names, static_cast<Py_ssize_t>(i)));
    PyObject* const value = given[count + i];
    const std::string_view name = text_of(key.get());
    if ((wants_reduction || wants_function) && !has_reduction && name == "reduction") {
      if (value != Py_None) take_reduction(value);
    } else if (wants_function && function == nullptr && name == "function") {
      function = value;
    } else {
      take_keyword(*this, key.get(), value);
    }
  }
  if (wants_reduction && !has_reduction) misused(op, "the reduction is missing, such as 'mean'");
  if (wants_function && (function == nullptr || PyCallable_Check(function) == 0))
    misused(op, "the function of elements is missing behind the pattern");
}

void Arguments::take_reduction(PyObject* object) {
  if (!PyUnicode_Check(object))
    misused(op, "a reduction is a name, such as 'mean'; functions are for ein.einops.reduce");
  reduction = reduction_named(text_of(object));
  has_reduction = true;
}

bool Arguments::is_small() const {
  // How many index tuples there are is at most the product of the operands' sizes.
  double tuples = sizes.empty() ? 1 : 1e9;
  for (const Tensor& x : operands) {
    if (!x.numel().is_number()) return true;  // of a function that is traced for any length
    tuples *= 1 + static_cast<double>(std::int64_t{x.numel()});
  }
  return tuples <= 16384;
}

template <class F>
auto Arguments::with_call(const F& function_of_call) const {
  std::array<const Tensor*, 8> few;
  std::vector<const Tensor*> many;
  if (operands.size() > few.size()) many.resize(operands.size());
  const std::span<const Tensor*> addresses(many.empty() ? few.data() : many.data(),
                                           operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) addresses[k] = &operands[k];
  const detail::PatternArgument text(pattern);
  if (function != nullptr) {
    const detail::TensorFunction traced = [](const void* context,
                                             std::span<const Tensor> x) -> std::vector<Tensor> {
      auto* const called = static_cast<PyObject*>(const_cast<void*>(context));
      return {call_python_for_one("map", called, x)};
    };
    return function_of_call(detail::MapCall{text, addresses, sizes, traced, function,
                                            has_reduction ? std::optional(reduction) : std::nullopt,
                                            named.dtype});
  }
  if (info(op).form.brackets != grammar::Form::no_brackets)
    return function_of_call(detail::NamedCall{op, text, addresses, sizes, named});
  const bool joins = op == Operation::rearrange;
  return function_of_call(detail::Call{op,
                                       text,
                                       addresses,
                                       sizes,
                                       reduction,
                                       packed_shapes,
                                       is_list && (info(op).reads & grammar::CallSays::lists) != 0,
                                       {max_intermediate, sums_alone},
                                       named.dtype,
                                       joins ? grammar::Results::many : grammar::Results::one});
}

namespace {

/// Whether a call takes random numbers from the next stream, anew each time.
bool is_drawn(const detail::NamedCall& call) {
  return call.op == Operation::multinomial && call.operands.size() == 1 &&
         call.options.numbers.size() == 1;
}
Tensor drawn(const detail::NamedCall& call) {
  return multinomial(*call.operands[0], runtime(call.pattern.text()), call.options.numbers[0]);
}

}  // namespace

std::vector<Tensor> Arguments::run() const {
  const WithoutGil without(!is_small());
  return with_call([](const auto& call) -> std::vector<Tensor> {
    using Call = std::decay_t<decltype(call)>;
    if constexpr (std::is_same_v<Call, detail::MapCall>)
      return {detail::run_map(call)};
    else if constexpr (std::is_same_v<Call, detail::NamedCall>)
      return is_drawn(call) ? std::vector<Tensor>{drawn(call)} : detail::run_named(call);
    else
      return detail::run_all(call);
  });
}

std::shared_ptr<const engine::Plan> Arguments::plan() const {
  return with_call([](const auto& call) -> std::shared_ptr<const engine::Plan> {
    using Call = std::decay_t<decltype(call)>;
    if constexpr (std::is_same_v<Call, detail::MapCall>)
      return nullptr;  // what it computes, its function says
    else if constexpr (std::is_same_v<Call, detail::NamedCall>)
      return is_drawn(call) ? nullptr : engine::plan_of_call(call);
    else
      return engine::plan_of_call(call);
  });
}

namespace {

/// The same call as one that PyTorch differentiates.
PyObject* call_with_gradients(Operation op, PyObject* const* given, std::size_t count,
                              PyObject* names) {
  Ref arguments = Ref::checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i)
    PyTuple_SetItem(arguments.get(), static_cast<Py_ssize_t>(i), Py_NewRef(given[i]));
  const Ref words = Ref::checked(PyDict_New());
  const Py_ssize_t keys = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < keys; ++i) {
    const Ref key = Ref::checked(PySequence_GetItem(names, i));
    if (PyDict_SetItem(words.get(), key.get(), given[count + static_cast<std::size_t>(i)]) < 0)
      throw PythonError();
  }
  const Ref module = Ref::checked(PyImport_ImportModule("ein.torch"));
  const std::string operation(info(op).name);
  return Ref::checked(PyObject_CallMethod(module.get(), "_with_gradients", "sOO", operation.c_str(),
                                          arguments.get(), words.get()))
      .release();
}

template <Operation op>
PyObject* call(PyObject*, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  const HoldsGil holds;
  try {
    const CallKey key(op, given, static_cast<std::size_t>(count), names);
    if (PyObject* const made = key.call()) return made;
    const Arguments arguments(op, given, static_cast<std::size_t>(count), names);
    const std::vector<Tensor> results = arguments.run();
    key.keep(arguments, results);
    return arguments.like.make(results, arguments.objects, arguments.operands);
  } catch (const GradientWanted&) {
    try {
      return call_with_gradients(op, given, static_cast<std::size_t>(count), names);
    } catch (...) {
      return set_python_error();
    }
  } catch (...) {
    return set_python_error();
  }
}

/// Whether an operation is a function of the module: not those of a mesh, of a layer, nor those
/// whose results are no tensors alone. map is also map_reduce.
constexpr bool is_bound(Operation op) {
  return (stands_alone(op) || op == Operation::map) && op != Operation::pack &&
         op != Operation::unpack && op != Operation::parse_shape;
}

bool has_one_operand(Operation op) { return info(op).form.operands == 1 && info(op).weights == 0; }
bool takes_sizes(Operation op) { return (info(op).reads & grammar::CallSays::sizes) != 0; }

/// Of what stands behind the pattern: those without a default may stand there without a name.
std::vector<Keyword> keywords_of(Operation op) {
  std::vector<Keyword> all;
  if (op == Operation::map) {
    all.push_back({"function", "Callable[..., Any]", nullptr, 0, nullptr, nullptr});
    all.push_back({"reduction", "str | None", "None", 0, nullptr, nullptr});
  }
  if (op == Operation::reduce) all.push_back({"reduction", "str", nullptr, 0, nullptr, nullptr});
  for (const bool is_optional : {false, true}) {
    for (const Keyword& keyword : keywords) {
      if (is_read_by(keyword, op) && (keyword.default_ != nullptr) == is_optional)
        all.push_back(keyword);
    }
  }
  return all;
}

nb::object described(Operation op) {
  nb::list words;
  for (const Keyword& keyword : keywords_of(op)) {
    words.append(nb::make_tuple(keyword.name, keyword.type,
                                keyword.default_ == nullptr
                                    ? nb::object(nb::none())
                                    : nb::object(nb::str(keyword.default_))));
  }
  return nb::make_tuple(has_one_operand(op), words, takes_sizes(op));
}

std::string signature(Operation op) {
  std::string text = has_one_operand(op) ? "x, pattern" : "*operands, pattern";
  for (const Keyword& keyword : keywords_of(op)) {
    text += ", " + std::string(keyword.name);
    if (keyword.default_ != nullptr) text += "=" + std::string(keyword.default_);
  }
  return takes_sizes(op) ? text + ", **sizes" : text;
}

/// How a call is written, and what of it the table knows.
std::string help(Operation op) {
  const OperationInfo& row = info(op);
  std::string text = std::string(row.name) + "(" + signature(op) + ")\n\n";
  switch (row.form.brackets) {
    case grammar::Form::no_brackets:
      text += "The pattern says which axes the operands and the result have.";
      break;
    case grammar::Form::axes_of_the_input:
      text += "Goes along the axes in brackets: \"b [s]\".";
      break;
    case grammar::Form::axis_of_the_input:
      text += "Goes along the axis in brackets: \"b [s]\".";
      break;
    case grammar::Form::two_axes_of_the_input:
      text += "Of matrices, whose rows and columns are in brackets: \"b [i j]\".";
      break;
    case grammar::Form::axis_of_the_output:
      text += "Makes the axis in brackets of the output: \"b -> b [v]\".";
      break;
    case grammar::Form::matrix_of_the_input:
      text += "A function of matrices, whose rows and columns are in brackets: \"b [i j]\".";
      break;
  }
  if (row.stands == OperationInfo::with_a_function)
    text +=
        "\nfunction(a, b ...) is called while the call is made, with a tensor for each operand. "
        "It has a dimension for each axis of the pattern, of size 1 where the operand lacks it. "
        "Axes that the output lacks are reduced as `reduction` says.";
  if (row.weights > 0)
    text += "\nUp to " + std::to_string(row.weights) +
            " operands more may stand before the pattern, which does not name them.";
  if (row.positions >= 0)
    text += "\nOperand " + std::to_string(row.positions + 1) + " holds positions, integers.";
  text +=
      "\nOperands: ein.Tensor, NumPy arrays, or whatever has DLPack, without a copy; the result "
      "is of their kind.\nEvery mistake is an ein.Error.";
  return text;
}

/// The methods' texts and rows live as long as the process.
struct Method {
  std::string doc;
  PyMethodDef row{};
};
std::deque<Method>& methods() {
  static std::deque<Method> all;
  return all;
}

template <Operation op>
void bind(nb::module_& m) {
  if constexpr (is_bound(op)) {
    Method& method = methods().emplace_back(Method{help(op)});
    method.row = {info(op).name.data(),
                  reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call<op>)),
                  METH_FASTCALL | METH_KEYWORDS, method.doc.c_str()};
    m.attr(info(op).name.data()) =
        nb::steal(Ref::checked(PyCFunction_NewEx(&method.row, nullptr, nullptr)).release());
  }
}

Like like_of(std::span<PyObject* const> objects) {
  Like like;
  for (PyObject* object : objects) like.see(object);
  return like;
}

nb::tuple shape_of(const Shape& shape) {
  nb::list sizes;
  for (const Size size : shape) sizes.append(static_cast<std::int64_t>(size));
  return nb::tuple(sizes);
}

/// pack(xs, pattern): the tensor, and the shapes that the `*` stands for.
nb::tuple pack_all(nb::handle xs, const std::string& pattern) {
  std::vector<nb::object> kept;
  std::vector<PyObject*> objects;
  std::vector<Tensor> operands;
  for (nb::handle x : xs) {
    kept.push_back(nb::borrow(x));
    objects.push_back(x.ptr());
    operands.push_back(tensor_of(x.ptr()));
  }
  const Packed packed = pack(operands, runtime(pattern));
  nb::list shapes;
  for (const Shape& shape : packed.shapes) shapes.append(shape_of(shape));
  return nb::make_tuple(nb::steal(like_of(objects).make(packed.tensor, objects, operands)), shapes);
}

nb::list unpack_all(nb::handle x, nb::handle packed_shapes, const std::string& pattern) {
  std::vector<Shape> shapes;
  for (nb::handle one : packed_shapes) {
    Shape shape;
    for (nb::handle size : one)
      shape.push_back(integer_of(Operation::unpack, "a size", size.ptr()));
    shapes.push_back(shape);
  }
  PyObject* const objects[] = {x.ptr()};
  const Tensor operands[] = {tensor_of(x.ptr())};
  const Like like = like_of(objects);
  nb::list parts;
  for (const Tensor& part : unpack(operands[0], shapes, runtime(pattern)))
    parts.append(nb::steal(like.make(part, objects, operands)));
  return parts;
}

nb::dict sizes_of(nb::handle x, const std::string& pattern) {
  nb::dict sizes;
  const NamedSizes named = parse_shape(tensor_of(x.ptr()), runtime(pattern));
  for (const auto& [axis, size] : named) sizes[axis.c_str()] = static_cast<std::int64_t>(size);
  return sizes;
}

}  // namespace

void add_calls(nb::module_& m) {
  m.def("pack", &pack_all, nb::arg("operands"), nb::arg("pattern"),
        "Joins arrays along the dimension that is * in the pattern; the result, and what of their "
        "shapes the * stands for.");
  m.def("unpack", &unpack_all, nb::arg("x"), nb::arg("packed_shapes"), nb::arg("pattern"),
        "Cuts what pack joined; one size may be -1.");
  m.def("parse_shape", &sizes_of, nb::arg("x"), nb::arg("pattern"),
        "The sizes of an array by the names of its axes.");
#define EIN_BIND(name, ...) bind<Operation::name>(m);
  EIN_FOR_EACH_OPERATION(EIN_BIND)
#undef EIN_BIND
  m.def(
      "_operations",
      [] {
        nb::dict all;
        for (int i = 0; i < operation_count; ++i) {
          const auto op = static_cast<Operation>(i);
          const std::string name(info(op).name);
          all[name.c_str()] = is_bound(op) ? described(op) : nb::object(nb::none());
        }
        return all;
      },
      "The operations of ein's table; of each that is a function here whether it has one operand, "
      "the words behind its pattern (name, type, default or None), and whether it takes sizes.");
}

}  // namespace ein::python
