// ein.account: what a decoder has, costs and holds, as a tree.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <variant>

#include <ein/account.hpp>
#include <ein/nn/decoder.hpp>
#include <ein/nn/families.hpp>
#include "costs.hpp"
#include "exchange.hpp"
#include "module.hpp"

namespace nb = nanobind;

namespace ein::python {
namespace {

using namespace nb::literals;

nb::object value_of(const Account& line) {
  struct Visitor {
    nb::object operator()(std::monostate) const { return nb::none(); }
    nb::object operator()(const Count& count) const { return number(count); }
    nb::object operator()(double value) const { return nb::float_(value); }
    nb::object operator()(const std::string& text) const { return nb::str(text.c_str()); }
  };
  return std::visit(Visitor(), line.value);
}

/// A line for each, with as many spaces before it as it lies deep.
void write(const Account& line, int depth, std::string& text) {
  const nb::object value = value_of(line);
  if (!line.key.empty() || !value.is_none()) {
    text += std::string(static_cast<std::size_t>(2 * depth), ' ') + line.key;
    if (!value.is_none()) text += "  " + std::string(nb::str(value).c_str());
    if (!line.unit.empty()) text += " " + line.unit;
    text += "\n";
  }
  for (const Account& part : line.parts) write(part, line.key.empty() ? depth : depth + 1, text);
}

nb::dict dict_of(const Account& line) {
  nb::dict all;
  for (const Account& part : line.parts)
    all[part.key.c_str()] = part.parts.empty() ? value_of(part) : nb::object(dict_of(part));
  return all;
}

}  // namespace

void add_account(nb::module_& m) {
  nb::class_<Account>(m, "Account", "A line of an account, and the lines that belong to it.")
      .def_ro("key", &Account::key)
      .def_ro("name", &Account::name, "For people.")
      .def_prop_ro("value", &value_of, "An int that is exact, a float, a word, or None.")
      .def_ro("unit", &Account::unit, "'FLOP', 'B', 's'; empty: a number of things.")
      .def_ro("note", &Account::note, "The formula, or where the number is from.")
      .def_ro("is_estimate", &Account::is_estimate)
      .def_prop_ro("parts",
                   [](const Account& line) {
                     nb::list all;
                     for (const Account& part : line.parts) all.append(nb::cast(part));
                     return all;
                   })
      .def(
          "find",
          [](const Account& line, const std::string& path) -> nb::object {
            const Account* const found = line.find(path);
            return found == nullptr ? nb::none() : nb::cast(*found);
          },
          "path"_a, "The line 'parameters.total', or None.")
      .def("__getitem__",
           [](const Account& line, const std::string& path) {
             const Account* const found = line.find(path);
             if (found == nullptr) throw nb::key_error(path.c_str());
             return value_of(*found);
           })
      .def("as_dict", &dict_of, "Values by key; of a line with parts these.")
      .def("__str__", [](const Account& line) {
        std::string text;
        write(line, 0, text);
        return text;
      });
  m.def(
      "account",
      [](const std::string& model, std::int64_t context, std::int64_t batch, nb::handle dtype,
         std::optional<std::string> device, std::int64_t devices, std::int64_t planned) {
        AccountOptions options;
        options.context = context;
        options.batch = batch;
        options.dtype = dtype_of_python(dtype.ptr());
        options.devices = devices;
        options.planned = planned;
        if (device) options.device = hardware_named(*device);
        const WithoutGil without(true);
        return account(nn::decoder_config(model), options);
      },
      "model"_a, "context"_a = 0, "batch"_a = 1, "dtype"_a = "bf16", "device"_a = nb::none(),
      "devices"_a = 1, "planned"_a = 0,
      "Parameters, FLOPs, cache and memory of a decoder, of which nothing is in memory: of one by "
      "its name, such as 'llama-3.1-8b', of a config.json, or of a directory that has one.");
}

}  // namespace ein::python
