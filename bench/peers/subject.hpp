// What a request names, as something that can be called and timed.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <ein/tensor.hpp>
#include <nlohmann/json.hpp>

namespace peers {

using Json = nlohmann::json;
using Tensors = std::vector<ein::Tensor>;

struct Subject {
  std::function<void()> call;
  std::function<Tensors()> results;  // calls, and returns what came out
  double flops = 0;                  // of one call where the graph counted them, else 0
};

/// A subject of a function that returns a Tensor or a list of them.
template <class F>
Subject subject(F f) {
  return {[f] { static_cast<void>(f()); },
          [f]() -> Tensors {
            if constexpr (std::is_same_v<std::invoke_result_t<const F&>, ein::Tensor>) {
              return {f()};
            } else {
              const auto results = f();
              return Tensors(results.begin(), results.end());
            }
          }};
}

// Of one case, described by a JSON object of cases.py, on these inputs. `who` says which of the
// server's ways: "ein", "ein eager", "Eigen", "OpenBLAS", "oneDNN", "memcpy". Exceptions say why
// there is none.

Subject pattern_subject(const Json& c, const Tensors& inputs);
Subject element_subject(const Json& c, const Tensors& inputs);
Subject small_subject(const Json& c, const Tensors& inputs);
Subject fused_subject(const Json& c, const Tensors& inputs, bool compiled);
Subject optimizer_subject(const Tensors& inputs, bool compiled);
Subject training_subject(const Json& c, const Tensors& inputs);
Subject decoding_subject(const Json& c, const Tensors& inputs, bool compiled);
Subject limit_subject(const Json& c, const Tensors& inputs, const std::string& who);

/// Where each library of the limits was found, or why not.
Json libraries();

}  // namespace peers
