// What a rearrangement is in steps that every array library has: reshape, reduce, permute, expand,
// reshape. It depends on the pattern, the number of axes and the names of known sizes alone, so
// that sizes may be symbols of the library's own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ein/error.hpp>
#include <ein/ops.hpp>
#include "exchange.hpp"
#include "graph/call.hpp"
#include "module.hpp"
#include "runtime/call_pattern.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using grammar::Side;
using grammar::Term;
using grammar::TermKind;

Operation operation_of(std::string_view word) {
  for (const Operation op : {Operation::rearrange, Operation::reduce, Operation::repeat}) {
    if (info(op).name == word) return op;
  }
  throw Error(ErrorKind::value, "recipe: of rearrange, reduce and repeat alone");
}

/// Whether its steps are those above: no function of indices, no sums, no diagonal, no tensors.
bool is_plain(const grammar::Pattern& pattern) {
  if (pattern.inputs().size() != 1 || pattern.output_count != 1) return false;
  if (pattern.has_braces() || pattern.has_sums() || pattern.has_many() || pattern.has_placements())
    return false;
  std::set<std::string_view> names;
  for (const Term& term : pattern.terms_of(pattern.inputs()[0])) {
    if (term.marked) return false;
    if (term.kind == TermKind::name && !names.insert(pattern.name_of(term)).second) return false;
  }
  return true;
}

/// The elementary axes of a side, dimension by dimension, each with its size where the pattern says
/// it, else 0. Axes without a name have one by their place.
class SideAxes {
 public:
  SideAxes(const grammar::Pattern& pattern, const Side& side, std::size_t under_ellipsis)
      : pattern_(pattern),
        terms_(pattern.terms_of(side)),
        first_(side.first),
        under_ellipsis_(under_ellipsis) {}

  nb::tuple dims() const {
    nb::list all;
    for (std::size_t i = 0; i < terms_.size(); i = after(i)) {
      if (terms_[i].kind == TermKind::ellipsis) {
        for (std::size_t k = 0; k < under_ellipsis_; ++k) all.append(nb::make_tuple(hidden(k)));
        continue;
      }
      nb::list axes;
      const bool is_group = terms_[i].kind == TermKind::group;
      for (std::size_t j = is_group ? i + 1 : i; j < after(i); ++j) add(terms_[j], axes);
      all.append(nb::tuple(axes));
    }
    return nb::tuple(all);
  }
  /// But those that `...` stands for.
  std::size_t count() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < terms_.size(); i = after(i))
      count += terms_[i].kind != TermKind::ellipsis;
    return count;
  }

 private:
  std::size_t after(std::size_t i) const {
    return terms_[i].has_members() ? terms_[i].next - first_ : i + 1;
  }
  static nb::tuple hidden(std::size_t k) { return nb::make_tuple("..." + std::to_string(k), 0); }
  void add(const Term& term, nb::list& axes) const {
    const auto named = [&](const std::string& name) {
      axes.append(nb::make_tuple(name, term.value));
    };
    switch (term.kind) {
      case TermKind::name:
        return named(std::string(pattern_.name_of(term)));
      case TermKind::number:
        if (term.value != 1) named("#" + std::to_string(term.span.begin));
        return;
      case TermKind::unnamed:
        axes.append(nb::make_tuple("_" + std::to_string(term.span.begin), 0));
        return;
      case TermKind::ellipsis:
        for (std::size_t k = 0; k < under_ellipsis_; ++k) axes.append(hidden(k));
        return;
      default:  // a group's axes follow it
        return;
    }
  }

  const grammar::Pattern& pattern_;
  std::span<const Term> terms_;
  std::uint32_t first_;
  std::size_t under_ellipsis_;
};

std::vector<AxisSize> sizes_of(nb::handle names, std::vector<std::string>& kept) {
  std::vector<AxisSize> sizes;
  for (nb::handle name : names) kept.push_back(nb::cast<std::string>(name));
  for (const std::string& name : kept) sizes.push_back({name, 1});
  return sizes;
}

/// (input, output): for each dimension its axes, (name, size or 0); None where the pattern is no
/// such rearrangement, and ein's own call is to compute it.
nb::object recipe(const std::string& operation, const std::string& pattern, std::size_t rank,
                  nb::handle names) {
  std::vector<std::string> kept;
  const std::vector<AxisSize> sizes = sizes_of(names, kept);
  const Operation op = operation_of(operation);
  const CallPattern parsed(op, detail::PatternArgument(pattern), sizes,
                           std::vector<Shape>{Shape(rank, 1)});
  require_valid({.op = op, .pattern = parsed.pattern, .sizes = sizes}, 1);
  if (!is_plain(parsed.pattern)) return nb::none();
  const grammar::Pattern& read = parsed.pattern;
  const std::size_t written = SideAxes(read, read.inputs()[0], 0).count();
  const std::size_t hidden = rank > written ? rank - written : 0;
  return nb::make_tuple(SideAxes(read, read.inputs()[0], hidden).dims(),
                        SideAxes(read, read.output(), hidden).dims());
}

/// The Error of a call, of which a shape and sizes are known; returns where there is none.
void explain(const std::string& operation, const std::string& pattern, nb::handle shape,
             nb::dict sizes) {
  std::vector<std::int64_t> dims;
  for (nb::handle size : shape) dims.push_back(nb::cast<std::int64_t>(size));
  std::vector<std::string> names;
  std::vector<AxisSize> given;
  for (auto [name, size] : sizes) names.push_back(nb::cast<std::string>(name));
  std::size_t at = 0;
  for (auto [name, size] : sizes) given.push_back({names[at++], nb::cast<std::int64_t>(size)});
  const Operation op = operation_of(operation);
  const std::vector<Shape> shapes{Shape(std::span<const std::int64_t>(dims))};
  const CallPattern parsed(op, detail::PatternArgument(pattern), given, shapes);
  build_graph({.op = op, .pattern = parsed.pattern, .sizes = given},
              std::vector<OperandType>{{shapes[0], DType::f32}});
}

}  // namespace

void add_recipe(nb::module_& m) {
  m.def("_recipe", &recipe, nb::arg("operation"), nb::arg("pattern"), nb::arg("rank"),
        nb::arg("names"));
  m.def("_explain", &explain, nb::arg("operation"), nb::arg("pattern"), nb::arg("shape"),
        nb::arg("sizes"));
}

}  // namespace ein::python
