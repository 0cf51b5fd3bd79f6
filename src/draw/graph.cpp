#include "draw/graph.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "draw/layers.hpp"
#include "draw/svg.hpp"
#include "size/ask.hpp"

namespace ein {
namespace {

// In pixels.
constexpr double line_height = 16, box_height = 3 * line_height + 8, pill_height = 24;
constexpr double layer_height = box_height + 44, gap = 22, margin = 24, legend_line = 22;
constexpr double least_width = 480;  // so that the legend has room
constexpr double character = 7.3;    // of 12 pixel monospace type, and some room
constexpr std::size_t longest_line = 44;

/// A kind of box, for its colour and its line in the legend.
struct Style {
  std::string_view name;
  draw::Paint fill, border;
};
constexpr Style styles[] = {
    {"argument", {0xe8f1fb, 0x16273a}, {0x4a7fb5, 0x6ea6dc}},
    {"parameter", {0xcfe3f7, 0x1d3a57}, {0x1f5a94, 0x8fc1f2}},
    {"optimizer state", {0xdcdff3, 0x262a4d}, {0x5b62a8, 0x9aa0e6}},
    {"constant", {0xeef0f2, 0x21262d}, {0x8a939c, 0x8a939c}},
    {"contraction", {0xfde0c5, 0x45291a}, {0xc8702a, 0xe8955a}},
    {"elementwise", {0xdff2df, 0x18351c}, {0x4d9a50, 0x6fc173}},
    {"reduction, scan, sort", {0xf6dcec, 0x421f35}, {0xa8477f, 0xd880b3}},
    {"gather, scatter", {0xd7f0ee, 0x12393a}, {0x2e8a83, 0x5bbdb6}},
    {"function of matrices", {0xe4e0f7, 0x2d2551}, {0x6a55b0, 0xa494e8}},
    {"moves", {0xf4f1e4, 0x33301d}, {0xa39a6b, 0xc0b786}},
    {"result, assignment", {0xffffff, 0x0d1117}, {0x444444, 0xb8c0c8}},
};
enum StyleId {
  argument,
  parameter,
  optimizer_state,
  constant,
  contraction,
  elementwise,
  reduction,
  indirect,
  matrices,
  moves,
  end
};

StyleId style_of(OpKind kind) {
  constexpr StyleId by_kind[] = {argument,  elementwise, contraction, reduction, moves,
                                 moves,     moves,       indirect,    indirect,  reduction,
                                 reduction, matrices,    moves,       moves};
  static_assert(std::size(by_kind) == static_cast<std::size_t>(OpKind::collective) + 1);
  return by_kind[static_cast<std::size_t>(kind)];
}
/// The first styles are those of inputs, in the order of the roles.
StyleId style_of(InputRole role) { return static_cast<StyleId>(role); }

struct PhaseStyle {
  Phase phase;
  std::string_view name;
  draw::Paint colour;
};
constexpr PhaseStyle phases[] = {{Phase::forward, "forward", {0x9aa3ab, 0x8b949e}},
                                 {Phase::recompute, "computed again", {0x3f7fd0, 0x6aa5f0}},
                                 {Phase::backward, "backward", {0xd0433f, 0xf0706b}},
                                 {Phase::update, "update", {0x2f2f2f, 0xe0e0e0}}};
draw::Paint colour(Phase phase) {
  for (const PhaseStyle& style : phases) {
    if (style.phase == phase) return style.colour;
  }
  return phases[0].colour;
}

struct Box {
  std::string id;
  std::vector<std::string> lines;
  std::string whole;  // what is shown of it when it is pointed at
  StyleId style = end;
  Phase phase = Phase::forward;
  bool is_operation = false;
  double width() const {
    std::size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, draw::length(line));
    return static_cast<double>(most) * character + 26;
  }
  double height() const { return lines.size() == 1 ? pill_height : box_height; }
};

Box box_of(const Graph& graph, ValueId id) {
  const Op& op = graph.op(id);
  const std::string name_of_value = "%" + std::to_string(id);
  Box box{"v" + std::to_string(id),
          {},
          name_of_value + " = " + to_string(op),
          style_of(op.kind),
          op.marks.phase};
  box.is_operation = op.kind != OpKind::input;
  const std::string_view kind = op.kind == OpKind::matrix       ? name(op.function)
                                : op.kind == OpKind::collective ? name(op.collective)
                                                                : name(op.kind);
  std::string head = name_of_value + " " + std::string(kind), what;
  if (op.kind == OpKind::reduce || op.kind == OpKind::scan || op.kind == OpKind::scatter)
    head += " " + std::string(name(op.combine));
  if (op.kind == OpKind::map) {
    what = to_string(op.expr);
  } else if (op.kind == OpKind::concat) {
    what = "along dimension " + std::to_string(op.dim);
  } else {
    const std::size_t open = box.whole.find('"'), close = box.whole.rfind('"');
    if (open < close) what = box.whole.substr(open + 1, close - open - 1);
  }
  box.lines = {head, draw::shortened(what, longest_line),
               std::string(name(op.dtype)) + " " + op.shape.to_string()};
  return box;
}

class Picture {
 public:
  Picture(const Graph& graph, std::span<const InputRole> roles) {
    std::size_t input = 0;
    for (std::size_t id = 0; id < graph.ops.size(); ++id) {
      boxes_.push_back(box_of(graph, static_cast<ValueId>(id)));
      const Op& op = graph.ops[id];
      if (op.kind == OpKind::input) {
        const InputRole role = input < roles.size() ? roles[input] : InputRole::argument;
        boxes_.back().style = style_of(role);
        boxes_.back().lines[1] = styles[style_of(role)].name;
        ++input;
      }
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const auto seen = op.inputs.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(op.inputs.begin(), seen, op.inputs[i]) == seen)
          edges_.emplace_back(op.inputs[i], id);
      }
    }
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const std::string which = graph.outputs.size() > 1 ? " " + std::to_string(o + 1) : "";
      add_end("r" + std::to_string(o), "result" + which, graph.outputs[o]);
    }
    for (std::size_t a = 0; a < graph.assignments.size(); ++a) {
      const auto& [target, value] = graph.assignments[a];
      add_end("a" + std::to_string(a), "assigned to %" + std::to_string(target), value);
    }
    std::vector<double> widths;
    for (const Box& box : boxes_) widths.push_back(box.width());
    layout_ = layered_layout(widths, edges_, gap);
    has_phases_ = occurs(Phase::recompute) || occurs(Phase::backward) || occurs(Phase::update);
    legend_height_ = each_entry([](std::string_view, double, double, const auto&) {});
  }

  std::string text() const {
    draw::Svg svg("A graph of " + std::to_string(boxes_.size()) + " boxes", description());
    legend(svg);
    for (std::size_t e = 0; e < edges_.size(); ++e) add_arrow(svg, e);
    for (std::size_t n = 0; n < boxes_.size(); ++n) show(svg, n);
    return svg.document(
        content_width() + 2 * margin,
        legend_height_ + static_cast<double>(layout_.layers) * layer_height + 2 * margin);
  }

 private:
  void add_end(const std::string& id, const std::string& label, ValueId value) {
    edges_.emplace_back(value, boxes_.size());
    boxes_.push_back({id, {label}, label, end});
  }

  /// The graph is in the middle where the legend is wider.
  double across(double x) const { return margin + (content_width() - layout_.width) / 2 + x; }
  double middle_x(std::size_t n) const { return across(layout_.x[n]); }
  double top_of(std::size_t layer) const {
    return legend_height_ + margin + static_cast<double>(layer) * layer_height;
  }
  double top(std::size_t n) const {
    return top_of(layout_.layer[n]) + (box_height - boxes_[n].height()) / 2;
  }

  /// What the boxes say, from top to bottom, as far as one listens.
  std::string description() const {
    constexpr std::size_t most = 40;
    std::string text;
    for (std::size_t n = 0; n < std::min(most, boxes_.size()); ++n)
      text += boxes_[n].whole + (n + 1 < boxes_.size() ? "; " : ".");
    if (boxes_.size() > most) text += "and " + std::to_string(boxes_.size() - most) + " more.";
    return text;
  }

  void add_arrow(draw::Svg& svg, std::size_t e) const {
    using draw::number;
    const auto [from, to] = edges_[e];
    double x = middle_x(from), y = top(from) + boxes_[from].height();
    std::string path = "M" + number(x) + " " + number(y);
    const auto curve_to = [&](double to_x, double to_y) {
      const double half = (y + to_y) / 2;
      path += "C" + number(x) + " " + number(half) + " " + number(to_x) + " " + number(half) + " " +
              number(to_x) + " " + number(to_y);
      x = to_x;
      y = to_y;
    };
    for (const auto& [bend_x, layer] : layout_.bends[e]) {
      curve_to(across(bend_x), top_of(layer));
      y = top_of(layer) + box_height;
      path += "V" + number(y);
    }
    curve_to(middle_x(to), top(to) - 1);
    svg.path(path, "line " + svg.stroke(draw::line), true);
  }

  static void add_box(draw::Svg& svg, const draw::Rectangle& at, double radius,
                      const Style& style) {
    svg.rectangle(at, radius, svg.fill(style.fill) + " " + svg.stroke(style.border));
  }

  void show(draw::Svg& svg, std::size_t n) const {
    const Box& box = boxes_[n];
    const double width = box.width(), height = box.height(), x = middle_x(n) - width / 2,
                 y = top(n);
    const bool is_round = box.lines.size() == 1 || !box.is_operation;
    svg.begin_group(box.whole, box.id);
    add_box(svg, {x, y, width, height}, is_round ? 12 : 4, styles[box.style]);
    if (box.is_operation && has_phases_) add_bar(svg, x, y + 4, height - 8, box.phase);
    for (std::size_t i = 0; i < box.lines.size(); ++i) {
      const double at =
          y + (box.lines.size() == 1 ? 16 : 17 + static_cast<double>(i) * line_height);
      const bool is_head = i == 0 && box.lines.size() > 1;
      svg.text(x + 13, at, box.lines[i], is_head ? "bold" : i == 2 ? svg.fill(draw::dim) : "");
    }
    svg.end_group();
  }

  // --- legend ---

  /// Calls show(label, x, y, mark) for the kinds and phases that occur, in lines that fit the
  /// picture; the height.
  template <class Show>
  double each_entry(Show&& show) const {
    double x = margin, y = margin / 2;
    const auto add = [&](std::string_view label, const auto& mark) {
      const double width = static_cast<double>(label.size()) * character + 40;
      if (x + width > content_width() + margin) {
        x = margin;
        y += legend_line;
      }
      show(label, x, y, mark);
      x += width;
    };
    for (std::size_t s = 0; s < std::size(styles); ++s) {
      const bool occurs =
          std::any_of(boxes_.begin(), boxes_.end(), [&](const Box& box) { return box.style == s; });
      if (occurs)
        add(styles[s].name, [s](draw::Svg& svg, double at, double top) {
          add_box(svg, {at, top, 18, 12}, 3, styles[s]);
        });
    }
    for (const PhaseStyle& phase : phases) {
      if (has_phases_ && occurs(phase.phase))
        add(phase.name, [&](draw::Svg& svg, double at, double top) {
          add_bar(svg, at + 7, top, 12, phase.phase);
        });
    }
    return y + legend_line;
  }
  double content_width() const { return std::max(layout_.width, least_width); }
  bool occurs(Phase phase) const {
    return std::any_of(boxes_.begin(), boxes_.end(),
                       [&](const Box& box) { return box.is_operation && box.phase == phase; });
  }
  static void add_bar(draw::Svg& svg, double x, double y, double height, Phase phase) {
    svg.rectangle({x, y, 4, height}, 0, svg.fill(colour(phase)));
  }
  void legend(draw::Svg& svg) const {
    svg.begin_group("", "legend");
    each_entry([&](std::string_view label, double x, double y, const auto& mark) {
      mark(svg, x, y);
      svg.text(x + 24, y + 10, label);
    });
    svg.end_group();
  }

  bool has_phases_ = false;  // more than one
  double legend_height_ = 0;
  std::vector<Box> boxes_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;
  LayeredLayout layout_;
};

}  // namespace

std::string to_svg(const Graph& graph, std::span<const InputRole> roles) {
  return Picture(graph, roles).text();
}

}  // namespace ein
