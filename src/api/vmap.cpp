// vmap: a function over one more axis.
#include <ein/vmap.hpp>

#include <optional>
#include <string>
#include <utility>

#include <ein/detail/pattern_message.hpp>
#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "ein/grammar/parse.hpp"
#include "graph/diagnostic.hpp"
#include "passes/add_axis.hpp"
#include "runtime/recorded_call.hpp"

namespace ein {
namespace {

using grammar::Pattern;
using grammar::Side;
using grammar::Term;
using grammar::TermKind;

/// Where arguments and results have the axis.
class VmapPattern {
 public:
  VmapPattern(std::string_view text, std::size_t arguments)
      : reading_(grammar::parse_pattern(text)), pattern_(reading_.buffer.pattern(text)) {
    if (const grammar::Mistake& mistake = reading_.mistake) {
      const grammar::Words words = grammar::words_for(Operation::rearrange, pattern_, mistake, {});
      fail(words.kind, "vmap", std::string(words.headline.view()), pattern_.text,
           grammar::places_of(pattern_, mistake, {}));
    }
    const std::span<const Term> terms = pattern_.terms;
    is_plain_ = terms.size() == 1 && terms[0].kind == TermKind::name;
    for (const Term& term : terms) {
      const bool is_axis =
          term.kind == TermKind::name && (axis_.empty() || pattern_.name_of(term) == axis_);
      if (is_axis) axis_ = pattern_.name_of(term);
      if (is_axis && (term.value != 0 || term.marked || term.is_placed()))
        complain(term.span,
                 "the axis is a name alone here, without a size, brackets or a mesh axis");
      if (!is_axis && term.kind != TermKind::ellipsis)
        complain(term.span, "one axis and '...' are all that vmap takes");
    }
    if (axis_.empty()) complain({}, "the pattern names no axis");
    if (is_plain_) return;
    for (const Side& side : pattern_.sides) {
      if (count(side, TermKind::ellipsis) != 1)
        complain(side.span, "each side has one '...', which stands for the other axes");
      if (count(side, TermKind::name) > 1) complain(side.span, "the axis stands twice");
    }
    if (pattern_.output_count > 1)
      complain(pattern_.outputs()[1].span, "all results have one pattern");
    if (pattern_.has_arrow() && count(pattern_.output(), TermKind::name) == 0)
      complain(pattern_.output().span, "the results have the axis");
    if (pattern_.inputs().size() != arguments) {
      complain({}, "the pattern describes " + std::to_string(pattern_.inputs().size()) +
                       " arguments, the call has " + std::to_string(arguments));
    }
  }

  std::string axis() const { return std::string(axis_); }
  bool has_axis(std::size_t argument) const {
    return is_plain_ || count(pattern_.inputs()[argument], TermKind::name) > 0;
  }
  /// The argument with the axis first.
  Tensor first(const Tensor& x, std::size_t argument) const {
    if (is_plain_ || begins_with_axis(pattern_.inputs()[argument])) return x;
    return rearrange(x, runtime(text_of(pattern_.inputs()[argument]) + " -> " + axis() + " ..."));
  }
  /// A result as the pattern wants it.
  Tensor result(const Tensor& x) const {
    if (!pattern_.has_arrow() || begins_with_axis(pattern_.output())) return x;
    return rearrange(x, runtime(axis() + " ... -> " + text_of(pattern_.output())));
  }

 private:
  std::size_t count(const Side& side, TermKind kind) const {
    std::size_t n = 0;
    for (const Term& term : pattern_.terms_of(side)) n += term.kind == kind;
    return n;
  }
  bool begins_with_axis(const Side& side) const {
    return pattern_.terms_of(side).front().kind == TermKind::name;
  }
  std::string text_of(const Side& side) const { return std::string(pattern_.text_of(side.span)); }
  [[noreturn]] void complain(SourceSpan span, const std::string& what) const {
    std::vector<Mark> marks;
    if (span.end > 0) marks.push_back({span, ""});
    fail(ErrorKind::pattern, "vmap", what, pattern_.text, marks,
         {"help: \"n\" where all arguments have the axis first, else as \"n ..., ... n, ...\""});
  }

  grammar::Reading reading_;
  Pattern pattern_;
  bool is_plain_ = false;
  std::string_view axis_;
};

}  // namespace

Tensor detail::with_first(const Tensor& x, std::size_t dimension) {
  if (dimension == 0) return x;
  std::string from, to = "n";
  for (std::size_t d = 0; d < x.rank(); ++d) {
    const std::string name = d == dimension ? "n" : "i" + std::to_string(d);
    from += (d > 0 ? " " : "") + name;
    if (d != dimension) to += " " + name;
  }
  return rearrange(x, runtime(from + " -> " + to));
}

std::vector<Tensor> detail::run_vmap(const VmapCall& call) {
  const VmapPattern pattern(call.pattern, call.operands.size());
  std::vector<Tensor> moved;
  std::vector<bool> have_it;
  std::optional<Size> size;
  std::size_t of = 0;
  for (std::size_t k = 0; k < call.operands.size(); ++k) {
    const Tensor& x = *call.operands[k];
    have_it.push_back(pattern.has_axis(k));
    if (have_it[k] && x.rank() == 0) {
      throw Error(ErrorKind::rank, "vmap: argument " + std::to_string(k + 1) +
                                       " is a scalar, and has no axis '" + pattern.axis() + "'");
    }
    moved.push_back(have_it[k] ? pattern.first(x, k) : x);
    if (!have_it[k]) continue;
    const Size here = moved[k].shape()[0];
    if (size && *size != here) {
      throw Error(ErrorKind::size, "vmap: axis '" + pattern.axis() +
                                       "' has two sizes: " + to_string(*size) + " in argument " +
                                       std::to_string(of + 1) + ", " + to_string(here) +
                                       " in argument " + std::to_string(k + 1));
    }
    if (!size) of = k;
    size = here;
  }
  if (!size) {
    throw Error(ErrorKind::value,
                "vmap: no argument has axis '" + pattern.axis() + "', so it has no size");
  }
  std::vector<const Tensor*> operands;
  for (const Tensor& x : moved) operands.push_back(&x);
  engine::RecordedCall recorded = engine::record_call(
      engine::Trace::Of::vmap, operands,
      [&](std::span<const Tensor> x) { return call.function(call.context, x); }, have_it);
  have_it.resize(have_it.size() + recorded.captured.size(), false);
  recorded.graph = with_axis(recorded.graph, have_it, {pattern.axis(), *size},
                             !call.options.same_random_numbers);
  std::vector<Tensor> results =
      engine::run_recorded("vmap along '" + pattern.axis() + "'", recorded, operands);
  for (Tensor& result : results) result = pattern.result(result);
  return results;
}

}  // namespace ein
