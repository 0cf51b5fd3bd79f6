#include "cuda/cubin.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <string_view>

#include <ein/error.hpp>

#include "io/number.hpp"
#include "size/ask.hpp"

namespace ein::gpu {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::file, "cubin: " + what); }

// --- ELF ---

constexpr std::uint16_t machine_cuda = 190;      // EM_CUDA
constexpr std::uint32_t type_symbols = 2;        // SHT_SYMTAB
constexpr std::uint32_t type_no_bytes = 8;       // SHT_NOBITS
constexpr unsigned char function_symbol = 2;     // STT_FUNC
constexpr unsigned char entry_mark = 0x10;       // STO_CUDA_ENTRY
constexpr unsigned char first_abi_of_13 = 0x41;  // the OS ABI since CUDA 13; 0x33 before
constexpr std::size_t longest_name = 4096;

struct Header {
  unsigned char magic[4], file_class, encoding, version, os_abi, abi_version, padding[7];
  std::uint16_t type, machine;
  std::uint32_t object_version;
  std::uint64_t entry, program_headers, section_headers;
  std::uint32_t flags;
  std::uint16_t size, program_header_size, program_header_count, section_header_size, section_count,
      name_section;
};
static_assert(sizeof(Header) == 64);

struct Section {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_size;
};
static_assert(sizeof(Section) == 64);

struct Symbol {
  std::uint32_t name;
  unsigned char info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
static_assert(sizeof(Symbol) == 24);

/// Reads a T at `offset` of the bytes, which may lie anywhere.
template <class T>
T read(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) fail("ends before its content");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The text that begins at `offset` of a string table.
std::string_view text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) fail("has a name outside its string table");
  const std::string_view rest = table.substr(offset, longest_name + 1);
  const std::size_t end = rest.find('\0');
  if (end == rest.npos) fail("has a name that does not end");
  return rest.substr(0, end);
}

/// C identifiers, and the '$' and '.' of compilers.
bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.';
  });
}

class Elf {
 public:
  explicit Elf(std::string_view image) : image_(image) {
    header_ = read<Header>(image, 0);
    if (std::memcmp(header_.magic,
                    "\x7f"
                    "ELF",
                    4) != 0 ||
        header_.file_class != 2 || header_.encoding != 1 || header_.machine != machine_cuda) {
      fail("is no 64-bit CUDA object");
    }
    if (header_.section_header_size != sizeof(Section)) fail("has section headers of another size");
    for (std::uint64_t i = 0; i < header_.section_count; ++i) {
      if (header_.section_headers > image.size()) fail("ends before its section headers");
      sections_.push_back(read<Section>(image, header_.section_headers + i * sizeof(Section)));
    }
    // The driver, which is not told how long an image is, must find everything inside of it.
    const std::uint64_t segments =
        std::uint64_t{header_.program_header_size} * header_.program_header_count;
    if (header_.program_headers > image.size() || segments > image.size() - header_.program_headers)
      fail("ends before its program headers");
    for (const Section& section : sections_) bytes(section);
    const std::string_view names = bytes(section(header_.name_section));
    for (const Section& section : sections_)
      by_name_.emplace(text_at(names, section.name), &section);
  }

  /// Before CUDA 13 the lowest byte of the flags, now the one above it.
  int sm() const {
    return static_cast<int>(header_.flags >> (header_.os_abi >= first_abi_of_13 ? 8 : 0) & 0xff);
  }
  const Section& section(std::size_t index) const {
    if (index >= sections_.size()) fail("names a section that it lacks");
    return sections_[index];
  }
  const Section* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  std::string_view bytes(const Section& section) const {
    if (section.type == type_no_bytes) return {};
    if (section.offset > image_.size() || section.size > image_.size() - section.offset) {
      fail("has a section that reaches beyond its end");
    }
    return image_.substr(section.offset, section.size);
  }
  const std::vector<Section>& sections() const { return sections_; }

 private:
  std::string_view image_;
  Header header_{};
  std::vector<Section> sections_;
  std::map<std::string_view, const Section*> by_name_;  // of sections with one name the first
};

// --- .nv.info ---

/// The attributes that are read, of the many that there are.
enum Attribute : unsigned char {
  max_threads = 0x05,       // x, y, z
  required_threads = 0x10,  // x, y, z
  frame_size = 0x11,        // symbol, bytes
  parameter_size = 0x19,    // bytes
  register_count = 0x2f,    // symbol, registers
};

/// Calls f(attribute, 16-bit value, words) for each; an attribute has the one or the others.
template <class F>
void for_each_attribute(std::string_view info, F&& f) {
  constexpr unsigned char sized = 4;  // the format whose value is the size of what follows
  for (std::uint64_t at = 0; at < info.size();) {
    const auto format = read<unsigned char>(info, at);
    const auto attribute = read<unsigned char>(info, at + 1);
    const auto value = read<std::uint16_t>(info, at + 2);
    at += 4;
    std::vector<std::uint32_t> words;
    if (format == sized) {
      if (value > info.size() - at) fail("has an attribute that reaches beyond its section");
      for (std::uint64_t word = 0; word + 4 <= value; word += 4) {
        words.push_back(read<std::uint32_t>(info, at + word));
      }
      at += value;
    }
    f(attribute, value, words);
  }
}

int threads_of(const std::vector<std::uint32_t>& extents) {
  std::uint64_t threads = 1;
  for (const std::uint32_t extent : extents) {
    if (extent > 1024 || (threads *= extent) > 1024) fail("has a block of more than 1024 threads");
  }
  return static_cast<int>(threads);
}

// --- the log ---

/// The number before `unit` in the line; nothing if there is none.
std::optional<std::int64_t> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == line.npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return io::number_of<std::int64_t>(line.substr(begin, end - begin));
}

/// "Function properties for NAME", and on the next line the figures.
std::map<std::string_view, KernelResources::Spills> spills_in(std::string_view log) {
  constexpr std::string_view heading = "Function properties for ";
  std::map<std::string_view, KernelResources::Spills> spills;
  std::string_view name;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const auto stored = number_before(line, " bytes spill stores");
    const auto loaded = number_before(line, " bytes spill loads");
    if (!name.empty() && stored && loaded) spills[name] = {*stored, *loaded};
    const std::size_t at = line.find(heading);
    name = at == line.npos ? std::string_view() : line.substr(at + heading.size());
  }
  return spills;
}

}  // namespace

std::vector<KernelResources> kernels_of(const Cubin& cubin) {
  const Elf elf(cubin.image);
  std::map<std::uint32_t, std::uint32_t> registers, frames;  // by symbol
  if (const Section* info = elf.find(".nv.info")) {
    for_each_attribute(elf.bytes(*info), [&](unsigned char attribute, std::uint16_t,
                                             const std::vector<std::uint32_t>& words) {
      if (words.size() < 2) return;
      if (attribute == register_count) registers[words[0]] = words[1];
      if (attribute == frame_size) frames[words[0]] = words[1];
    });
  }
  const auto spills = spills_in(cubin.log);
  const auto symbols =
      std::find_if(elf.sections().begin(), elf.sections().end(),
                   [](const Section& section) { return section.type == type_symbols; });
  if (symbols == elf.sections().end()) fail("has no symbols");
  const std::string_view table = elf.bytes(*symbols);
  const std::string_view names = elf.bytes(elf.section(symbols->link));

  // From sm_90 on, the section of shared memory begins with what the system keeps for itself.
  const std::int64_t reserved_bytes = elf.sm() >= 90 ? 1024 : 0;
  std::map<std::string, KernelResources> kernels;
  for (std::uint32_t index = 0; index < table.size() / sizeof(Symbol); ++index) {
    const auto symbol = read<Symbol>(table, std::uint64_t{index} * sizeof(Symbol));
    if ((symbol.info & 0xf) != function_symbol || (symbol.other & entry_mark) == 0) continue;
    KernelResources kernel;
    kernel.name = text_at(names, symbol.name);
    if (!is_name(kernel.name)) fail("has a kernel whose name is no name");
    kernel.sm = elf.sm();
    const auto count = registers.find(index);
    if (count == registers.end()) fail("does not tell the registers of " + kernel.name);
    if (count->second > 255) fail("has more than 255 registers in " + kernel.name);
    kernel.registers = static_cast<int>(count->second);
    if (const auto frame = frames.find(index); frame != frames.end()) {
      kernel.stack_bytes = frame->second;
    }
    kernel.code_bytes = static_cast<std::int64_t>(elf.bytes(elf.section(symbol.section)).size());
    if (const Section* shared = elf.find(".nv.shared." + kernel.name)) {
      if (shared->size > (1u << 24)) fail("has more shared memory than any device");
      kernel.shared_bytes =
          std::max<std::int64_t>(0, static_cast<std::int64_t>(shared->size) - reserved_bytes);
    }
    if (const Section* info = elf.find(".nv.info." + kernel.name)) {
      for_each_attribute(elf.bytes(*info), [&](unsigned char attribute, std::uint16_t value,
                                               const std::vector<std::uint32_t>& words) {
        if (attribute == parameter_size && words.empty()) kernel.parameter_bytes = value;
        if ((attribute == max_threads || attribute == required_threads) && words.size() == 3) {
          kernel.max_threads = threads_of(words);
        }
      });
    }
    if (const auto spilled = spills.find(kernel.name); spilled != spills.end()) {
      kernel.spills = spilled->second;
    }
    kernels.insert_or_assign(kernel.name, kernel);
  }
  std::vector<KernelResources> result;
  for (auto& [name, kernel] : kernels) result.push_back(std::move(kernel));
  return result;
}

}  // namespace ein::gpu
