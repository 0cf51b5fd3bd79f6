// Agreement with einops, call by call: tests/fixtures/einops/rows.tsv holds what einops 0.8.2 made
// of the calls in make.py beside it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <ein/ein.hpp>

namespace {

using ein::AxisSize;
using ein::runtime;
using ein::Shape;
using ein::Tensor;

// Where ein takes more than einops.
const std::set<std::string> only_ein_takes = {
    // Groups in groups, `()` in a group included.
    "rearrange ((a b) c) -> a b c",
    "rearrange a b -> ((a b))",
    "rearrange a b -> (1 a) (b ())",
    "reduce a b -> ((a))",
    // Any white space.
    "rearrange h   w->w\th",
    "rearrange \n h w\n -> w h \n",
    // Composites, 1 and numbers in einsum.
    "einsum a b -> (a b)",
    "einsum (a b), a -> b",
    "einsum a 1 -> a",
    "einsum a () -> a",
    "einsum a 3 -> a",
    // einsum sums over what '...' stands for when the output lacks it, as over any axis.
    "einsum a ..., b ... -> a b",
    "einsum ... a, ... a -> a",
    // Beside '...' pack joins along one axis.
    "pack ... *",
};

// Where ein refuses what einops takes.
const std::set<std::string> only_einops_takes = {
    // An ellipsis out of nothing.
    "einsum a -> a ...",
    // Six elements into no tensors: einops loses them.
    "unpack * into none",
};

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find(separator, begin)) != std::string::npos;
       begin = end + separator.size()) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string unescaped(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result += text[i];
    } else {
      ++i;
      result += text[i] == 't' ? '\t' : text[i] == 'n' ? '\n' : text[i];
    }
  }
  return result;
}

// "2,3", or "()" for a scalar.
Shape parse_shape_text(const std::string& text) {
  Shape shape;
  if (text == "()") return shape;
  for (const std::string& size : split(text, ",")) shape.push_back(std::stoll(size));
  return shape;
}

std::vector<Shape> parse_shapes(const std::string& text) {
  std::vector<Shape> shapes;
  if (text == "none") return shapes;
  for (const std::string& shape : split(text, " ")) shapes.push_back(parse_shape_text(shape));
  return shapes;
}

struct Row {
  std::string op, pattern, inputs, sizes, option, outcome;
  bool is_list() const { return inputs.starts_with("list"); }
  std::string call() const {
    return op + " " + pattern + (op == "unpack" ? " into " + option : "");
  }
};

std::vector<Row> read_rows() {
  std::ifstream file(EIN_TEST_DATA "/einops/rows.tsv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const auto columns = split(line, "\t");
    if (columns.size() != 6) throw std::runtime_error("rows.tsv: not six columns: " + line);
    rows.push_back(
        {columns[0], unescaped(columns[1]), columns[2], columns[3], columns[4], columns[5]});
  }
  return rows;
}

// The numbers of make.py's fill().
Tensor filled(const Row& row, std::int64_t k, const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < ein::numel(shape); ++i) {
    const std::int64_t value = row.op == "einsum" ? (7 * i + 3 * k) % 11 - 5
                               : row.op == "reduce" && row.option == "prod" ? i % 3 + 1
                               : row.op == "reduce" && (row.option == "any" || row.option == "all")
                                   ? (i * i + i / 7) % 3
                               : row.op == "reduce" ? 37 * i % 101 - 30 + k
                                                    : i + 1000 * k;
    values.push_back(static_cast<double>(value));
  }
  return ein::from_vector(values, shape);
}

std::vector<Tensor> operands_of(const Row& row) {
  std::string text = row.inputs;
  if (row.is_list()) text = text == "list" ? "none" : text.substr(5);
  std::vector<Tensor> operands;
  for (const Shape& shape : parse_shapes(text)) {
    operands.push_back(filled(row, static_cast<std::int64_t>(operands.size()), shape));
  }
  return operands;
}

// Calls f with the sizes of a row as so many arguments.
template <class F>
Tensor with_sizes(const Row& row, F&& f) {
  std::vector<std::string> names;
  std::vector<std::int64_t> values;
  for (const std::string& size : split(row.sizes, " ")) {
    if (size == "-") break;
    const auto sides = split(size, "=");
    names.push_back(sides[0]);
    values.push_back(std::stoll(sides[1]));
  }
  const auto s = [&](std::size_t i) { return AxisSize{names[i], values[i]}; };
  switch (names.size()) {
    case 0:
      return f();
    case 1:
      return f(s(0));
    case 2:
      return f(s(0), s(1));
    case 3:
      return f(s(0), s(1), s(2));
    default:
      throw std::runtime_error("rows.tsv: more than three sizes");
  }
}

struct Outcome {
  std::vector<Tensor> tensors;
  std::string rest;  // pack's shapes, parse_shape's sizes
};

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "()";
  std::string text;
  for (std::int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return text;
}

Outcome run(const Row& row) {
  const auto operands = operands_of(row);
  const auto pattern = runtime(row.pattern);
  const auto on_operands = [&](auto&& f) {
    return with_sizes(row, [&](const auto&... sizes) {
      return row.is_list() ? f(operands, sizes...) : f(operands.at(0), sizes...);
    });
  };
  if (row.op == "einsum") return {{ein::einsum(operands, pattern)}, ""};
  if (row.op == "rearrange") {
    return {{on_operands(
                [&](const auto& x, const auto&... s) { return ein::rearrange(x, pattern, s...); })},
            ""};
  }
  if (row.op == "repeat") {
    return {{on_operands(
                [&](const auto& x, const auto&... s) { return ein::repeat(x, pattern, s...); })},
            ""};
  }
  if (row.op == "reduce") {
    return {{on_operands([&](const auto& x, const auto&... s) {
              return ein::reduce(x, pattern, runtime(row.option), s...);
            })},
            ""};
  }
  if (row.op == "pack") {
    const ein::Packed packed = ein::pack(operands, pattern);
    std::string shapes;
    for (const Shape& shape : packed.shapes)
      shapes += (shapes.empty() ? "" : " ") + shape_text(shape);
    return {{packed.tensor}, shapes};
  }
  if (row.op == "unpack")
    return {ein::unpack(operands.at(0), parse_shapes(row.option), pattern), ""};
  if (row.op == "parse_shape") {
    std::string sizes;
    for (const auto& [name, size] : ein::parse_shape(operands.at(0), pattern)) {
      sizes += (sizes.empty() ? "" : " ") + name + "=" + std::to_string(size);
    }
    return {{}, sizes};
  }
  throw std::runtime_error("rows.tsv: operation " + row.op);
}

// Whether `x` is "shape:elements" or "shape:#sums".
void expect_digest(const Tensor& x, const std::string& digest, const std::string& call) {
  const std::size_t colon = digest.find(':');
  ASSERT_NE(colon, std::string::npos) << call;
  EXPECT_EQ(shape_text(x.shape()), digest.substr(0, colon)) << call;
  std::string numbers = digest.substr(colon + 1);
  std::vector<double> actual = x.to_vector<double>();
  if (numbers.starts_with("#")) {
    numbers.erase(0, 1);
    std::vector<double> sums(3, 0.0);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      sums[0] += actual[i];
      sums[1] += actual[i] * static_cast<double>(i % 1009 + 1);
      sums[2] += actual[i] * static_cast<double>(i * 7919 % 1013 + 1);
    }
    actual = sums;
  }
  std::istringstream stream(numbers);
  std::vector<double> expected;
  for (std::string number; stream >> number;) expected.push_back(std::stod(number));
  ASSERT_EQ(actual.size(), expected.size()) << call;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    // Data that only moves, and whole sums, are exact.
    const double tolerance =
        expected[i] == std::floor(expected[i]) ? 0 : 1e-12 * std::abs(expected[i]);
    EXPECT_NEAR(actual[i], expected[i], tolerance) << call << ", number " << i;
  }
}

TEST(EinopsConformance, EveryCallAgrees) {
  const std::vector<Row> rows = read_rows();
  ASSERT_GT(rows.size(), 300u);
  std::set<std::string> more, fewer;
  std::size_t agreed = 0, refused = 0;
  for (const Row& row : rows) {
    const bool einops_takes = row.outcome != "error";
    Outcome outcome;
    try {
      outcome = run(row);
    } catch (const ein::Error& error) {
      ++refused;
      if (einops_takes) {
        fewer.insert(row.call());
        EXPECT_TRUE(only_einops_takes.contains(row.call())) << row.call() << "\n" << error.what();
      }
      continue;
    }
    if (!einops_takes) {
      more.insert(row.call());
      EXPECT_TRUE(only_ein_takes.contains(row.call()))
          << "ein takes: " << row.call() << " of " << row.inputs << "; " << row.sizes;
      continue;
    }
    ++agreed;
    if (row.op == "parse_shape") {
      EXPECT_EQ(outcome.rest, row.outcome) << row.call();
      continue;
    }
    auto results = row.outcome.empty() ? std::vector<std::string>() : split(row.outcome, " | ");
    if (row.op == "pack") {
      EXPECT_EQ(outcome.rest, results.back()) << row.call();
      results.pop_back();
    }
    ASSERT_EQ(outcome.tensors.size(), results.size()) << row.call();
    for (std::size_t i = 0; i < results.size(); ++i)
      expect_digest(outcome.tensors[i], results[i], row.call());
  }
  EXPECT_EQ(more, only_ein_takes);
  EXPECT_EQ(fewer, only_einops_takes);
  EXPECT_GT(agreed, 180u);
  EXPECT_GT(refused, 90u);
}

}  // namespace
