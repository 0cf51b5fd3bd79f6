// Error: the one exception type that ein throws.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <ein/grammar/pattern.hpp>

namespace ein {

/// What went wrong, for programs; the text is for people.
enum class ErrorKind : std::uint8_t {
  syntax,   ///< the pattern's text is malformed
  pattern,  ///< a well-formed pattern that this operation cannot take (lost axis, duplicate ...)
  arity,    ///< the number of operands differs from what the pattern or operation wants
  rank,     ///< an operand has another number of dimensions than its pattern
  size,     ///< two sizes that must agree do not
  divisibility,   ///< a composite axis cannot be split evenly
  inference,      ///< a size cannot be found from the shapes and the given axis sizes
  axis_argument,  ///< an axis size argument that is unknown, unused, given twice or not allowed
  dtype,          ///< the operation is not defined for these dtypes
  reduction,      ///< an unknown reduction, or one that is undefined for these operands
  overflow,       ///< a product of sizes exceeds 63 bits, or a size is out of range
  shape,          ///< a shape, stride or index that does not fit the tensor
  value,          ///< an argument outside its domain
  file,           ///< a file cannot be read or written, or its content is not what it must be
  memory,         ///< the machine, or a GPU, has not as much memory as was asked for
  device,     ///< a GPU, its driver or its compiler is missing, too old, or failed; or devices are
              ///< mixed
  placement,  ///< values lie on a mesh in ways that an operation cannot bring together
  peer,       ///< another process of the same program has ended or gives no sign of life, or the
              ///< processes cannot reach each other
};

/// Every error that a user can cause. `what()` is the whole diagnostic: a headline that names the
/// axes and sizes concerned and, where a pattern is at fault, the pattern with carets under each
/// place.
class Error : public std::runtime_error {
 public:
  /// Of `text` only the ends of lines stay as they are: other white space becomes blanks, control
  /// characters and bytes that are not UTF-8 become `?`, so that names of files and texts of
  /// strangers can't reach a terminal as commands.
  Error(ErrorKind kind, const std::string& text, std::vector<SourceSpan> spans = {});

  ErrorKind kind() const { return kind_; }
  /// The places in the pattern that the carets point at, in bytes; empty where no pattern is
  /// concerned.
  const std::vector<SourceSpan>& spans() const { return spans_; }

 private:
  ErrorKind kind_;
  std::vector<SourceSpan> spans_;
};

}  // namespace ein
