// Any bytes as a pattern: both matchers must agree on them, and what they accept must go through
// the checker, the solver, the graph and its lowering, ending in a result or an ein::Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "draw/call.hpp"
#include "draw/mistake.hpp"
#include "ein/grammar/infer_type.hpp"
#include "ein/grammar/match.hpp"
#include "ein/grammar/packed_pattern.hpp"
#include "ein/grammar/parse.hpp"
#include "graph/call.hpp"
#include "passes/contraction_order.hpp"
#include "passes/lower.hpp"

namespace {

using ein::Operation;
using ein::Shape;
using ein::grammar::Mistake;
using ein::grammar::Pattern;
using ein::grammar::Reading;
using ein::grammar::Side;
using ein::grammar::Term;
using ein::grammar::TermKind;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz_pattern: %s\n", what);
  std::abort();
}

/// Numbers that depend on the input alone (SplitMix64: Steele, Lea, Flood 2014).
class Choice {
 public:
  explicit Choice(std::string_view text) {
    for (char c : text) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  std::uint64_t below(std::uint64_t n) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
  }
  std::int64_t size() {
    constexpr std::int64_t sizes[] = {0, 1, 1, 2,  2,       2,         3,
                                      4, 6, 8, 12, 1 << 20, 1LL << 40, 1LL << 62};
    return sizes[below(std::size(sizes))];
  }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325u;
};

bool same(const Term& a, const Term& b) {
  return a.kind == b.kind && a.span == b.span && a.next == b.next && a.value == b.value &&
         a.marked == b.marked && a.placed == b.placed;
}
bool same(const Side& a, const Side& b) {
  return a.first == b.first && a.last == b.last && a.span == b.span;
}

template <class T>
bool all_same(std::span<const T> a, std::span<const T> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}
bool same(const Pattern& a, const Pattern& b) {
  return a.output_count == b.output_count && all_same(a.terms, b.terms) &&
         all_same(a.sides, b.sides);
}

void check_agreement(const Reading& parsed, const Reading& matched) {
  const Mistake &a = parsed.mistake, &b = matched.mistake;
  require(a.complaint == b.complaint, "the matchers differ in what they complain about");
  require(a.span == b.span && a.other == b.other && a.argument == b.argument,
          "the matchers differ in the place");
  if (!a)
    require(same(parsed.buffer.pattern(parsed.text), matched.buffer.pattern(matched.text)),
            "the patterns differ");
}

/// Every place lies in the text, the sides share out the terms, and groups hold whole terms.
void check_places(const Pattern& pattern) {
  std::uint32_t at = 0;
  for (const Side& side : pattern.sides) {
    require(side.first == at && side.last >= side.first, "the sides do not share out the terms");
    require(side.span.begin <= side.span.end && side.span.end <= pattern.text.size(),
            "a side outside the text");
    at = side.last;
    std::vector<std::uint32_t> ends{side.last};
    for (std::uint32_t i = side.first; i < side.last; ++i) {
      const Term& term = pattern.terms[i];
      while (ends.back() == i) ends.pop_back();
      require(term.next > i && term.next <= ends.back(), "a group ends inside another");
      require(term.span.begin < term.span.end, "a term without text");
      require(term.span.begin >= side.span.begin && term.span.end <= side.span.end,
              "a term outside its side");
      require(
          !term.is_placed() || (term.kind == TermKind::name && term.placed.begin == term.span.end &&
                                term.placed.end <= side.span.end),
          "a placement that is not behind its name");
      ends.push_back(term.next);
    }
  }
  require(at == pattern.terms.size(), "terms outside the sides");
}

void write_terms(const Pattern& pattern, std::uint32_t first, std::uint32_t last,
                 std::string& text) {
  for (std::uint32_t i = first; i < last; i = pattern.terms[i].next) {
    const Term& term = pattern.terms[i];
    const bool is_piece = first > 0 && pattern.terms[first - 1].kind == TermKind::sum;
    if (is_piece && i > first) text += " +";
    if (term.kind == TermKind::group || term.kind == TermKind::sum) {
      text += " ( ";
      write_terms(pattern, i + 1, term.next, text);
      text += " )";
    } else {
      text += term.marked ? " [" : " ";
      if (term.is_many) text += "*";
      text += pattern.name_of(term);
      pattern.for_each_mesh_axis(
          term, [&](ein::SourceSpan axis) { text += "@" + std::string(pattern.text_of(axis)); });
      if (term.kind == TermKind::name && term.value > 0) text += "=" + std::to_string(term.value);
      if (term.marked) text += "]";
    }
  }
}

/// The terms alone say all: written out anew, they are read as the same pattern.
void check_round_trip(const Pattern& pattern) {
  std::string text;
  for (const Side& side : pattern.sides) {
    const bool is_first_output = pattern.has_arrow() && &side == pattern.outputs().data();
    text += is_first_output ? " ->" : &side != &pattern.sides.front() ? " ," : "";
    write_terms(pattern, side.first, side.last, text);
  }
  if (text.size() > ein::grammar::max_pattern_bytes) return;
  const Reading again = ein::grammar::parse_pattern(text);
  require(!again.mistake, "a pattern written out anew is refused");
  const Pattern other = again.buffer.pattern(text);
  require(other.output_count == pattern.output_count &&
              other.sides.size() == pattern.sides.size() &&
              other.terms.size() == pattern.terms.size(),
          "a pattern written out anew is another");
  for (std::size_t i = 0; i < pattern.terms.size(); ++i) {
    const Term &a = pattern.terms[i], &b = other.terms[i];
    require(a.kind == b.kind && a.next == b.next && a.value == b.value,
            "a term written out anew is another");
    if (a.kind == TermKind::name)
      require(pattern.name_of(a) == other.name_of(b) &&
                  pattern.text_of(a.placed) == other.text_of(b.placed),
              "a name written out anew is another");
  }
}

/// What a mistake says: an ein::Error with a text.
void check_diagnostic(Operation op, const Pattern& pattern, const Mistake& mistake,
                      std::span<const ein::AxisSize> given) {
  try {
    ein::fail(op, pattern, mistake, given);
  } catch (const ein::Error& error) {
    require(std::string_view(error.what()).size() > name(op).size() + 2,
            "a diagnostic without words");
    require(std::string_view(error.what()).starts_with(name(op)),
            "a diagnostic that does not name the operation");
    return;
  }
  require(false, "a mistake without a diagnostic");
}

/// The inputs' own texts as the types of the operands. A type that is found must be one.
void check_types(Operation op, const Pattern& pattern, std::span<const ein::AxisSize> given) {
  std::vector<std::string> texts;  // without brackets, which types have not
  for (const Side& side : pattern.inputs()) {
    texts.emplace_back(pattern.text_of(side.span));
    for (char& c : texts.back()) {
      if (c == '[' || c == ']') c = ' ';
    }
  }
  std::vector<ein::grammar::SpecReading> specs;
  for (const std::string& text : texts) {
    specs.push_back(ein::grammar::read_shape_spec(text));
    if (specs.back().mistake) return;
  }
  std::vector<ein::grammar::OperandSpec> operands;
  for (const auto& spec : specs) operands.push_back({&spec});
  std::vector<ein::grammar::GivenSize> sizes;
  for (const ein::AxisSize& size : given)
    sizes.push_back({size.name, size.size < 0 ? ein::Size(-1) : size.size});
  const auto moves = op == Operation::reshard ? ein::grammar::Moves::yes : ein::grammar::Moves::no;
  const bool has_brackets = info(op).form.brackets != ein::grammar::Form::no_brackets;
  for (const ein::grammar::MarkedAxes& axes : info(op).axes) {
    const ein::grammar::InferredType type = ein::grammar::infer_type(
        op, pattern, operands, sizes, moves, has_brackets ? &axes : nullptr);
    require(
        type.mistake || !type.is_known || !ein::grammar::read_shape_spec(type.axes.view()).mistake,
        "the type of the result is malformed");
  }
}

/// Sizes for the names of a pattern, and shapes of operands that mostly have them.
class Sizes {
 public:
  Sizes(const Pattern& pattern, Choice& choice) : pattern_(pattern), choice_(choice) {
    for (const Term& term : pattern.terms) {
      if (term.kind == TermKind::name && !find(pattern.name_of(term))) {
        sizes_.push_back({pattern.name_of(term), choice.below(20) == 0
                                                     ? choice.size()
                                                     : std::int64_t(1 + choice.below(4))});
      }
    }
  }

  Shape shape(const Side& side) {
    Shape shape;
    for (std::uint32_t i = side.first; i < side.last; i = pattern_.terms[i].next) {
      const TermKind kind = pattern_.terms[i].kind;
      if (kind == TermKind::ellipsis || kind == TermKind::packed) {
        for (auto more = choice_.below(3); more > 0; --more)
          shape.push_back(std::int64_t(1 + choice_.below(3)));
        continue;
      }
      std::int64_t size = 1;
      for (std::uint32_t j = i; j < pattern_.terms[i].next; ++j) {
        if (__builtin_mul_overflow(size, size_of(pattern_.terms[j]), &size)) size = INT64_MAX;
      }
      shape.push_back(choice_.below(30) == 0 ? choice_.size() : size);
    }
    if (choice_.below(30) == 0) shape.push_back(choice_.size());
    return shape;
  }

  /// Some of the sizes, and rarely one that does not fit.
  std::vector<ein::AxisSize> given() {
    std::vector<ein::AxisSize> given;
    for (ein::AxisSize size : sizes_) {
      if (choice_.below(2) == 0)
        given.push_back(
            {size.name, choice_.below(30) == 0 ? ein::Size(choice_.size() - 1) : size.size});
    }
    if (choice_.below(30) == 0) given.push_back({"zzz", 2});
    if (choice_.below(30) == 0 && !given.empty()) given.push_back(given.front());
    return given;
  }

 private:
  const ein::AxisSize* find(std::string_view name) const {
    const auto found = std::find_if(sizes_.begin(), sizes_.end(),
                                    [&](const ein::AxisSize& s) { return s.name == name; });
    return found == sizes_.end() ? nullptr : &*found;
  }
  std::int64_t size_of(const Term& term) const {
    if (term.kind == TermKind::name) return find(pattern_.name_of(term))->size;
    return term.kind == TermKind::number ? term.value : 1;
  }

  const Pattern& pattern_;
  Choice& choice_;
  std::vector<ein::AxisSize> sizes_;
};

/// Shapes that a tensor can have.
bool is_possible(const Shape& shape) {
  try {
    ein::checked_numel(shape, 8);
    return true;
  } catch (const ein::Error&) {
    return false;
  }
}

void check_graph(const ein::PatternCall& call, const std::vector<ein::OperandType>& operands) {
  const ein::Graph graph = ein::build_graph(call, operands);
  ein::verify(graph);
  require(!ein::to_string(graph).empty(), "a graph without text");
  if (operands.size() > 5) return;  // finding the best order takes a while
  const ein::Graph ordered = ein::order_contractions(graph);
  ein::verify(ordered);
  std::vector<ein::InputLayout> layouts;
  for (const ein::OperandType& operand : operands)
    layouts.push_back({ein::contiguous_strides(operand.shape), 0});
  require(ein::lower(ordered, layouts).results.size() == graph.outputs.size(),
          "lowering lost a result");
}

/// A picture of it, small whatever the sizes, or the Error that says why there is none.
void check_picture(const ein::PatternCall& call, std::span<const Shape> shapes) {
  try {
    const std::string svg = ein::draw::to_svg(call, shapes);
    require(svg.size() < 500'000, "a picture of a small call is large");
    for (const char c : svg)
      require(c == '\n' || static_cast<unsigned char>(c) >= 0x20, "a control character");
  } catch (const ein::Error& error) {
    require(ein::draw::to_svg(error).size() < 500'000, "a picture of a mistake is large");
  }
}

void check_operation(Operation op, const Pattern& pattern, Choice& choice) {
  Sizes sizes(pattern, choice);
  const std::vector<ein::AxisSize> given = sizes.given();
  std::vector<std::string_view> names;
  for (const ein::AxisSize& size : given) names.push_back(size.name);
  const bool takes_many = ein::grammar::form_of(op).operands == ein::grammar::Form::any_number;
  const bool takes_one_side = !takes_many && op != Operation::pack;
  const std::size_t wanted = op == Operation::pack ? 1 + choice.below(3) : pattern.inputs().size();
  const bool is_named = ein::grammar::form_of(op).brackets != ein::grammar::Form::no_brackets;
  const bool stacked =
      takes_one_side && !is_named && op != Operation::unpack && choice.below(8) == 0;
  if (const Mistake mistake =
          ein::grammar::check_pattern(op, pattern, takes_many ? wanted : 1, names)) {
    check_diagnostic(op, pattern, mistake, given);
  } else {
    check_types(op, pattern, given);
  }
  if (wanted > 40 || !ein::stands_alone(op)) return;

  std::vector<ein::OperandType> operands;
  const auto dtype = static_cast<ein::DType>(choice.below(10));
  for (std::size_t k = 0; k < wanted; ++k) {
    operands.push_back({sizes.shape(pattern.sides[op == Operation::pack ? 0 : k]), dtype});
    if (!is_possible(operands.back().shape)) return;
    if (is_named && k == 1) operands.back().dtype = ein::DType::i64;  // positions
  }
  if (choice.below(40) == 0) operands.back().dtype = static_cast<ein::DType>(choice.below(10));
  if (choice.below(40) == 0) operands.push_back(operands.front());
  if (stacked && operands.front().shape.rank() > 0) {
    // One shape fewer axes, as many times as the first axis is long.
    const Shape& whole = operands.front().shape;
    const std::int64_t count = std::clamp<std::int64_t>(whole[0], 1, 3);
    const ein::OperandType part{Shape(std::span(whole.begin() + 1, whole.end())), dtype};
    operands.assign(static_cast<std::size_t>(count), part);
  }
  std::vector<Shape> packed;
  for (auto pieces = choice.below(4); op == Operation::unpack && pieces > 0; --pieces) {
    packed.emplace_back();
    for (auto dims = choice.below(3); dims > 0; --dims)
      packed.back().push_back(choice.size() - std::int64_t(choice.below(2)));
  }
  const auto reduction = static_cast<ein::Reduction>(choice.below(10));
  try {
    if (op == Operation::parse_shape) {
      ein::solve_shape(pattern, operands.front().shape);
    } else {
      ein::PatternCall call{op, pattern, given, reduction, packed, stacked};
      // Of pad it says how many of its numbers stand first, and there are none.
      if (op != Operation::pad) call.named.k = choice.size();
      if (op == Operation::einsum || op == Operation::rearrange || op == Operation::reduce ||
          op == Operation::repeat) {
        std::vector<Shape> shapes;
        for (const ein::OperandType& operand : operands) shapes.push_back(operand.shape);
        check_picture(call, shapes);
        check_picture(call, {});
      }
      check_graph(call, operands);
    }
  } catch (const ein::Error& error) {
    require(std::string_view(error.what()).size() > 4, "an error without words");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Reading parsed = ein::grammar::parse_pattern(text);
  check_agreement(parsed, ein::grammar::match_pattern(text));
  const Pattern pattern = parsed.buffer.pattern(text);
  Choice choice(text);
  if (parsed.mistake) {
    check_diagnostic(static_cast<Operation>(choice.below(ein::operation_count)), pattern,
                     parsed.mistake, {});
    return 0;
  }
  check_places(pattern);
  check_round_trip(pattern);
  if (const ein::grammar::PackedPattern packed(pattern); packed.is_set()) {
    require(same(packed.unpacked(text).pattern(text), pattern), "a packed pattern is another");
  }
  // One operation an input: many inputs a second find more than many operations an input.
  check_operation(static_cast<Operation>(choice.below(ein::operation_count)), pattern, choice);
  return 0;
}
