// The errors of functions of an element on this processor, as tables in Markdown; what
// `make function-errors` runs. tests/cpu/functions_test.cpp asks for the limits by the same means.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "support/function_errors.hpp"

namespace {

using namespace ein;

constexpr const char* architecture =
#if defined(__x86_64__)
    "x86-64";
#elif defined(__aarch64__)
    "AArch64";
#else
    "another architecture";
#endif

struct Arguments {
  std::int64_t one_in = 1, doubles = 100'000'000;
  std::string only;  // the function to measure
  std::string page;  // in which to write the tables
};

Arguments read(int count, char** texts) {
  Arguments arguments;
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = texts[i], value = i + 1 < count ? texts[i + 1] : "";
    const std::int64_t number = std::atoll(std::string(value).c_str());
    if (name == "--one-in" && number > 0) {
      arguments.one_in = number;
    } else if (name == "--doubles" && number >= test::double_part) {
      arguments.doubles = number;
    } else if (name == "--only" && !value.empty()) {
      arguments.only = value;
    } else if (name == "--write" && !value.empty()) {
      arguments.page = value;
    } else {
      std::cerr
          << "usage: ein_function_errors [--one-in N] [--doubles N] [--only NAME] [--write PAGE]\n"
             "  --one-in   measures one in N of all f32 numbers, not all\n"
             "  --doubles  how many f64 numbers, 100000 or more\n"
             "  --only     measures this function alone\n"
             "  --write    puts the tables in this page, where their marks are\n";
      std::exit(2);
    }
  }
  return arguments;
}

/// A number with a comma before every three digits.
std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string cell(double units) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", units);
  return text;
}

/// Engines of which all cells are the same share a column.
struct Column {
  std::string names, kind;         // "strips v3, v4; row code v3, v4" and "row code"
  std::vector<std::string> cells;  // a function each

  void add(const std::string& engine) {
    const std::size_t space = engine.rfind(' ');
    if (engine.substr(0, space) == kind) {
      names += "," + engine.substr(space);
    } else {
      names += (names.empty() ? "" : "; ") + engine;
      kind = engine.substr(0, space);
    }
  }
};

template <class C>
std::string table_of(const std::vector<test::Result<C>>& results, DType dtype = dtype_of<C>) {
  std::vector<const test::Function*> rows;
  std::vector<std::pair<std::string, std::vector<std::string>>> engines;
  for (const auto& [f, engine, found] : results) {
    if (test::calls_library<C>(f->op)) continue;
    if (rows.empty() || rows.back() != f) rows.push_back(f);
    auto at = std::find_if(engines.begin(), engines.end(),
                           [&](const auto& other) { return other.first == engine; });
    if (at == engines.end()) at = engines.insert(at, {engine, {}});
    at->second.resize(rows.size() - 1, "");
    at->second.push_back(cell(found.worst));
  }
  std::vector<Column> columns;
  for (auto& [name, cells] : engines) {
    cells.resize(rows.size(), "");
    auto at = std::find_if(columns.begin(), columns.end(),
                           [&](const Column& other) { return other.cells == cells; });
    if (at == columns.end()) at = columns.insert(at, {"", "", cells});
    at->add(name);
  }
  if (rows.empty()) return "";
  std::ostringstream out;
  out << "| " << name(dtype);
  for (const Column& column : columns) out << " | " << column.names;
  out << " |\n|---";
  for (std::size_t i = 0; i < columns.size(); ++i) out << "|---";
  out << "|\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    out << "| " << info(rows[r]->op).name;
    for (const Column& column : columns) out << " | " << column.cells[r];
    out << " |\n";
  }
  out << '\n';
  return out.str();
}

std::string table_of_library(const std::vector<test::Result<float>>& floats,
                             const std::vector<test::Result<double>>& doubles) {
  const auto of = [](const auto& results, ScalarOp op) {
    const auto at = std::find_if(results.begin(), results.end(),
                                 [&](const auto& other) { return other.function->op == op; });
    return at == results.end() ? std::string() : cell(at->found.worst);
  };
  std::string rows;
  for (const test::Function& f : test::functions()) {
    const std::string in_f32 = test::calls_library<float>(f.op) ? of(floats, f.op) : "",
                      in_f64 = test::calls_library<double>(f.op) ? of(doubles, f.op) : "";
    if (!in_f64.empty())
      rows += "| " + std::string(info(f.op).name) + " | " + in_f32 + " | " + in_f64 + " |\n";
  }
  if (rows.empty()) return "";
  return "| the C library's | f32 | f64 |\n|---|---|---|\n" + rows + '\n';
}

/// Puts `text` between the marks of this architecture; false where the page has none.
bool write(const std::string& page, const std::string& text) {
  std::ifstream in(page);
  const std::string old{std::istreambuf_iterator<char>(in), {}};
  const std::string begin = std::string("<!-- function-errors ") + architecture + " -->\n",
                    end = "<!-- end -->";
  const std::size_t from = old.find(begin), to = old.find(end, from);
  if (from == std::string::npos || to == std::string::npos) return false;
  std::ofstream(page) << old.substr(0, from + begin.size()) << text << old.substr(to);
  return true;
}

/// Names the results that break a limit; whether there are none.
template <class C>
bool check(const std::vector<test::Result<C>>& results) {
  bool is_right = true;
  const auto complain = [&](const test::Result<C>& result, const std::string& what, C at) {
    std::cerr << info(result.function->op).name << " of f" << 8 * sizeof(C) << ", " << result.engine
              << ": " << what << ", at " << at << '\n';
    is_right = false;
  };
  std::cerr.precision(17);
  for (const test::Result<C>& result : results) {
    const test::Found<C>& found = result.found;
    if (!(found.worst <= result.function->template most_units<C>()))
      complain(result, cell(found.worst) + " units", found.at);
    if (found.turns > 0) complain(result, "goes the wrong way", found.turned_at);
    if (found.outside > 0) complain(result, "is beyond its bounds", found.outside_at);
  }
  return is_right;
}

}  // namespace

int main(int count, char** texts) {
  const Arguments arguments = read(count, texts);
  const auto progress = [](std::int64_t done, std::int64_t parts) {
    if (done * 100 / parts != (done - 1) * 100 / parts)
      std::cerr << done * 100 / parts << (done == parts ? "%\n" : "%\r");
  };
  std::cerr << "f64\n";
  const auto doubles =
      test::measure_doubles(test::subjects_of<double>(arguments.only), arguments.doubles, progress);
  std::cerr << "f32\n";
  const auto floats =
      test::measure_floats(test::subjects_of<float>(arguments.only), arguments.one_in, progress);
  if (floats.empty()) {
    std::cerr << "no function is named " << arguments.only << '\n';
    return 2;
  }

  const auto bf16s =
      test::measure_16_bits(test::subjects_of_16_bits(DType::bf16, arguments.only), DType::bf16);
  const auto f16s =
      test::measure_16_bits(test::subjects_of_16_bits(DType::f16, arguments.only), DType::f16);

  std::ostringstream out;
  out << "\nOn " << architecture << ", compiled by "
#if defined(__clang__)
      << "Clang " << __clang_major__ << '.' << __clang_minor__
#else
      << "GCC " << __GNUC__ << '.' << __GNUC_MINOR__
#endif
#if defined(__GLIBC__)
      << ", with glibc " << gnu_get_libc_version()
#endif
      << ". Of f32 "
      << (arguments.one_in == 1 ? "all " + grouped(test::float_count) + " numbers from -∞ to ∞"
                                : "one in " + grouped(arguments.one_in) + " of the numbers")
      << ", of f64 " << grouped(arguments.doubles) << " numbers, of bf16 and f16 all.\n\n"
      << table_of(floats) << table_of(doubles) << table_of(bf16s, DType::bf16)
      << table_of(f16s, DType::f16) << table_of_library(floats, doubles);
  std::cout << out.str();
  const bool are_floats_right = check(floats), are_doubles_right = check(doubles);
  if (!arguments.page.empty() && !write(arguments.page, out.str())) {
    std::cerr << arguments.page << " has no mark \"<!-- function-errors " << architecture
              << " -->\" with an \"<!-- end -->\"\n";
    return 1;
  }
  return are_floats_right && are_doubles_right ? 0 : 1;
}
