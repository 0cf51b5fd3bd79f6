#include "draw/call.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "draw/coloured.hpp"
#include "draw/network.hpp"
#include "draw/panel.hpp"
#include "draw/reach.hpp"
#include "size/ask.hpp"

namespace ein::draw {
namespace {

constexpr double margin = 24, head_size = 18, between = 84, panel_gap = 26, head_line = 40;
constexpr double widest = 920;  // side by side

/// "h 2 for 8, d 3"; a number says its own size.
std::string sizes_text(const std::vector<DrawnAxis>& axes) {
  std::string text;
  for (const DrawnAxis& axis : axes) {
    if (axis.name == std::to_string(axis.size)) continue;
    text += (text.empty() ? "" : ", ") + axis.name + " " + std::to_string(axis.size);
    if (axis.real && *axis.real != axis.size) text += " for " + std::to_string(*axis.real);
  }
  return text;
}
std::string shapes_text(const std::vector<DrawnTensor>& tensors, bool are_real) {
  std::string text;
  for (const DrawnTensor& tensor : tensors) {
    text += text.empty() ? "" : ", ";
    text += (are_real ? *tensor.real : tensor.shape).to_string();
  }
  return text;
}

/// A tensor of the picture and where it lies.
struct Placed {
  const DrawnTensor* tensor;
  Panel panel;
  std::string name;
  double x = 0, y = 0;
  std::size_t first = 0;  // of its elements among those of all operands
  Rectangle cell_at(std::size_t element) const {
    Rectangle at = panel.cell_at(element);
    at.x += x;
    at.y += y + head_line;
    return at;
  }
  double width() const {
    // The heading is the name and the side of the pattern.
    const auto characters =
        static_cast<double>(length(name) + 2 + tensor->span.end - tensor->span.begin);
    return std::max(panel.width(), std::min(characters, 60.0) * 13 * Svg::character);
  }
  double height() const { return panel.height() + head_line; }
};

class CallPicture {
 public:
  CallPicture(const PatternCall& call, std::span<const Shape> shapes)
      : call_(call), example_(example_of(call, shapes)), reached_(reach(example_.graph)) {
    std::size_t elements = 0;
    for (const DrawnTensor& tensor : example_.operands) {
      add(operands_, tensor, "operand", example_.operands.size());
      operands_.back().first = elements;
      elements += operands_.back().panel.elements();
    }
    for (const DrawnTensor& tensor : example_.results)
      add(results_, tensor, "result", example_.results.size());
    find_goals(elements);
    choose_sample();
    choose_key();
  }

  std::string document() {
    Svg svg(title(), description());
    svg.style(
        ".goes:hover rect{stroke-width:3}.goes rect{stroke-width:1}.shown "
        "rect{stroke-width:2.5}.thick{stroke-width:1.5}");
    double y = margin + head_size;
    std::vector<Svg::Span> head{{std::string(name(call_.op)) + by() + "  ", svg.fill(dim)}};
    for (Svg::Span& span : coloured(svg, example_, {0, whole()})) head.push_back(std::move(span));
    svg.text(margin, y, head, head_size);
    width_ = std::max(
        width_, margin * 2 + static_cast<double>(length(title())) * head_size * Svg::character);
    for (const std::string& text : notes()) {
      y += 20;
      svg.text(margin, y, text, svg.fill(dim));
      width_ =
          std::max(width_, 2 * margin + static_cast<double>(length(text)) * 12 * Svg::character);
    }
    y += 24;
    if (multiplies()) {
      const Rectangle network = draw_network(svg, example_, margin, y);
      width_ = std::max(width_, network.width + 2 * margin);
      y += network.height + 24;
    }
    const double end = place(y);
    draw_tensors(svg);
    return svg.document(width_, end + margin);
  }

 private:
  void add(std::deque<Placed>& to, const DrawnTensor& tensor, const char* kind,
           std::size_t count) const {
    const std::string which = count > 1 ? " " + std::to_string(to.size() + 1) : "";
    to.push_back({&tensor, Panel(tensor, example_.axes), kind + which});
  }
  std::uint32_t whole() const { return static_cast<std::uint32_t>(example_.text.size()); }
  bool moves() const { return !multiplies() && call_.op != Operation::reduce; }
  bool multiplies() const { return call_.op == Operation::einsum; }
  std::string by() const {
    return call_.op == Operation::reduce ? " by " + std::string(name(call_.reduction)) : "";
  }

  // --- what goes where ---

  struct Goal {
    std::size_t result, element;
  };
  void find_goals(std::size_t elements) {
    goals_.resize(elements);
    for (std::size_t r = 0; r < reached_.size(); ++r) {
      for (std::size_t e = 0; e < reached_[r].size(); ++e) {
        for (const std::uint32_t source : reached_[r][e]) goals_[source].push_back({r, e});
      }
    }
  }
  /// The element that the picture follows: of a move the one that goes the furthest, else a result
  /// from the middle.
  void choose_sample() {
    if (!moves()) {
      for (const Sources& sources : reached_) {
        if (sources.empty()) continue;
        sample_ = {static_cast<std::size_t>(&sources - reached_.data()), sources.size() / 2};
        has_sample_ = true;
        return;
      }
      return;
    }
    std::size_t furthest = 0;
    if (!goals_.empty() && !goals_[goals_.size() / 2].empty()) {
      sample_ = goals_[goals_.size() / 2].front();
      has_sample_ = true;
    }
    for (std::size_t s = 0; s < goals_.size(); ++s) {
      for (const Goal& goal : goals_[s]) {
        const std::size_t distance = goal.element > s ? goal.element - s : s - goal.element;
        if (has_sample_ && distance <= furthest) continue;
        furthest = distance;
        sample_ = goal;
        has_sample_ = true;
      }
    }
  }
  bool is_sampled(std::size_t source) const {
    if (!has_sample_) return false;
    const auto& sources = reached_[sample_.result][sample_.element];
    return std::binary_search(sources.begin(), sources.end(), static_cast<std::uint32_t>(source));
  }

  /// The axis whose indices colour the cells: where dimensions are split or merged, the outermost
  /// axis of one; else the first that is kept.
  void choose_key() {
    const auto consider = [&](const std::vector<DrawnTensor>& tensors, bool composite) {
      for (const DrawnTensor& tensor : tensors) {
        for (const Dimension& dim : tensor.dims) {
          if (composite && dim.size() < 2) continue;
          for (const Factor& factor : dim) {
            if (!has_key_ && factor.kind == Factor::axis && factor.size > 1 && is_kept(factor)) {
              key_ = factor.number;
              has_key_ = true;
            }
          }
        }
      }
    };
    consider(example_.operands, true);
    consider(example_.results, true);
    consider(example_.operands, false);
    consider(example_.results, false);
  }
  bool is_kept(const Factor& wanted) const {
    const auto has = [&](const std::vector<DrawnTensor>& tensors) {
      return std::any_of(tensors.begin(), tensors.end(), [&](const DrawnTensor& tensor) {
        return std::any_of(tensor.dims.begin(), tensor.dims.end(), [&](const Dimension& dim) {
          return std::any_of(dim.begin(), dim.end(), [&](const Factor& factor) {
            return factor.kind == Factor::axis && factor.number == wanted.number;
          });
        });
      });
    };
    return has(example_.operands) && has(example_.results);
  }

  // --- colours ---

  /// Of a piece of a sum that holds the element, a number of its colour.
  std::optional<std::size_t> piece_of(const Placed& of, std::size_t element) const {
    for (const Dimension& dim : of.tensor->dims) {
      for (const Factor& factor : dim) {
        if (factor.kind != Factor::sum) continue;
        for (const Digit& digit : of.panel.digits(element)) {
          if (is_in(factor, digit.axis)) return digit.axis;
        }
        return example_.axes.size();  // a 1
      }
    }
    return std::nullopt;
  }
  static bool is_in(const Factor& factor, std::size_t axis) {
    if (factor.kind == Factor::axis) return factor.number == axis;
    return std::any_of(factor.pieces.begin(), factor.pieces.end(), [&](const Dimension& piece) {
      return std::any_of(piece.begin(), piece.end(),
                         [&](const Factor& inner) { return is_in(inner, axis); });
    });
  }
  Paint paint_of(const Placed& of, std::size_t element, std::size_t source) const {
    if (multiplies()) return shade(hue(7), 0);
    if (const auto piece = piece_of(of, element)) return shade(hue(*piece), 1);
    if (!goals_[source].empty()) {
      const Goal& goal = goals_[source].front();
      if (const auto piece = piece_of(results_[goal.result], goal.element))
        return shade(hue(*piece), 1);
    }
    if (operands_.size() > 1) return shade(hue(example_.axes.size() + number_of(source)), 1);
    if (call_.op == Operation::reduce) return paint_of_goal(source);
    return paint_of_key(of.panel.digits(element));
  }
  Paint paint_of_key(const std::vector<Digit>& digits) const {
    for (const Digit& digit : digits) {
      if (has_key_ && digit.axis == key_)
        return shade(hue(key_), static_cast<std::size_t>(digit.index) % 4);
    }
    return shade(hue(7), 0);
  }
  /// What is combined has one colour.
  Paint paint_of_goal(std::size_t source) const {
    if (goals_[source].size() != 1) return shade(hue(7), 0);
    return paint_of_result(goals_[source].front().element);
  }
  Paint paint_of_result(std::size_t element) const {
    return shade(has_key_ ? hue(key_) : hue(7), element % 4);
  }
  std::size_t number_of(std::size_t source) const {
    std::size_t k = 0;
    while (k + 1 < operands_.size() && operands_[k + 1].first <= source) ++k;
    return k;
  }

  // --- words ---

  std::string title() const {
    return std::string(name(call_.op)) + by() + "  " + shortened(example_.text, longest_shown);
  }
  bool is_real() const {
    return !example_.operands.empty() && example_.operands[0].real.has_value();
  }
  bool is_smaller() const {
    return std::any_of(example_.axes.begin(), example_.axes.end(),
                       [](const DrawnAxis& axis) { return axis.real && *axis.real != axis.size; });
  }
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (is_real())
      notes.push_back(shapes_text(example_.operands, true) + " → " +
                      shapes_text(example_.results, true));
    if (is_smaller() || !is_real()) {
      const std::string sizes = sizes_text(example_.axes);
      if (!sizes.empty()) notes.push_back("drawn with " + shortened(sizes, 110));
    }
    if (has_key_ && moves() && operands_.size() == 1 && !example_.has_sums())
      notes.push_back("the greater the index along " + shortened(example_.axes[key_].name, 20) +
                      ", the stronger a cell's colour");
    if (has_sample_ && !moves())
      notes.push_back("framed: one element of the result, and those that it is made of");
    return notes;
  }
  std::string description() const {
    std::string text = title() + ": " + shapes_text(example_.operands, false) + " becomes " +
                       shapes_text(example_.results, false) + ", where " +
                       sizes_text(example_.axes) + ". ";
    if (multiplies()) text += network_in_words(example_);
    for (std::size_t r = 0; r < results_.size(); ++r) {
      text += "The elements of " + results_[r].name + ", by the numbers of those " +
              (operands_.size() > 1 ? "of all operands that each is made of: "
                                    : "of the operand that each is made of: ");
      for (const std::vector<std::uint32_t>& sources : reached_[r]) {
        std::string list;
        for (const std::uint32_t source : sources)
          list += (list.empty() ? "" : " ") + std::to_string(source);
        text += (list.empty() ? "none" : list) + ", ";
      }
      if (text.ends_with(", ")) text.replace(text.size() - 2, 2, ". ");
    }
    return text;
  }

  // --- layout ---

  static double width_of(const std::deque<Placed>& list, bool across) {
    double width = across ? -panel_gap : 0;
    for (const Placed& placed : list)
      width = across ? width + placed.width() + panel_gap : std::max(width, placed.width());
    return width;
  }
  static double height_of(const std::deque<Placed>& list, bool across) {
    double height = across ? 0 : -panel_gap;
    for (const Placed& placed : list)
      height = across ? std::max(height, placed.height()) : height + placed.height() + panel_gap;
    return height;
  }
  static void put(std::deque<Placed>& list, double x, double y, bool across) {
    for (Placed& placed : list) {
      placed.x = x;
      placed.y = y;
      (across ? x : y) += (across ? placed.width() : placed.height()) + panel_gap;
    }
  }
  /// Operands on the left and results on the right, each in a row where that fits; or above and
  /// below. Gives the end.
  double place(double y) {
    constexpr bool in_a_row[][2] = {{true, true}, {true, false}, {false, true}, {false, false}};
    for (const auto& [across, results_across] : in_a_row) {
      const double left = width_of(operands_, across), right = width_of(results_, results_across);
      if (left + between + right + 2 * margin > widest) continue;
      const double a = height_of(operands_, across), b = height_of(results_, results_across),
                   most = std::max(a, b);
      put(operands_, margin, y + (most - a) / 2, across);
      put(results_, margin + left + between, y + (most - b) / 2, results_across);
      width_ = std::max(width_, margin * 2 + left + between + right);
      arrow_ = {margin + left + 14, y + most / 2 + head_line / 2, between - 28, 0};
      return y + most;
    }
    side_by_side_ = false;
    const bool across = width_of(operands_, true) + 2 * margin <= widest;
    const bool results_across = width_of(results_, true) + 2 * margin <= widest;
    put(operands_, margin, y, across);
    const double below = y + height_of(operands_, across);
    put(results_, margin, below + 50, results_across);
    width_ = std::max({width_, margin * 2 + width_of(operands_, across),
                       margin * 2 + width_of(results_, results_across)});
    arrow_ = {margin + 40, below + 8, 0, 34};
    return below + 50 + height_of(results_, results_across);
  }

  // --- the drawing ---

  void draw_tensors(Svg& svg) {
    draw_link(svg);
    for (const auto* list : {&operands_, &results_}) {
      for (const Placed& placed : *list) {
        std::vector<Svg::Span> heading{{placed.name + "  ", svg.fill(dim)}};
        for (Svg::Span& span : coloured(svg, example_, placed.tensor->span))
          heading.push_back(std::move(span));
        svg.text(placed.x, placed.y + 12, heading, 13);
        svg.text(placed.x, placed.y + 29, placed.tensor->shape.to_string(), svg.fill(dim));
        placed.panel.draw_rulers(svg, placed.x, placed.y + head_line);
      }
    }
    svg.path("M" + draw::number(arrow_.x) + " " + draw::number(arrow_.y) + "l" +
                 draw::number(arrow_.width) + " " + draw::number(arrow_.height),
             "line " + svg.stroke(line), true);
    for (const Placed& placed : operands_) {
      for (std::size_t e = 0; e < placed.panel.elements(); ++e)
        draw_source(svg, placed, e, placed.first + e);
    }
    for (std::size_t r = 0; r < results_.size(); ++r) {
      for (std::size_t e = 0; e < results_[r].panel.elements(); ++e)
        if (!moves() || reached_[r][e].empty()) draw_result(svg, r, e);
    }
  }

  static void draw_cell(Svg& svg, const Rectangle& at, const Paint& paint, const Paint& border,
                        const std::string& text, double size = 11) {
    svg.rectangle(at, 3, svg.fill(paint) + " " + svg.stroke(border));
    if (!text.empty())
      svg.text(at.x + at.width / 2, at.y + at.height / 2 + 4, text, "", Svg::Anchor::middle, size);
  }

  /// An element of an operand and, if it is moved, the places that it goes to: one group, so that
  /// all are marked where the pointer is on one.
  void draw_source(Svg& svg, const Placed& placed, std::size_t element, std::size_t source) {
    const bool is_shown = is_sampled(source);
    std::string title = placed.name + " " + placed.panel.name_of(element);
    if (moves()) {
      for (const Goal& goal : goals_[source])
        title += " → " + results_[goal.result].name + " " +
                 results_[goal.result].panel.name_of(goal.element);
    }
    svg.begin_group(title, "", is_shown ? "goes shown" : "goes");
    Paint paint = paint_of(placed, element, source);
    if (multiplies() && is_shown) paint = shade(hue(1), 2);
    const Paint border = is_shown ? ink : line;
    const std::string text = std::to_string(multiplies() ? element : source);
    draw_cell(svg, placed.cell_at(element), paint, border, text);
    if (moves()) {
      for (const Goal& goal : goals_[source])
        draw_cell(svg, results_[goal.result].cell_at(goal.element), paint, border, text);
    }
    svg.end_group();
  }

  void draw_result(Svg& svg, std::size_t r, std::size_t element) {
    const std::vector<std::uint32_t>& sources = reached_[r][element];
    const bool is_shown = has_sample_ && sample_.result == r && sample_.element == element;
    std::string title = results_[r].name + " " + results_[r].panel.name_of(element);
    for (const std::uint32_t source : sources) {
      const Placed& from = operands_[number_of(source)];
      title += (&source == sources.data() ? " of " : ", ") +
               (operands_.size() > 1 ? from.name + " " : std::string()) +
               from.panel.name_of(source - from.first);
    }
    svg.begin_group(title, "", is_shown ? "goes shown" : "goes");
    const Paint paint = multiplies()      ? shade(hue(is_shown ? 1 : 7), is_shown ? 2 : 0)
                        : sources.empty() ? page
                        : is_disjoint()   ? paint_of_result(element)
                                          : shade(hue(7), 0);
    draw_cell(svg, results_[r].cell_at(element), paint, is_shown ? ink : line,
              multiplies()         ? is_shown ? "Σ" : ""
              : sources.size() > 1 ? "Σ"
                                   : "");
    svg.end_group();
  }
  /// Whether no element is combined into several results.
  bool is_disjoint() const {
    return std::all_of(goals_.begin(), goals_.end(),
                       [](const std::vector<Goal>& goals) { return goals.size() < 2; });
  }

  /// From the element that is followed to where it goes, behind all cells.
  void draw_link(Svg& svg) const {
    if (!has_sample_ || !moves()) return;
    const Rectangle to = results_[sample_.result].cell_at(sample_.element);
    for (const std::uint32_t source : reached_[sample_.result][sample_.element]) {
      const Placed& placed = operands_[number_of(source)];
      svg.path(link(placed.cell_at(source - placed.first), to), "line thick " + svg.stroke(ink));
    }
  }
  std::string link(const Rectangle& from, const Rectangle& to) const {
    using draw::number;
    if (side_by_side_) {
      const double x = from.x + from.width, y = from.y + from.height / 2, tx = to.x - 1,
                   ty = to.y + to.height / 2, bend = std::max(40.0, (tx - x) / 2);
      return "M" + number(x) + " " + number(y) + "C" + number(x + bend) + " " + number(y) + " " +
             number(tx - bend) + " " + number(ty) + " " + number(tx) + " " + number(ty);
    }
    const double x = from.x + from.width / 2, y = from.y + from.height, tx = to.x + to.width / 2,
                 ty = to.y - 1, bend = std::max(40.0, (ty - y) / 2);
    return "M" + number(x) + " " + number(y) + "C" + number(x) + " " + number(y + bend) + " " +
           number(tx) + " " + number(ty - bend) + " " + number(tx) + " " + number(ty);
  }

  const PatternCall& call_;
  Example example_;
  std::vector<Sources> reached_;           // by each result
  std::vector<std::vector<Goal>> goals_;   // of each element of the operands
  std::deque<Placed> operands_, results_;  // a Panel refers to its tensor
  Goal sample_{};
  bool has_sample_ = false, has_key_ = false, side_by_side_ = true;
  std::size_t key_ = 0;
  double width_ = 0;
  Rectangle arrow_;
};

}  // namespace

std::string to_svg(const PatternCall& call, std::span<const Shape> shapes) {
  const std::size_t sides = call.pattern.inputs().size();
  if (shapes.empty()) {
    require_valid(call, sides);
    return CallPicture(call, shapes).document();
  }
  std::vector<OperandType> operands;
  for (const Shape& shape : shapes) operands.push_back({shape, DType::f32});
  build_graph(call, operands);  // or the call's own error
  PatternCall of_one = call;
  of_one.stacked = false;
  if (!call.stacked || sides != 1) return CallPicture(of_one, shapes).document();
  Shape all{static_cast<std::int64_t>(shapes.size())};
  for (const Size size : shapes[0]) all.push_back(size);
  return CallPicture(of_one, std::span(&all, 1)).document();
}

}  // namespace ein::draw
