// ShapeSpec: the notation for axes in a tensor's type, such as "batch seq hidden=64" or "*batch n+1
// ...". The notation is jaxtyping's (https://docs.kidger.site/jaxtyping) where that has one.
#pragma once

#include <ein/grammar/match.hpp>

namespace ein::grammar {

/// One dimension of a type. A size is a program in reverse Polish notation over names and numbers.
struct SpecStep {
  enum Kind : std::uint8_t { name, number, plus, minus, times } kind = number;
  SourceSpan span;  // of a name
  std::int64_t value = 0;
};
struct SpecDim {
  enum Kind : std::uint8_t { size, unnamed, open, variadic } kind = size;
  SourceSpan span;                    // the whole dimension; of a variadic one, its name
  std::int64_t fixed = -1;            // the size, where the type says it
  std::uint32_t first = 0, last = 0;  // its steps
  SourceSpan placed{};                // of a name: "@data@pod", or empty

  /// Whether it stands for any number of dimensions.
  constexpr bool is_open() const { return kind == open || kind == variadic; }
  /// Whether the type says where it lies: as it is placed, or else whole.
  constexpr bool says_place() const { return kind == size; }
};

/// A type's axes, read or while they are read.
struct SpecReading {
  std::string_view text;
  List<SpecDim> dims{};
  List<SpecStep> steps{};
  Mistake mistake{};
  std::uint32_t first_step = 0;
  std::int64_t fixed = -1;
  SourceSpan placed{};

  constexpr void add(SpecDim::Kind kind, SourceSpan span) {
    const auto last_step = static_cast<std::uint32_t>(steps.size());
    dims.push_back({kind, span, fixed, first_step, last_step, placed});
    first_step = last_step;
    fixed = -1;
    placed = {};
  }
  constexpr std::string_view text_of(SourceSpan span) const {
    return text.substr(span.begin, span.end - span.begin);
  }
  /// Whether the number of dimensions is open.
  constexpr bool is_open() const {
    for (const SpecDim& dim : dims) {
      if (dim.is_open()) return true;
    }
    return false;
  }
  /// Whether a dimension is just a name (maybe with its size).
  constexpr bool is_name(const SpecDim& dim) const {
    return dim.kind == SpecDim::size && dim.last == dim.first + 1 &&
           steps[dim.first].kind == SpecStep::name;
  }
  /// Empty where it has none.
  constexpr std::string_view name_of(const SpecDim& dim) const {
    return is_name(dim) ? text_of(steps[dim.first].span) : std::string_view();
  }
  /// Calls f(SourceSpan) for the name of each mesh axis that `dim` is split over, the outermost
  /// first.
  template <class F>
  constexpr void for_each_mesh_axis(const SpecDim& dim, F&& f) const {
    grammar::for_each_mesh_axis(text, dim.placed, f);
  }
};

constexpr std::int64_t number_at(SpecReading& r, SourceSpan span) {
  const std::int64_t value = parse_number(r.text_of(span));
  if (value < 0) r.mistake = {Complaint::number_is_too_large, span, {}, 0};
  return value;
}
constexpr void add_size(SpecReading& r, SourceSpan span) {
  const SpecStep& only = r.steps.back();
  if (r.steps.size() == r.first_step + 1 && only.kind == SpecStep::number) {
    if (r.fixed >= 0) r.mistake = {Complaint::type_is_malformed, span, {}, 0};  // "4=5"
    r.fixed = only.value;
  }
  r.add(SpecDim::size, span);
  if (r.dims.back().placed.end > 0 && !r.is_name(r.dims.back()))
    r.mistake = {Complaint::only_a_named_axis_is_placed, span, {}, 0};
}
constexpr void require_one_open_dim(SpecReading& r) {
  const SpecDim* open = nullptr;
  for (const SpecDim& dim : r.dims) {
    if (!dim.is_open()) continue;
    if (open) r.mistake = {Complaint::ellipsis_is_repeated, dim.span, open->span, 0};
    open = &dim;
  }
}

constexpr void require_mesh_axes_once(SpecReading& r) {
  List<SourceSpan> seen;
  for (const SpecDim& dim : r.dims) {
    r.for_each_mesh_axis(dim, [&](SourceSpan mesh_axis) {
      for (const SourceSpan& other : seen) {
        if (!r.mistake && r.text_of(other) == r.text_of(mesh_axis))
          r.mistake = {Complaint::mesh_axis_is_repeated, mesh_axis, other, 0};
      }
      seen.push_back(mesh_axis);
    });
  }
}

/// A rule of a type's axes has matched; `span` is the text.
constexpr void on(Event event, SpecReading& r, SourceSpan span) {
  switch (event) {
    case Event::spec_name:
      return r.steps.push_back({SpecStep::name, span, 0});
    case Event::spec_number:
      return r.steps.push_back({SpecStep::number, span, number_at(r, span)});
    case Event::spec_times:
      return r.steps.push_back({SpecStep::times, span, 0});
    case Event::spec_plus:
      return r.steps.push_back({SpecStep::plus, span, 0});
    case Event::spec_minus:
      return r.steps.push_back({SpecStep::minus, span, 0});
    case Event::mesh_axis:
      return add_mesh_axis(r.placed, span);
    case Event::spec_fixed_size:
      r.fixed = number_at(r, span);
      return;
    case Event::spec_size:
      return add_size(r, span);
    case Event::spec_unnamed:
      return r.add(SpecDim::unnamed, span);
    case Event::spec_open:
      return r.add(SpecDim::open, span);
    case Event::spec_variadic:
      return r.add(SpecDim::variadic, {span.begin + 1, span.end});
    case Event::shape_spec:
      require_one_open_dim(r);
      return require_mesh_axes_once(r);
    default:
      return;
  }
}
constexpr Mistake explain_failure(const SpecReading& r, std::uint32_t at) {
  const auto end = static_cast<std::uint32_t>(r.text.size());
  if (at > 0 && r.text[at - 1] == '@')
    return {Complaint::mesh_axis_is_missing, {at - 1, at}, {}, 0};
  if (at < end && r.text[at] == '@') return explain_at_sign(r.text, {}, at);
  return {Complaint::type_is_malformed, {at, at < end ? at + 1 : end}, {}, 0};
}

/// Reads a type's axes; the result holds them or the first mistake.
constexpr SpecReading read_shape_spec(std::string_view text) {
  SpecReading reading{.text = text};
  if (text.size() > max_pattern_bytes) {
    reading.mistake = {Complaint::pattern_is_too_long, {0, 0}, {}, 0};
  } else {
    detail::Matcher(reading).match(table::shape_spec);
  }
  return reading;
}

}  // namespace ein::grammar
