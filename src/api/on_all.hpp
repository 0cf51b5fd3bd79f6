// What the processes of a mesh tell each other, so that all go on or none does.
#pragma once

#include <string_view>
#include <type_traits>
#include <vector>

#include <ein/error.hpp>
#include "runtime/mesh.hpp"

namespace ein::engine {

/// What f() gives on each process of a mesh, by their ranks; all of them call this. Where this
/// process stands for all, that is one. Where f throws an Error on one, all throw it, its text cut
/// off after 2 KB.
template <class F>
std::vector<std::invoke_result_t<F>> on_all(const detail::MeshData& mesh, const F& f) {
  using T = std::invoke_result_t<F>;
  static_assert(std::is_trivially_copyable_v<T>);
  if (!mesh.transport) return {f()};
  struct Note {
    T value{};
    ErrorKind kind{};
    char error[2048] = "";  // empty where nothing went wrong
  } note;
  try {
    note.value = f();
  } catch (const Error& error) {
    note.kind = error.kind();
    std::string_view(error.what()).copy(note.error, sizeof note.error - 1);
  }
  std::vector<Note> notes(mesh.here.front().process.processes().size());
  mesh.transport->all().all_gather(&note, notes.data(), sizeof note, DType::u8);
  std::vector<T> values;
  for (const Note& said : notes) {
    if (said.error[0] != '\0') throw Error(said.kind, said.error);
    values.push_back(said.value);
  }
  return values;
}

}  // namespace ein::engine
