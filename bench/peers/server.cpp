// The side of ein, and of the libraries that are its limits, of a comparison with peers: a process
// that run.py asks, one JSON object a line, to load data, to make ready what a case names, and to
// time it.
#include <time.h>

#include <algorithm>
#include <iostream>
#include <map>

#include <ein/complex.hpp>
#include <ein/ein.hpp>
#include <ein/hardware.hpp>
#include <ein/memory.hpp>
#include <ein/npy.hpp>
#include "subject.hpp"

namespace peers {
namespace {

struct Clocks {
  double wall, processor;  // seconds; the processor's of all threads of this process
  /// The clock's, unless something else had the processor meanwhile.
  double least() const { return std::min(wall, processor); }
};

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Clocks time(const Subject& subject, std::int64_t calls) {
  const double wall = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (std::int64_t i = 0; i < calls; ++i) subject.call();
  return {seconds_of(CLOCK_MONOTONIC) - wall, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor};
}

/// The inputs, their f32 as the case's dtype, where it names one that .npy does not have.
Tensors in_dtype(const Json& c, Tensors inputs) {
  const std::string dtype = c.value("dtype", "");
  for (ein::Tensor& input : inputs) {
    if (!dtype.empty() && input.dtype() == ein::DType::f32)
      input = input.to(ein::parse_dtype(dtype).value());
  }
  return inputs;
}

Subject make(const Json& c, const Tensors& inputs, const std::string& who) {
  const std::string op = c.at("op");
  if (who != "ein" && who != "ein eager") return limit_subject(c, in_dtype(c, inputs), who);
  if (op == "elements") return element_subject(c, in_dtype(c, inputs));
  if (op == "small") return small_subject(c, inputs);
  if (op == "fused") return fused_subject(c, in_dtype(c, inputs), who == "ein");
  if (op == "adamw") return optimizer_subject(in_dtype(c, inputs), who == "ein");
  if (op == "train") return training_subject(c, inputs);
  if (op == "decode") return decoding_subject(c, inputs, who == "ein");
  return pattern_subject(c, in_dtype(c, inputs));
}

/// The elements by which results are compared, in f64: all of a small one, else those that run.py's
/// sample() picks.
ein::Tensor sample(const Tensors& results, std::size_t most, std::uint64_t step) {
  std::vector<double> all;
  for (const ein::Tensor& result : results) {
    const bool is_complex = ein::is_complex(result.dtype());
    const std::vector<double> values =
        (is_complex ? ein::view_as_real(result) : result).to_vector<double>();
    const std::size_t count = std::min(values.size(), most);
    for (std::uint64_t i = 0; i < count; ++i)
      all.push_back(values[values.size() <= most ? i : i * step % values.size()]);
  }
  return ein::from_vector(all);
}

class Server {
 public:
  Json answer(const Json& request) {
    const std::string what = request.at("do");
    if (what == "threads") {
      ein::set_num_threads(request.at("n"));
    } else if (what == "load") {
      subjects_.clear();
      inputs_.clear();
      for (const std::string path : request.at("inputs")) inputs_.push_back(ein::load_npy(path));
    } else if (what == "prepare") {
      return prepare(request);
    } else if (what == "time") {
      const Clocks clocks = time(subjects_.at(request.at("who")), request.at("calls"));
      return {{"wall", clocks.wall}, {"processor", clocks.processor}};
    } else if (what == "describe") {
      const ein::CpuLimits cpu = ein::measure_cpu();
      return {{"model", cpu.model},      {"f32", cpu.f32},   {"f64", cpu.f64},
              {"bf16", cpu.bf16},        {"read", cpu.read}, {"copy", cpu.copy},
              {"libraries", libraries()}};
    } else {
      throw std::runtime_error("unknown request: " + what);
    }
    return Json::object();
  }

 private:
  Json prepare(const Json& request) {
    const std::string who = request.at("who");
    Subject& made = subjects_[who] = make(request.at("case"), inputs_, who);
    Json shapes = Json::array();
    const double begin = seconds_of(CLOCK_MONOTONIC);
    double first = 0;
    std::size_t memory = 0;  // the most of a call, beside its operands and its results
    {
      const std::size_t before = ein::memory_allocated();
      ein::reset_max_memory_allocated();
      const Tensors results = made.results();
      memory = ein::max_memory_allocated() - before;
      for (const ein::Tensor& result : results) memory -= std::min(memory, result.nbytes());
      first = seconds_of(CLOCK_MONOTONIC) - begin;
      for (const ein::Tensor& result : results) {
        Json& shape = shapes.emplace_back(Json::array());
        for (std::int64_t size : result.shape()) shape.push_back(size);
      }
      ein::save_npy(request.at("save"), sample(results, request.at("most"), request.at("step")));
    }
    if (first > request.at("long"))  // as in worker.py
      return {{"shapes", shapes},
              {"calls", 1},
              {"seconds", first},
              {"flops", made.flops},
              {"memory", memory}};
    // Enough calls that neither clocks nor requests matter.
    const double wanted = request.at("seconds");
    std::int64_t calls = 1;
    double seconds = time(made, calls).least();
    while (seconds < wanted && calls < std::int64_t{1} << 24) {
      calls =
          std::max(calls + 1,
                   std::min<std::int64_t>(
                       8 * calls, static_cast<std::int64_t>(1.2 * wanted / std::max(seconds, 1e-9) *
                                                            static_cast<double>(calls))));
      seconds = time(made, calls).least();
    }
    return {{"shapes", shapes},
            {"calls", calls},
            {"seconds", seconds / static_cast<double>(calls)},
            {"flops", made.flops},
            {"memory", memory}};
  }

  Tensors inputs_;
  std::map<std::string, Subject> subjects_;
};

}  // namespace
}  // namespace peers

int main() {
  peers::Server server;
  for (std::string line; std::getline(std::cin, line);) {
    peers::Json answer;
    try {
      answer = server.answer(peers::Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
}
