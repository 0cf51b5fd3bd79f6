// Calls that were made before: what they are is known by the objects behind their operands and by
// how the operands lie, so that the same call again runs its plan on the arrays' own memory, and no
// tensor is made.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "calls.hpp"
#include "exchange.hpp"

namespace ein::python {

/// What a call depends on; looks at the arguments, which must outlive it.
class CallKey {
 public:
  CallKey(Operation op, PyObject* const* given, std::size_t count, PyObject* names);

  /// The results of the call that is kept under this key; null, without an error of Python's, where
  /// there is none.
  PyObject* call() const;
  /// Keeps a call that was made, if it is one that can be: of few elements, or of none that are
  /// computed.
  void keep(const Arguments& arguments, std::span<const Tensor> results) const;

 private:
  static constexpr std::size_t most_operands = 4, most_words = 64;

  void add(std::intptr_t word) {
    if (size_ < most_words)
      words_[size_++] = word;
    else
      is_known_ = false;
  }
  void add(const void* address) { add(reinterpret_cast<std::intptr_t>(address)); }
  void add_operand(PyObject* object);
  void add_other(PyObject* object);
  std::size_t place() const;

  struct Kept;
  static std::shared_ptr<const Kept>& kept_at(std::size_t place);
  PyObject* result_of(const Kept& kept) const;
  void keep_constants(Kept& kept) const;

  std::array<std::intptr_t, most_words> words_;  // the first `size_` are set
  std::size_t size_ = 0;
  bool is_known_ = true;
  std::span<PyObject* const> given_;
  PyObject* names_;
  std::array<ArrayMemory, most_operands> operands_;  // the first `count_` are set
  std::size_t count_ = 0;
};

}  // namespace ein::python
