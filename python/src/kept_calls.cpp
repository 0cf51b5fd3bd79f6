#include "kept_calls.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <ein/autocast.hpp>
#include "compile/operand.hpp"
#include "cost/scope.hpp"
#include "machine/float_mode.hpp"
#include "runtime/call.hpp"
#include "runtime/trace.hpp"

namespace ein::python {
namespace {

/// Whether calls of this thread run at once and as they are.
bool runs_plainly() {
  return engine::Trace::active() == nullptr && !autocast_dtype() && !CostRecorder::is_active();
}

/// Whether an object with the same address is the same argument for good.
bool is_constant(PyObject* object) {
  return PyUnicode_CheckExact(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyBool_Check(object) || object == Py_None;
}

}  // namespace

/// A call, with what it is to be taken for.
struct CallKey::Kept {
  std::vector<std::intptr_t> words;
  std::vector<Ref> constants;  // whose addresses are among the words
  std::weak_ptr<const engine::Plan> plan;
  std::vector<std::int64_t> bytes_back;  // of each operand, from its first element to the lowest
  std::size_t like = 0;                  // the operand of whose kind the result is
  ArrayLayout result;
  std::optional<std::size_t> viewed;  // the operand that the result views
  std::int64_t bytes_on = 0;          // then, from its lowest element to the result's first
};

std::shared_ptr<const CallKey::Kept>& CallKey::kept_at(std::size_t place) {
  // Guarded by the GIL. Never destroyed: that would be after the end of Python.
  static auto& all = *new std::array<std::shared_ptr<const Kept>, 256>();
  return all[place % all.size()];
}

CallKey::CallKey(Operation op, PyObject* const* given, std::size_t count, PyObject* names)
    : given_(given, count), names_(names) {
  std::size_t at = 0;
  for (; at < count && is_known_ && !PyUnicode_Check(given[at]); ++at) add_operand(given[at]);
  if (at == 0 || at == count) is_known_ = false;
  if (!is_known_) return;
  add(static_cast<std::intptr_t>(op) | static_cast<std::intptr_t>(at) << 16 |
      static_cast<std::intptr_t>(count) << 32);
  add(static_cast<std::intptr_t>(FloatMode::of_this_thread().word()));
  add(names);
  const std::size_t named = names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_Size(names));
  for (; at < count + named && is_known_; ++at) add_other(given[at]);
}

void CallKey::add_other(PyObject* object) {
  is_known_ = is_constant(object);
  add(object);
}

void CallKey::add_operand(PyObject* object) {
  if (count_ == most_operands || !look_at_memory(object, operands_[count_])) {
    is_known_ = false;
    return;
  }
  const ArrayMemory& array = operands_[count_++];
  add(array.type);
  add(array.element);
  add(static_cast<std::intptr_t>(array.rank));
  for (std::size_t d = 0; d < array.rank; ++d) add(static_cast<std::intptr_t>(array.sizes[d]));
  for (std::size_t d = 0; d < array.rank; ++d) add(static_cast<std::intptr_t>(array.strides[d]));
}

std::size_t CallKey::place() const {
  std::uint64_t hash = size_;
  for (std::size_t i = 0; i < size_; ++i)
    hash = (hash ^ static_cast<std::uint64_t>(words_[i])) * 0x9E3779B97F4A7C15u;
  return static_cast<std::size_t>(hash >> 32);
}

PyObject* CallKey::call() const {
  if (!is_known_) return nullptr;
  const std::shared_ptr<const Kept> kept = kept_at(place());
  if (!kept || !std::equal(kept->words.begin(), kept->words.end(), words_.begin(),
                           words_.begin() + static_cast<std::ptrdiff_t>(size_)))
    return nullptr;
  return runs_plainly() ? result_of(*kept) : nullptr;
}

PyObject* CallKey::result_of(const Kept& kept) const {
  const std::shared_ptr<const engine::Plan> plan = kept.plan.lock();
  if (!plan) return nullptr;
  plan->last_use.note();
  std::array<std::byte*, most_operands> lowest{};
  for (std::size_t k = 0; k < count_; ++k) lowest[k] = operands_[k].first - kept.bytes_back[k];
  if (kept.viewed)
    return array_viewing(given_[*kept.viewed], kept.result, lowest[*kept.viewed] + kept.bytes_on);
  NewArray made(kept.result, given_[kept.like]);
  std::byte* const result = made.data();
  engine::run_in_memory(*plan, {lowest.data(), count_}, {&result, 1});
  return made.release();
}

void CallKey::keep(const Arguments& arguments, std::span<const Tensor> results) const {
  if (!is_known_ || !runs_plainly() || results.size() != 1) return;
  const std::shared_ptr<const engine::Plan> plan = arguments.plan();
  if (!plan || plan->mesh() || !plan->complex_results().empty()) return;
  auto kept = std::make_shared<Kept>();
  kept->words.assign(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(size_));
  kept->plan = plan;
  for (const Tensor& x : arguments.operands) {
    if (is_complex(x.dtype()) || x.numel() == 0) return;
    kept->bytes_back.push_back(engine::elements_back(x.shape(), x.strides()).word() *
                               static_cast<std::int64_t>(x.element_size()));
  }
  while (kept->like < count_ && !operands_[kept->like].is_foreign) ++kept->like;
  if (kept->like == count_) kept->like = 0;
  kept->result = ArrayLayout(results[0]);
  const Program::Result& view = plan->bound().result_views()[0].view;
  const auto buffer = static_cast<std::size_t>(view.buffer);
  if (buffer < count_) {
    // A view of another library's array is for its own calls.
    if (operands_[buffer].is_foreign || kept->like != buffer) return;
    kept->viewed = buffer;
    kept->bytes_on = view.offset.word() * static_cast<std::int64_t>(size_of(view.dtype));
  } else if (!arguments.is_small() || view.offset.word() != 0 || !kept->result.can_be_new()) {
    return;
  }
  keep_constants(*kept);
  kept_at(place()) = std::move(kept);
}

void CallKey::keep_constants(Kept& kept) const {
  const auto add = [&](PyObject* object) { kept.constants.push_back(Ref::borrowed(object)); };
  const std::size_t named = names_ == nullptr ? 0 : static_cast<std::size_t>(PyTuple_Size(names_));
  for (std::size_t k = 0; k < count_; ++k) add(reinterpret_cast<PyObject*>(Py_TYPE(given_[k])));
  for (std::size_t i = count_; i < given_.size() + named; ++i) add(given_.data()[i]);
  if (names_ != nullptr) add(names_);
}

}  // namespace ein::python
