#include "numbers.hpp"

#include <map>

namespace ein::command {

DType training_dtype(const std::string& word) {
  const std::map<std::string, DType> dtypes{
      {"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}};
  if (dtypes.contains(word)) return dtypes.at(word);
  throw Error(ErrorKind::value, "--dtype: " + ein::quoted(word) + " is none of f32, bf16, f16");
}

Device device_named(const std::string& word) {
  if (word == "cpu") return cpu;
  if (word == "cuda") return cuda;
  if (word.starts_with("cuda:")) {
    const auto index = io::number_of<int>(std::string_view(word).substr(5));
    if (index && *index >= 0) return cuda(*index);
  }
  throw Error(ErrorKind::value,
              "--device: " + ein::quoted(word) + " is none of cpu, cuda, cuda:1 ...");
}

}  // namespace ein::command
