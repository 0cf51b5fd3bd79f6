// Files and data: safetensors; ein.data, tokens and the batches that training takes.
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include <ein/data.hpp>
#include <ein/error.hpp>
#include <ein/safetensors.hpp>
#include "exchange.hpp"
#include "module.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using namespace nb::literals;

TokenType token_type(const std::string& name) {
  if (name == "u8") return TokenType::u8;
  if (name == "u16") return TokenType::u16;
  if (name == "i32") return TokenType::i32;
  if (name == "i64") return TokenType::i64;
  throw Error(ErrorKind::dtype, "data: tokens are u8, u16, i32 or i64, not " + name);
}
const char* name_of(TokenType type) {
  switch (type) {
    case TokenType::u8:
      return "u8";
    case TokenType::u16:
      return "u16";
    case TokenType::i32:
      return "i32";
    case TokenType::i64:
      break;
  }
  return "i64";
}

nb::tuple tuple_of(const Batch& batch) { return nb::make_tuple(batch.x, batch.y); }

void add_safetensors(nb::module_& m) {
  m.def(
      "load_safetensors",
      [](const std::string& path, bool mmap) { return load_safetensors(path, {mmap}).tensors; },
      "path"_a, "mmap"_a = true,
      "The tensors of a .safetensors file, or of those that a .safetensors.index.json names, by "
      "name. Mapped ones are read-only.");
  m.def(
      "save_safetensors",
      [](const std::string& path, nb::dict tensors, const Metadata& metadata) {
        StateDict state;
        for (auto [name, array] : tensors)
          state.emplace(nb::cast<std::string>(name), tensor_of(array.ptr()));
        const WithoutGil without(true);
        save_safetensors(path, state, metadata);
      },
      "path"_a, "tensors"_a, "metadata"_a = nb::dict(),
      "Writes arrays by name, whole or not at all.");
}

void add_data(nb::module_& m) {
  nb::class_<Tokens>(m, "Tokens", "A sequence of token ids in memory or in a mapped file.")
      .def(
          "__init__", [](Tokens* self, nb::handle ids) { new (self) Tokens(tensor_of(ids.ptr())); },
          "ids"_a, "Of an array of u8, u16, i32 or i64.")
      .def_static(
          "open",
          [](const std::string& path, const std::string& type, bool mmap) {
            return Tokens::open(path, token_type(type), {mmap});
          },
          "path"_a, "type"_a = "u16", "mmap"_a = true, "A raw file, little-endian.")
      .def_static(
          "open_npy",
          [](const std::string& path, bool mmap) { return Tokens::open_npy(path, {mmap}); },
          "path"_a, "mmap"_a = true)
      .def("__len__", &Tokens::size)
      .def_prop_ro("type", [](const Tokens& self) { return name_of(self.type()); })
      .def("read", &Tokens::read, "begin"_a, "end"_a, "The ids of [begin, end), an i64 vector.")
      .def("part", &Tokens::part, "begin"_a, "end"_a)
      .def("range", &Tokens::range, "The smallest and the largest id.");
  m.def(
      "save_tokens",
      [](const std::string& path, const Tokens& tokens, const std::string& type) {
        save_tokens(path, tokens, token_type(type));
      },
      "path"_a, "tokens"_a, "type"_a = "u16");
  m.def(
      "split",
      [](const Tokens& tokens, double fraction) {
        Split parts = split(tokens, fraction);
        return std::pair(std::move(parts.train), std::move(parts.validation));
      },
      "tokens"_a, "fraction"_a = 0.9, "The part to train on, and the rest.");
  m.def(
      "get_batch",
      [](const Tokens& tokens, std::int64_t batch, std::int64_t length, std::uint64_t seed,
         std::uint64_t number) { return tuple_of(get_batch(tokens, batch, length, seed, number)); },
      "tokens"_a, "batch"_a, "length"_a, "seed"_a, "number"_a,
      "(x, y) of shape (batch, length): tokens, and what follows each. A pure function of its "
      "arguments.");
  nb::class_<BatchSampler>(m, "BatchSampler", "get_batch with one number after the other.")
      .def(nb::init<Tokens, std::int64_t, std::int64_t, std::uint64_t>(), "tokens"_a, "batch"_a,
           "length"_a, "seed"_a)
      .def("next", [](BatchSampler& self) { return tuple_of(self.next()); })
      .def("__next__", [](BatchSampler& self) { return tuple_of(self.next()); })
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def_prop_rw("position", &BatchSampler::position, &BatchSampler::seek);
}

}  // namespace

void add_files(nb::module_& m) {
  add_safetensors(m);
  nb::module_ part = m.def_submodule("_data", "Tokens, and the batches that training takes.");
  add_data(part);
}

}  // namespace ein::python
