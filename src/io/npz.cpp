#include <ein/npz.hpp>

#include <algorithm>
#include <set>
#include <string_view>

#include <ein/error.hpp>

#include "io/file.hpp"
#include "io/json.hpp"
#include "io/npy_file.hpp"
#include "io/zip.hpp"

namespace ein {
namespace {

constexpr std::string_view suffix = ".npy";
constexpr std::size_t longest_name = 65'000;  // the header's field has 16 bits

/// As numpy.load calls it.
std::string name_of(const io::ZipMember& member) {
  std::string name = member.name;
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

void skip(io::ByteStream& in) {
  std::string strip(std::size_t{1} << 16, '\0');
  while (in.left() > 0) in.read(strip.data(), std::min<std::uint64_t>(strip.size(), in.left()));
}

Tensor bytes_of(io::ByteStream& in) {
  auto storage = Storage::allocate(in.left());
  in.read(storage->data(), storage->bytes());
  const Shape shape{static_cast<std::int64_t>(storage->bytes())};
  return Tensor(std::move(storage), DType::u8, shape, contiguous_strides(shape));
}

bool begins_as_npy(io::ByteStream& in) {
  return in.read(std::min<std::uint64_t>(in.left(), io::npy_magic.size())) == io::npy_magic;
}

Tensor load_member(const io::InputFile& file, const io::ZipMember& member) {
  const auto in = io::open_member(file, member);
  if (!member.name.ends_with(suffix) && !begins_as_npy(*io::open_member(file, member)))
    return bytes_of(*in);
  Tensor x = io::read_npy(*in);
  skip(*in);  // only then the checksum is known to be right
  return x;
}

}  // namespace

StateDict load_npz(const std::string& path, const NpzOptions& options) {
  const io::InputFile file("load_npz", path);
  std::set<std::string, std::less<>> wanted(options.only.begin(), options.only.end());
  const bool wants_all = wanted.empty();
  StateDict tensors;
  for (const io::ZipMember& member : io::read_zip(file)) {
    std::string name = name_of(member);
    if (!io::is_utf8(name))
      file.fail("has a member " + io::in_quotes(name) + " whose name is not UTF-8");
    if (!wants_all && wanted.erase(name) == 0) continue;
    const bool is_new = tensors.emplace(std::move(name), load_member(file, member)).second;
    if (!is_new) file.fail("has two members of the name " + io::in_quotes(name_of(member)));
  }
  if (!wanted.empty() && !wants_all)
    file.fail("has no member " + io::in_quotes(*wanted.begin() + std::string(suffix)));
  return tensors;
}

void save_npz(const std::string& path, const StateDict& tensors, SaveNpzOptions options) {
  const std::string caller = "save_npz";
  io::ZipWriter file(caller, path);
  for (const auto& [name, x] : tensors) {
    if (name.empty() || name.find('\0') != name.npos || !io::is_utf8(name) ||
        name.size() > longest_name) {
      throw Error(ErrorKind::value, caller + ": the name " + io::in_quotes(name) +
                                        " is empty, not UTF-8, too long or has a NUL byte");
    }
    const std::string header = io::npy_header_for(caller, x);
    const Tensor elements = x.to(cpu).contiguous();
    file.add(name + std::string(suffix),
             {{header.data(), header.size()}, {elements.raw_data(), elements.nbytes()}},
             options.compress);
  }
  file.commit();
}

}  // namespace ein
