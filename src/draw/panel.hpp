// A tensor as a picture: a cell for each element, and rulers that say its indices.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "draw/example.hpp"
#include "draw/svg.hpp"

namespace ein::draw {

/// The index of an element along one axis. An axis is a number of Example::axes.
struct Digit {
  std::size_t axis = 0;
  std::int64_t index = 0;
};

/// The places of the cells of a tensor. The last dimension goes to the right, the one before it
/// down, and so on by turns; what belongs to one index of an outer axis stands together.
class Panel {
 public:
  /// A side of a cell, in pixels.
  static constexpr double cell = 26;

  Panel(const DrawnTensor& tensor, std::span<const DrawnAxis> axes);

  /// With the rulers.
  double width() const { return left_ + extent(columns_) + 4; }
  double height() const { return above_ + extent(rows_) + below_; }
  std::size_t elements() const { return columns_.begins.size() * rows_.begins.size(); }
  /// Of a cell, from the corner of the panel.
  Rectangle cell_at(std::size_t element) const;
  /// The indices that name an element, those of braces left out.
  std::vector<Digit> digits(std::size_t element) const;
  /// "s=1 h=0 d=2", or "()" of the only element of a scalar.
  std::string name_of(std::size_t element) const;

  void draw_rulers(Svg& svg, double x, double y) const;

 private:
  struct Segment {
    std::size_t level = 0;
    double begin = 0, end = 0;
    const Factor* factor = nullptr;
    std::int64_t index = 0;
  };
  /// One of the two directions.
  struct Line {
    std::vector<double> begins;  // of cells
    std::vector<Segment> segments;
    std::vector<std::vector<std::string>> names;  // of the axes of each level
    std::vector<const Factor*> firsts;            // of each level an axis, for its colour
  };
  struct Step {
    const Factor* factor;
    double gap;  // between its indices
  };

  Line laid(const std::vector<std::size_t>& dims) const;
  void lay(std::span<const Step> steps, std::size_t level, double& at, Line& line) const;
  static std::size_t depth_of(std::span<const Step> steps);
  static std::vector<Step> steps_of(const Dimension& dim, double inner_gap, double outer_gap);
  static double extent(const Line& line);
  void add_digits(const Dimension& dim, std::int64_t position, std::vector<Digit>& digits) const;
  double strip_width(std::size_t level) const;
  static std::string label(const Segment& segment);
  void draw_segment(Svg& svg, const Rectangle& at, const Segment& segment) const;

  const DrawnTensor& tensor_;
  std::span<const DrawnAxis> axes_;
  std::vector<std::size_t> column_dims_, row_dims_;
  Line columns_, rows_;
  double left_ = 0, above_ = 0, below_ = 0;
};

}  // namespace ein::draw
