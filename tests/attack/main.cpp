// ein_attack --seeds A..B | --calls A..B | --orders A..B | --decoders A..B | --grid A..B |
// --modes A..B | --forks A..B | --windows A..B | --show SEED | --show-call SEED | --show-orders
// SEED | --show-windows SEED [--write FILE]
// [--most N]: random programs, single calls, random decoders, or those of a grid, each in every way
// that it can be run; small programs whose gradients of the first three orders are compared with
// jets; programs in floating-point modes, or in children of fork(). --write leaves what the
// programs that held are and give, for peers.py and numpy_calls.py. Exits with 1 where one did not
// hold. $EIN_FIRST_SEED and $EIN_SEEDS move and cut a range as those of other tests.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "check.hpp"
#include "decoders.hpp"
#include "orders.hpp"
#include "situations.hpp"
#include "support/seeds.hpp"
#include "support/tensor_values.hpp"

namespace ein::attack {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}
/// Doubles as the hexadecimal digits of their bytes.
std::string digits_of(const void* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    constexpr char digits[] = "0123456789abcdef";
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}
template <class List, class F>
std::string bytes_of(const List& list, F&& value) {
  std::string text = "\"";
  for (const auto& entry : list) {
    const double x = value(entry);
    text += digits_of(&x, sizeof x);
  }
  return text + "\"";
}
/// Of a tensor's elements in its dtype.
std::string bytes_of(const Tensor& x) {
  std::string text = "\"";
  test::for_each_element(
      x, [&](const std::byte* at, std::size_t) { text += digits_of(at, x.element_size()); });
  return text + "\"";
}
std::string list_of(const Shape& shape) {
  std::string text;
  for (std::int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return "[" + text + "]";
}

/// Whether a line of JSON would not be too long.
bool is_small(const Program& program, const Verdict& verdict) {
  std::size_t elements = 0;
  for (const Input& input : program.inputs) elements += input.runs[0].size();
  for (const auto& output : verdict.expected) elements += 3 * output.size();
  return elements < 8000;
}

/// Of those that a single call may be.
std::string name_of(ErrorKind error) {
  return error == ErrorKind::dtype ? "dtype" : error == ErrorKind::value ? "value" : "reduction";
}

/// One line of JSON: the program, its first run's inputs, and what its outputs may be.
std::string line_of(const Program& program, const Verdict& verdict) {
  std::string text = "{\"seed\": " + std::to_string(program.seed) + ", \"steps\": [";
  const std::vector<std::string> peer = to_peer(program);
  std::size_t input = 0;
  for (std::size_t v = 0; v < program.steps.size(); ++v) {
    text += v > 0 ? ", {" : "{";
    text += "\"shape\": " + list_of(program.types[v].shape) + ", \"dtype\": \"" +
            std::string(name(program.types[v].dtype)) + "\"";
    if (program.steps[v].op) {
      const Operation& op = *program.steps[v].op;
      text += ", \"name\": " + quoted(op.name) + ", \"call\": " + quoted(peer[v]) +
              ", \"writes\": " + (op.writes ? "true" : "false");
    } else {
      const Input& given = program.inputs[input++];
      text += std::string(", \"state\": ") + (given.is_state ? "true" : "false") +
              ", \"values\": " + bytes_of(given.runs[0], [](double x) { return x; });
    }
    text += "}";
  }
  text += "], \"outputs\": [";
  for (std::size_t o = 0; o < verdict.expected.size(); ++o) {
    const auto& expected = verdict.expected[o];
    text +=
        std::string(o > 0 ? ", " : "") + "{\"value\": " + std::to_string(program.outputs[o]) +
        ", \"low\": " + bytes_of(expected, [](const Interval& x) { return x.low(); }) +
        ", \"high\": " + bytes_of(expected, [](const Interval& x) { return x.high(); }) +
        ", \"nan\": " + bytes_of(expected, [](const Interval& x) { return x.nan() ? 1.0 : 0.0; }) +
        ", \"result\": " + bytes_of(verdict.results[o]) + "}";
  }
  return text + "], \"error\": " + (program.error ? quoted(name_of(*program.error)) : "null") +
         "}\n";
}

/// The decoders of numbers `first` to `last`.
template <class Make>
int run_decoders(std::uint64_t first, std::uint64_t last, long most, const Make& make) {
  long wrong = 0;
  std::uint64_t number = first, uncertain = 0, in_tiles = 0;
  for (; number <= last && wrong < most; ++number) {
    const Decoder decoder = make(number);
    const DecoderVerdict verdict = check(decoder);
    uncertain += verdict.uncertain;
    in_tiles += verdict.in_tiles;
    if (verdict.wrong.empty()) continue;
    ++wrong;
    std::cout << to_string(decoder) << ": " << verdict.wrong << std::endl;
    const Decoder less = shrunk(decoder);
    std::cout << "shrunk: " << to_string(less) << ": " << check(less).wrong << std::endl;
  }
  const std::uint64_t count = number - first;
  std::cout << count << " decoders, " << in_tiles << " with attention in tiles, " << wrong
            << " wrong, " << uncertain << " depend on rounding\n";
  const bool compares_most = count > 0 && uncertain * 20 <= count + 20;
  return wrong > 0 || !compares_most ? 1 : 0;
}

/// Programs of which each holds or what is wrong.
int run_situations(std::uint64_t first, std::uint64_t last, long most,
                   std::string (*find_wrong)(const Program&)) {
  long wrong = 0;
  std::uint64_t seed = first;
  for (; seed <= last && wrong < most; ++seed) {
    const Program program = make_program(seed);
    const std::string text = find_wrong(program);
    if (text.empty()) continue;
    ++wrong;
    std::cout << "seed " << seed << ": " << text << "\n" << to_cpp(program) << std::endl;
  }
  std::cout << seed - first << " programs, " << wrong << " wrong\n";
  return wrong > 0 ? 1 : 0;
}

/// The small programs of seeds `first` to `last`.
int run_orders(std::uint64_t first, std::uint64_t last, long most, bool shows) {
  long wrong = 0, without = 0;
  std::int64_t elements = 0;
  for (std::uint64_t seed = first; seed <= last && wrong < most; ++seed) {
    const Program program = make_smooth(seed);
    if (shows) std::cout << to_cpp(program) << std::flush;
    const OrdersVerdict verdict = check_orders(program);
    elements += verdict.elements;
    without += verdict.elements == 0;
    if (verdict.wrong.empty()) continue;
    ++wrong;
    std::cout << "seed " << seed << ": " << verdict.wrong << "\n" << to_cpp(program) << std::endl;
  }
  const auto count = static_cast<long>(last - first) + 1;
  std::cout << count << " programs, " << wrong << " wrong, " << without << " without a gradient; "
            << elements << " elements of gradients\n";
  return wrong > 0 || without * 2 > count ? 1 : 0;
}

int run_campaign(int argc, char** argv) {
  std::uint64_t first = 0, last = 999;
  long most = 5;
  std::string file;
  bool shows = false, are_decoders = false, are_of_grid = false, are_orders = false;
  std::string (*find_wrong)(const Program&) = nullptr;
  Program (*make)(std::uint64_t) = make_program;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--calls" || option == "--show-call") make = make_call;
    if (option == "--windows" || option == "--show-windows") make = make_of_windows;
    are_decoders |= option == "--decoders";
    are_orders |= option == "--orders" || option == "--show-orders";
    are_of_grid |= option == "--grid";
    if (option == "--modes") find_wrong = wrong_in_a_mode;
    if (option == "--forks") find_wrong = wrong_in_a_child;
    if (option == "--seeds" || option == "--calls" || option == "--orders" ||
        option == "--windows" || option == "--decoders" || option == "--grid" || find_wrong) {
      const std::size_t dots = value.find("..");
      first = last = std::stoull(value);
      if (dots != std::string::npos) last = std::stoull(value.substr(dots + 2));
    } else if (option == "--write") {
      file = value;
    } else if (option == "--most") {
      most = std::stol(value);
    } else if (option == "--show" || option == "--show-call" || option == "--show-orders" ||
               option == "--show-windows") {
      first = last = std::stoull(value);
      shows = true;
    } else {
      std::cerr << "usage: ein_attack --seeds A..B | --calls A..B | --orders A..B "
                   "| --decoders A..B | --grid A..B | --modes A..B | --forks A..B | --windows A..B "
                   "| --show SEED | --show-call SEED | --show-orders SEED | --show-windows SEED "
                   "[--write FILE] [--most N]\n";
      return 2;
    }
  }
  const std::vector<Decoder> grid = are_of_grid ? decoder_grid() : std::vector<Decoder>();
  if (!shows) {
    const auto usual = static_cast<unsigned>(last - first + 1);
    const std::uint64_t count = test::seeds_or(usual);
    first += test::first_seed() + test::seeds_before(usual);
    if (are_of_grid) first = count < grid.size() ? first % (grid.size() - count + 1) : 0;
    last = first + count - 1;
  }
  std::ofstream out;
  if (!file.empty()) out.open(file);
  std::cout << "seeds " << first << ".." << last << std::endl;
  if (find_wrong) return run_situations(first, last, most, find_wrong);
  if (are_orders) return run_orders(first, last, most, shows);
  if (are_decoders) return run_decoders(first, last, most, test::make_decoder);
  if (are_of_grid) {
    return run_decoders(first, std::min<std::uint64_t>(last, grid.size() - 1), most,
                        [&](std::uint64_t n) { return grid[n]; });
  }
  long wrong = 0, refused = 0, uncertain = 0;
  std::int64_t elements = 0, points = 0, reordered = 0;
  for (std::uint64_t seed = first; seed <= last && wrong < most; ++seed) {
    const Program program = make(seed);
    if (shows) std::cout << to_cpp(program) << std::flush;
    const Verdict verdict = check(program);
    refused += verdict.refused;
    uncertain += verdict.uncertain;
    elements += verdict.elements;
    points += verdict.points;
    reordered += verdict.reordered;
    if (!verdict.wrong.empty()) {
      ++wrong;
      std::cout << "seed " << seed << ": " << verdict.wrong << std::endl;
      const Program less = program.error ? program : shrunk(program);
      std::cout << "shrunk: " << check(less).wrong << "\n" << to_cpp(less) << std::endl;
    } else if (out.is_open() && (program.error || !verdict.expected.empty()) &&
               is_small(program, verdict)) {
      out << line_of(program, verdict);
    }
  }
  std::cout << last - first + 1 << " programs, " << wrong << " wrong, " << refused
            << " refused by compile, " << uncertain << " depend on rounding; " << elements
            << " elements, " << points << " of them exact; " << reordered
            << " results for any length added up in another order\n";
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ein::attack

int main(int argc, char** argv) { return ein::attack::run_campaign(argc, argv); }
