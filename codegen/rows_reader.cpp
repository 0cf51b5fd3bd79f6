// The values that nests of a row read, as text: arguments, loads, and names of what is there.
#include <algorithm>

#include "codegen/rows.hpp"
#include "size/ask.hpp"

namespace ein::codegen {
namespace {

using Operand = LoopNest::Operand;

std::string name_of(std::size_t source) { return "s" + std::to_string(source); }

}  // namespace

RowsReader::RowsReader(Writer& writer, const RowsGroup& group, const RowsPlan& plan,
                       const RowsValues& values)
    : w_(writer),
      group_(group),
      plan_(plan),
      values_(values),
      is_there_(values.sources().size(), false) {}

// --- arguments and arrays ---

std::size_t RowsReader::pointer(const Operand& operand) {
  const auto found = std::find_if(pointers_.begin(), pointers_.end(), [&](const Operand* p) {
    return p->buffer == operand.buffer && always_equal(p->offset, operand.offset) &&
           p->dtype == operand.dtype;
  });
  if (found != pointers_.end()) return static_cast<std::size_t>(found - pointers_.begin());
  w_.pointer("const " + element_type(operand.dtype), input_name(pointers_.size()), operand);
  pointers_.push_back(&operand);
  return pointers_.size() - 1;
}

void RowsReader::declare_arguments() {
  bool is_indirect = false;
  for (const RowsSource& source : values_.sources()) {
    Argument argument;
    if (source.positions) {
      is_indirect = true;
      argument.positions_pointer = pointer(*source.positions);
    }
    argument.pointer = pointer(*source.operand);
    arguments_.push_back(argument);
  }
  for (std::size_t m = 0; m < group_.nests.size(); ++m) {
    const Operand& y = group_.nests[m].output;
    const std::string type = element_type(y.dtype), name = "y" + std::to_string(m);
    if (y.buffer == workspace_buffer)
      w_.workspace(type, name, 0, plan_.rows * plan_.pieces * size_of(y.dtype));
    else if (!group_.is_local[m])
      w_.pointer(type, name, y);
  }
  if (is_indirect) w_.fault();
}

void RowsReader::declare_held() {
  const std::string packs = "[" + std::to_string(plan_.packs) + "]";
  for (std::size_t m : values_.held()) {
    w_.line(element_type(group_.nests[m].compute) + " h" + std::to_string(m) + packs + pack() +
            ";");
  }
  for (std::size_t s = 0; s < values_.sources().size(); ++s) {
    const RowsSource& source = values_.sources()[s];
    if (!source.is_held) continue;
    w_.line(element_type(source.compute) + " " + name_of(s) + packs +
            (is_pack(source) ? pack() : "") + ";");
  }
}

// --- packs ---

void RowsReader::open_pack() {
  w_.open_unrolled("for (int j = 0; j < " + std::to_string(plan_.width) + "; ++j) {");
}

std::string RowsReader::pack() const {
  return plan_.width > 1 ? "[" + std::to_string(plan_.width) + "]" : "";
}

std::string RowsReader::place_of_j(const Operand& operand) const {
  const Size stride = plan_.width > 1 ? operand.strides[group_.axes.back()] : Size(0);
  const std::string place = w_.place(operand);
  if (always_equal(stride, 0)) return place;
  return added(place, is_one(stride) ? "j" : "j * " + w_.number(stride));
}

/// Whether a thread has several elements of a source at a time, an array of them.
bool RowsReader::is_pack(const RowsSource& source) const {
  const std::size_t axis = group_.axes.back();
  return source.is_many && plan_.width > 1 &&
         (!always_equal(source.operand->strides[axis], 0) ||
          (source.positions && !always_equal(source.positions->strides[axis], 0)));
}

/// Whether it reads these with one access.
bool RowsReader::is_at_once(const RowsSource& source) const {
  const std::size_t axis = group_.axes.back();
  return is_one(source.operand->strides[axis]) &&
         (!source.positions || always_equal(source.positions->strides[axis], 0));
}

// --- loads ---

void RowsReader::load(std::size_t s) {
  if (is_there_[s]) return;
  const RowsSource& source = values_.sources()[s];
  is_there_[s] = source.is_held || !source.is_many;
  const std::string type = element_type(source.compute),
                    to = source.is_held ? name_of(s) + "[p]" : name_of(s);
  if (!is_pack(source)) {
    const std::string element = element_of(s, false);
    w_.line((source.is_held ? to : "const " + type + " " + to) + " = " + element + ";");
    return;
  }
  if (!source.is_held) w_.line(type + " " + to + pack() + ";");
  if (is_at_once(source)) return load_at_once(s, to);
  open_pack();
  const std::string element = element_of(s, true);
  w_.line(to + "[j] = " + element + ";");
  w_.close();
}

void RowsReader::load_scalars(std::size_t m) {
  for (std::size_t i : group_.reads_of(m)) {
    if (group_.maker.contains(group_.nests[m].inputs[i].buffer)) continue;
    const std::size_t s = values_.source_of(m, i);
    if (!values_.sources()[s].is_many) load(s);
  }
}

void RowsReader::load_at_once(std::size_t s, const std::string& to) {
  const RowsSource& source = values_.sources()[s];
  const std::string place = w_.place(*source.operand);
  const auto load_from = [&](const std::string& at) {
    w_.line("load(" + to + ", " + added(input_name(arguments_[s].pointer), at) + ");");
  };
  if (!source.positions) return load_from(place);
  const std::string position = read_position(s, w_.place(*source.positions));
  w_.open("if (" + inside_axis(position, source.operand->indirection) + ") {");
  load_from(moved(source, position, place));
  w_.close("} else {");
  w_.line("  for (int j = 0; j < " + std::to_string(plan_.width) + "; ++j) " + to +
          "[j] = " + literal(source.compute, 0, 0) + ";");
  w_.line("}");
}

/// The element of a source at hand, or element j of the pack at hand, after reading its position.
std::string RowsReader::element_of(std::size_t s, bool in_pack) {
  const RowsSource& source = values_.sources()[s];
  const auto place_of = [&](const Operand& operand) {
    return in_pack ? place_of_j(operand) : w_.place(operand);
  };
  const auto element_at = [&](const std::string& place) {
    return converted(input_name(arguments_[s].pointer) + "[" + place + "]", source.operand->dtype,
                     source.compute);
  };
  if (!source.positions) return element_at(place_of(*source.operand));
  const std::string position = read_position(s, place_of(*source.positions));
  return inside_axis(position, source.operand->indirection) + " ? " +
         element_at(moved(source, position, place_of(*source.operand))) + " : " +
         literal(source.compute, 0, 0);
}

/// Reads a source's position and returns its name.
std::string RowsReader::read_position(std::size_t s, const std::string& place) {
  const std::string position = "p" + std::to_string(s);
  w_.line("const i64 " + position + " = " + input_name(arguments_[s].positions_pointer) + "[" +
          place + "];");
  return position;
}

/// Where a source's elements begin that a position moves to.
std::string RowsReader::moved(const RowsSource& source, const std::string& position,
                              const std::string& place) const {
  return added(
      w_.index_type() + "(" + position + ") * " + w_.number(source.operand->indirection.stride),
      place);
}

// --- names ---

std::string RowsReader::input(std::size_t m, std::size_t i) const {
  const LoopNest& nest = group_.nests[m];
  const auto made = group_.maker.find(nest.inputs[i].buffer);
  if (made != group_.maker.end()) {
    const std::size_t other = made->second;
    return converted(value_of(other), group_.nests[other].compute, nest.compute);
  }
  const std::size_t s = values_.source_of(m, i);
  const RowsSource& source = values_.sources()[s];
  return name_of(s) + (source.is_held ? "[p]" : "") + (is_pack(source) ? "[j]" : "");
}

std::vector<std::string> RowsReader::inputs(std::size_t m,
                                            const std::vector<std::size_t>& reads) const {
  std::vector<std::string> values(std::max<std::size_t>(1, group_.nests[m].inputs.size()));
  for (std::size_t i : reads) values[i] = input(m, i);
  return values;
}

std::string RowsReader::value_of(std::size_t m) const {
  const std::string number = std::to_string(m);
  if (!group_.is_many(m) || group_.is_reduction(m)) return "r" + number;
  return values_.held().contains(m) ? "h" + number + "[p]" + at_j() : "w" + number;
}

}  // namespace ein::codegen
