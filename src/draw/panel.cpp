#include "draw/panel.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein::draw {
namespace {

constexpr double strip = 16;  // a level of a ruler
constexpr std::size_t longest_name = 10;

double width_of(const std::string& text) {
  return static_cast<double>(length(text)) * 12 * Svg::character;
}
std::string shown_name(const Factor& factor) { return shortened(factor.text, longest_name); }

}  // namespace

Panel::Panel(const DrawnTensor& tensor, std::span<const DrawnAxis> axes)
    : tensor_(tensor), axes_(axes) {
  const std::size_t rank = tensor.dims.size();
  for (std::size_t d = 0; d < rank; ++d)
    ((rank - 1 - d) % 2 == 0 ? column_dims_ : row_dims_).push_back(d);
  columns_ = laid(column_dims_);
  rows_ = laid(row_dims_);
  double names = 0;
  for (const auto& level : columns_.names) {
    for (const std::string& name : level) names = std::max(names, width_of(name) + 8);
  }
  double strips = 0;
  for (std::size_t l = 0; l < rows_.names.size(); ++l) strips += strip_width(l) + 3;
  left_ = std::max(names, strips + (strips > 0 ? 4 : 0));
  above_ = static_cast<double>(columns_.names.size()) * (strip + 3) + 4;
  below_ = rows_.names.empty() ? 4 : 20;
}

std::vector<Panel::Step> Panel::steps_of(const Dimension& dim, double inner_gap, double outer_gap) {
  std::vector<Step> steps;
  for (const Factor& factor : dim)
    steps.push_back({&factor, &factor == &dim.back() ? inner_gap : outer_gap});
  return steps;
}

Panel::Line Panel::laid(const std::vector<std::size_t>& dims) const {
  Line line;
  std::vector<Step> steps;
  for (const std::size_t d : dims) {
    const bool is_last = d == dims.back();
    const std::vector<Step> more = steps_of(tensor_.dims[d], is_last ? 2 : 20, is_last ? 8 : 26);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  const std::size_t depth = depth_of(steps);
  line.names.resize(depth);
  line.firsts.resize(depth, nullptr);
  double at = 0;
  lay(steps, 0, at, line);
  return line;
}

/// How many levels the rulers have.
std::size_t Panel::depth_of(std::span<const Step> steps) {
  std::size_t depth = 0;
  for (const Step& step : steps) {
    std::size_t most = step.factor->kind == Factor::sum ? 0 : 1;
    for (const Dimension& piece : step.factor->pieces)
      most = std::max(most, depth_of(steps_of(piece, 2, 8)));
    depth += most;
  }
  return depth;
}

void Panel::lay(std::span<const Step> steps, std::size_t level, double& at, Line& line) const {
  if (steps.empty()) {
    line.begins.push_back(at);
    at += cell;
    return;
  }
  const auto& [factor, gap] = steps.front();
  const std::span<const Step> rest = steps.subspan(1);
  if (factor->kind == Factor::sum) {
    // The levels of the rest come below those of the longest piece.
    std::size_t most = 0;
    for (const Dimension& piece : factor->pieces)
      most = std::max(most, depth_of(steps_of(piece, 2, 8)));
    bool is_first = true;
    for (const Dimension& piece : factor->pieces) {
      std::vector<Step> inside = steps_of(piece, gap, gap + 6);
      const std::size_t skipped = most - depth_of(inside);
      inside.insert(inside.end(), rest.begin(), rest.end());
      if (size_of(piece) == 0) continue;
      if (!is_first) at += gap + 8;
      is_first = false;
      lay(inside, level + skipped, at, line);
    }
    return;
  }
  const std::string name = shown_name(*factor);
  std::vector<std::string>& names = line.names[level];
  // Axes side by side are named at each index.
  if (!factor->is_piece && std::find(names.begin(), names.end(), name) == names.end())
    names.push_back(name);
  if (!line.firsts[level]) line.firsts[level] = factor;
  for (std::int64_t i = 0; i < factor->size; ++i) {
    if (i > 0) at += gap;
    const double begin = at;
    lay(rest, level + 1, at, line);
    line.segments.push_back({level, begin, at, factor, i});
  }
}

double Panel::extent(const Line& line) {
  return line.begins.empty() ? 0 : line.begins.back() + cell;
}
double Panel::strip_width(std::size_t level) const {
  double width = strip;
  for (const std::string& name : rows_.names[level]) width = std::max(width, width_of(name) + 4);
  for (const Segment& segment : rows_.segments) {
    if (segment.level == level) width = std::max(width, width_of(label(segment)) + 4);
  }
  return width;
}

Rectangle Panel::cell_at(std::size_t element) const {
  // Its position along each dimension, then its column and its row.
  std::vector<std::size_t> position(tensor_.dims.size());
  for (std::size_t d = tensor_.dims.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(size_of(tensor_.dims[d]));
    position[d] = element % size;
    element /= size;
  }
  const auto place = [&](const std::vector<std::size_t>& dims) {
    std::size_t at = 0;
    for (const std::size_t d : dims)
      at = at * static_cast<std::size_t>(size_of(tensor_.dims[d])) + position[d];
    return at;
  };
  return {left_ + columns_.begins[place(column_dims_)], above_ + rows_.begins[place(row_dims_)],
          cell, cell};
}

void Panel::add_digits(const Dimension& dim, std::int64_t position,
                       std::vector<Digit>& digits) const {
  std::int64_t rest = size_of(dim);
  for (const Factor& factor : dim) {
    rest /= factor.size;
    std::int64_t index = position / rest;
    position %= rest;
    if (factor.kind == Factor::axis) digits.push_back({factor.number, index});
    if (factor.kind != Factor::sum) continue;
    for (const Dimension& piece : factor.pieces) {
      if (index < size_of(piece)) {
        add_digits(piece, index, digits);
        break;
      }
      index -= size_of(piece);
    }
  }
}

std::vector<Digit> Panel::digits(std::size_t element) const {
  std::vector<std::int64_t> position(tensor_.dims.size());
  for (std::size_t d = tensor_.dims.size(); d-- > 0;) {
    const auto size = static_cast<std::size_t>(size_of(tensor_.dims[d]));
    position[d] = static_cast<std::int64_t>(element % size);
    element /= size;
  }
  std::vector<Digit> digits;
  for (std::size_t d = 0; d < position.size(); ++d)
    add_digits(tensor_.dims[d], position[d], digits);
  return digits;
}

std::string Panel::name_of(std::size_t element) const {
  std::string text;
  for (const Digit& digit : digits(element)) {
    text += (text.empty() ? "" : " ") + axes_[digit.axis].name + "=" + std::to_string(digit.index);
  }
  return text.empty() ? "()" : text;
}

std::string Panel::label(const Segment& segment) {
  const std::string index = std::to_string(segment.index);
  return segment.factor->is_piece ? shortened(segment.factor->text, 3) + index : index;
}

void Panel::draw_segment(Svg& svg, const Rectangle& at, const Segment& segment) const {
  const bool is_axis = segment.factor->kind == Factor::axis;
  const Paint colour = is_axis ? hue(segment.factor->number) : dim;
  svg.rectangle(at, 2, svg.fill(shade(colour, segment.index % 2 == 0 ? 1 : 2)));
  svg.text(at.x + at.width / 2, at.y + at.height / 2 + 4, label(segment), "", Svg::Anchor::middle,
           11);
}

void Panel::draw_rulers(Svg& svg, double x, double y) const {
  const auto colour_of = [&](const Factor* factor) {
    return factor && factor->kind == Factor::axis ? hue(factor->number) : dim;
  };
  const auto join = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : "/") + name;
    return text;
  };
  const double top = y + above_ - 4 - static_cast<double>(columns_.names.size()) * (strip + 3) + 1;
  for (const Segment& segment : columns_.segments)
    draw_segment(svg,
                 {x + left_ + segment.begin, top + static_cast<double>(segment.level) * (strip + 3),
                  segment.end - segment.begin, strip},
                 segment);
  for (std::size_t l = 0; l < columns_.names.size(); ++l) {
    svg.text(x + left_ - 6, top + static_cast<double>(l) * (strip + 3) + 12,
             join(columns_.names[l]), "bold " + svg.fill(colour_of(columns_.firsts[l])),
             Svg::Anchor::end);
  }
  double at = x + left_ - 4;
  for (std::size_t l = rows_.names.size(); l-- > 0;) {
    const double width = strip_width(l);
    at -= width + 3;
    for (const Segment& segment : rows_.segments) {
      if (segment.level == l)
        draw_segment(svg, {at + 3, y + above_ + segment.begin, width, segment.end - segment.begin},
                     segment);
    }
    svg.text(at + 3 + width / 2, y + above_ + extent(rows_) + 14, join(rows_.names[l]),
             "bold " + svg.fill(colour_of(rows_.firsts[l])), Svg::Anchor::middle);
  }
}

}  // namespace ein::draw
