// What the errors of PlacementClasses say: where axes lie, the places in the call's pattern, and
// the ways out.
#include <algorithm>
#include <set>
#include <utility>

#include <ein/error.hpp>
#include "ein/grammar/parse.hpp"
#include "graph/build.hpp"
#include "graph/diagnostic.hpp"
#include "passes/distribute.hpp"
#include "passes/placement_classes.hpp"
#include "size/ask.hpp"

namespace ein {

using Split = Placement::Split;

/// How an operand that has the axis of this name comes to have it whole along a mesh axis.
std::string PlacementClasses::way_out_of(std::size_t id, const std::string& name,
                                         int mesh_axis) const {
  const Op& op = graph_.ops[id];
  for (std::size_t i = 0; i < op.inputs.size() && i < op.reads.size(); ++i) {
    const std::vector<std::string> names = names_of(op.inputs[i]);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) continue;
    const Placement now = placement(static_cast<std::size_t>(op.inputs[i]));
    Placement then = now;
    std::erase(then.dims[static_cast<std::size_t>(found - names.begin())], mesh_axis);
    const auto pattern = [&](const Placement& lies) {
      return to_string(lies, mesh_, names.size(), names);
    };
    return "help: make one of them whole first, such as ein::reshard(x, \"" + pattern(now) +
           " -> " + pattern(then) + "\") of operand " + std::to_string(i + 1);
  }
  return {};
}

std::string PlacementClasses::text(const Split& split) const {
  std::string text;
  for (const int m : split) text += "@" + mesh_[static_cast<std::size_t>(m)].name;
  return text;
}

namespace {
/// Names that a pattern can have: i0, i1, ... where two are equal.
std::vector<std::string> unique(std::vector<std::string> names) {
  const std::set<std::string> different(names.begin(), names.end());
  const bool is_pattern = different.size() == names.size() && !different.contains("re im");
  for (std::size_t d = 0; d < names.size() && !is_pattern; ++d) names[d] = "i" + std::to_string(d);
  return names;
}
}  // namespace

/// As the first operation that reads it calls its dimensions.
std::vector<std::string> PlacementClasses::names_of(ValueId value) const {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < graph_.op(value).shape.rank(); ++d)
    names.push_back("i" + std::to_string(d));
  for (const Op& op : graph_.ops) {
    for (std::size_t i = 0; i < op.reads.size(); ++i) {
      if (op.inputs[i] != value) continue;
      for (std::size_t d = 0; d < names.size(); ++d) {
        const DimIndex& dim = op.reads[i][d];
        std::string name;
        for (const DimIndex::Term& term : dim.terms)
          name += (name.empty() ? "" : " ") + op.axes[static_cast<std::size_t>(term.axis)].name;
        if (name.empty()) continue;
        // A dimension in braces is none of several axes: it has the name of the first.
        const bool is_composite = always_equal(dim.offset, 0) && extent_of(dim, op.axes);
        if (!is_composite) name = name.substr(0, name.find(' '));
        names[d] = is_composite && dim.terms.size() > 1 ? "(" + name + ")" : name;
      }
      return unique(names);
    }
  }
  return names;
}

std::string PlacementClasses::name_of(const Seed& a, const Seed& b) const {
  for (const Seed* seed : {&a, &b}) {
    if (seed->value >= 0) return names_of(seed->value)[seed->dim];
  }
  return "an axis";
}

/// "b@data in operand 1, \"b@data s\" of shape (8, 4)".
std::string PlacementClasses::where(const Seed& seed) const {
  const std::vector<std::string> names = names_of(seed.value);
  const Op& op = graph_.op(seed.value);
  Placement one;
  one.dims.resize(seed.dim + 1);
  one.dims[seed.dim] = seed.split;
  const std::string as = seed.split.empty() ? "whole" : names[seed.dim] + text(seed.split);
  switch (seed.kind) {
    case Seed::input:
      return as + " in operand " + std::to_string(seed.number + 1) + ", \"" +
             to_string(
                 placed_inputs_.size() > seed.number ? placed_inputs_[seed.number] : Placement(),
                 mesh_, op.shape.rank(), names) +
             "\" of shape " + op.shape.to_string();
    case Seed::output:
      return as + " in result " + std::to_string(seed.number + 1) + " of shape " +
             op.shape.to_string();
    default:
      return as + " in a reshard of a value of shape " + op.shape.to_string();
  }
}

/// How the operand of `seed` comes to lie as `wanted` there, and what that moves.
std::string PlacementClasses::way_out(const Seed& seed, const Split& wanted) const {
  if (seed.kind != Seed::input) return {};
  const Op& op = graph_.op(seed.value);
  const std::vector<std::string> names = names_of(seed.value);
  const Placement now =
      placed_inputs_.size() > seed.number ? placed_inputs_[seed.number] : Placement();
  Placement then = now;
  then.dims.resize(op.shape.rank());
  then.dims[seed.dim] = wanted;
  std::set<int> used;
  for (const Split& split : then.dims) {
    for (const int m : split) {
      if (!used.insert(m).second) return {};  // it cannot lie so
    }
  }
  const auto pattern = [&](const Placement& placement) {
    return to_string(placement, mesh_, op.shape.rank(), names);
  };
  const std::string number = std::to_string(seed.number + 1);
  if (now.is_whole())
    return "help: place operand " + number + ": ein::place(x, mesh, \"" + pattern(then) +
           "\") moves nothing";
  const Size local = numel(local_shape(op.shape, now, mesh_));
  const std::string bytes =
      seed.split.empty()
          ? "moves nothing"
          : "moves " + to_string(local * static_cast<std::int64_t>(size_of(op.dtype))) +
                " bytes of each process";
  return "help: ein::reshard(x, \"" + pattern(now) + " -> " + pattern(then) + "\") of operand " +
         number + " " + bytes;
}

std::string PlacementClasses::way_to_divide(Size size, std::int64_t parts) const {
  const std::string whole = "leave it whole";
  if (!size.is_number())
    return "help: give it a size that " + std::to_string(parts) + " divides, or " + whole;
  return "help: pad it to " + to_string((size / parts + 1) * parts) + ", or " + whole;
}

// --- places in the call's pattern ---

namespace {

/// The call's pattern, if its text has one: `einsum "b h, h c -> b c"`.
struct ShownPattern {
  std::string op, text;
  grammar::PatternBuffer buffer;
  bool is_read = false;

  explicit ShownPattern(const std::string& call) {
    const std::size_t begin = call.find(" \""), end = call.find('"', begin + 2);
    if (begin == call.npos || end == call.npos) return;
    op = call.substr(0, begin);
    text = call.substr(begin + 2, end - begin - 2);
    grammar::Reading reading = grammar::parse_pattern(text);
    is_read = !reading.mistake;
    buffer = std::move(reading.buffer);
  }
  grammar::Pattern pattern() const { return buffer.pattern(text); }
};

/// Where dimension `dim` of `rank` stands in a side.
SourceSpan span_of(const grammar::Pattern& pattern, const grammar::Side& side, std::size_t dim,
                   std::size_t rank) {
  std::vector<const grammar::Term*> terms;
  std::size_t ellipsis = side.last;
  for (std::uint32_t t = side.first; t < side.last; t = pattern.terms[t].next) {
    if (pattern.terms[t].kind == grammar::TermKind::ellipsis) ellipsis = terms.size();
    terms.push_back(&pattern.terms[t]);
  }
  if (dim >= ellipsis) {
    const std::size_t behind = terms.size() - ellipsis - 1;
    dim = dim + behind < rank ? ellipsis : dim + terms.size() - rank;
  }
  return dim < terms.size() ? terms[dim]->span : grammar::mark_side(pattern, side, "").span;
}

}  // namespace

/// Where axes of these names stand first.
std::vector<PlacementClasses::Place> PlacementClasses::places_of(
    const std::vector<std::string>& names, const std::string& label) const {
  std::vector<Place> places;
  const ShownPattern shown(call_);
  if (!shown.is_read) return places;
  const grammar::Pattern pattern = shown.pattern();
  for (const std::string& wanted : names) {
    const auto found =
        std::find_if(pattern.terms.begin(), pattern.terms.end(), [&](const grammar::Term& term) {
          const std::string_view text = pattern.text_of(term.span);
          return text.substr(0, text.find('@')) == wanted;
        });
    if (found != pattern.terms.end()) places.push_back({found->span, label});
  }
  return places;
}

/// The place of a seed, if the pattern has a side for its value. What a pattern asks of an operand
/// or of the result is a reshard of it.
std::optional<PlacementClasses::Place> PlacementClasses::place_of(const Seed& seed) const {
  const ShownPattern shown(call_);
  if (!shown.is_read || seed.value < 0) return {};
  const grammar::Pattern pattern = shown.pattern();
  const auto inputs = pattern.inputs();
  const grammar::Side* side = nullptr;
  const auto number_of_result = [&](ValueId value) {
    const auto found = std::find(graph_.outputs.begin(), graph_.outputs.end(), value);
    return static_cast<std::size_t>(found - graph_.outputs.begin());
  };
  const std::size_t result = seed.kind == Seed::output ? seed.number
                             : seed.kind == Seed::reshard
                                 ? number_of_result(static_cast<ValueId>(seed.number))
                                 : graph_.outputs.size();
  if (seed.kind == Seed::output || result < graph_.outputs.size()) {
    if (result < pattern.output_count) side = &pattern.outputs()[result];
  } else {
    ValueId value = seed.value;
    while (graph_.op(value).kind == OpKind::reshard) value = graph_.op(value).inputs[0];
    std::size_t number = 0;
    for (ValueId v = 0; v < value; ++v) number += graph_.op(v).kind == OpKind::input;
    if (graph_.op(value).kind == OpKind::input && number < inputs.size()) side = &inputs[number];
  }
  if (!side) return {};
  return Place{span_of(pattern, *side, seed.dim, graph_.op(seed.value).shape.rank()),
               seed.split.empty() ? "whole" : text(seed.split)};
}

void PlacementClasses::complain(ErrorKind kind, const std::string& what, std::vector<Place> places,
                                std::vector<std::string> notes) const {
  std::erase(notes, "");
  if (places.empty()) {
    std::string text = call_ + ": " + what;
    for (const std::string& note : notes) text += "\n  " + note;
    throw Error(kind, text);
  }
  const ShownPattern shown(call_);
  std::vector<Mark> marks;
  for (const auto& [span, label] : places) {
    const bool is_marked = std::any_of(marks.begin(), marks.end(),
                                       [&](const Mark& mark) { return mark.span == span; });
    if (!is_marked) marks.push_back({span, label});
  }
  fail(kind, shown.op, what, shown.text, marks, notes);
}

void PlacementClasses::refuse(const Seed& known, const Seed& other) const {
  const std::string name = name_of(known, other);
  std::vector<Place> places;
  for (const Seed* seed : {&known, &other}) {
    if (const auto place = place_of(*seed)) places.push_back(*place);
  }
  if (other.kind == Seed::need) {
    complain(ErrorKind::placement,
             "axis " + name + " must be whole, as " + other.why + "; it is " + where(known), places,
             {way_out(known, {})});
  }
  complain(
      ErrorKind::placement,
      "axis " + name + " lies differently where it meets: " + where(known) + "; " + where(other),
      places, {way_out(known, other.split), way_out(other, known.split)});
}

}  // namespace ein
