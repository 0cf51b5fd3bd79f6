#include "io/zip.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "io/crc32.hpp"
#include "io/deflate.hpp"

namespace ein::io {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view local_mark = "PK\x03\x04"sv, member_mark = "PK\x01\x02"sv,
                           end_mark = "PK\x05\x06"sv, end64_mark = "PK\x06\x06"sv,
                           end64_place_mark = "PK\x06\x07"sv;
constexpr std::uint64_t local_size = 30, member_size = 46, end_size = 22, end64_size = 56,
                        end64_place_size = 20;
constexpr std::uint64_t full32 = 0xffffffff, full16 = 0xffff;  // "see the 64-bit one"
constexpr std::uint64_t longest_comment = 0xffff;
constexpr std::uint64_t unreadable_flags = 0x2061;  // encrypted, a patch, encrypted, hidden
constexpr std::uint64_t utf8_flag = 0x800;
constexpr std::uint64_t stored = 0, deflated = 8;
constexpr std::uint16_t zip64_extra = 1;
// No code of deflate says more than 258 bytes with 2 bits, and no member is without a few bytes.
constexpr std::uint64_t most_per_byte = 1032;

/// Little-endian numbers of a record.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t next(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes_.at(at_ + i))} << (8 * i);
    at_ += bytes;
    return value;
  }
  std::string_view text(std::size_t bytes) {
    const std::string_view text = bytes_.substr(at_, bytes);
    at_ += bytes;
    return text;
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

struct Directory {
  std::uint64_t begin, bytes, members;
  std::uint64_t end;  // of what may be before the records at the end of the file
};

class Reader {
 public:
  explicit Reader(const InputFile& file) : file_(file) {}

  std::vector<ZipMember> read() {
    const Directory directory = find_directory();
    const std::string bytes = file_.read(directory.begin, directory.bytes);
    Fields fields(bytes);
    for (std::uint64_t i = 0; i < directory.members; ++i) read_member(fields);
    check_places(directory.begin);
    return std::move(members_);
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const { file_.fail("is damaged: " + what); }
  [[noreturn]] void fail_member(const std::string& name, const std::string& what) const {
    file_.fail("has a member " + in_quotes(name) + " " + what);
  }

  Directory find_directory() const {
    const std::uint64_t longest = std::min(file_.size(), end_size + longest_comment);
    const std::string tail = file_.read(file_.size() - longest, longest);
    for (std::size_t at = tail.rfind(end_mark); at != tail.npos;
         at = at == 0 ? tail.npos : tail.rfind(end_mark, at - 1)) {
      if (tail.size() - at < end_size) continue;
      Fields fields(std::string_view(tail).substr(at, end_size));
      fields.text(end_mark.size());
      const std::uint64_t disk = fields.next(2), first_disk = fields.next(2), here = fields.next(2),
                          members = fields.next(2), bytes = fields.next(4), begin = fields.next(4),
                          comment = fields.next(2);
      if (comment != tail.size() - at - end_size) continue;
      const std::uint64_t end = file_.size() - tail.size() + at;
      if (members == full16 || bytes == full32 || begin == full32) {
        if (const auto directory = find_directory64(end)) return checked(*directory);
      }
      if (disk != 0 || first_disk != 0 || here != members) damaged("it is a part of an archive");
      return checked({begin, bytes, members, end});
    }
    file_.fail(
        "is no archive, or is cut off: a zip file ends with its directory, this one does not");
  }

  /// What the 64-bit records say that are before `end`; nothing where there are none.
  std::optional<Directory> find_directory64(std::uint64_t end) const {
    if (end < end64_place_size) return std::nullopt;
    const std::string place = file_.read(end - end64_place_size, end64_place_size);
    if (!place.starts_with(end64_place_mark)) return std::nullopt;
    Fields there(std::string_view(place).substr(end64_place_mark.size() + 4));
    const std::uint64_t at = there.next(8);
    if (at > end - end64_place_size || end - end64_place_size - at < end64_size)
      damaged("its 64-bit directory is behind its end");
    const std::string record = file_.read(at, end64_size);
    if (!record.starts_with(end64_mark)) damaged("its 64-bit directory is not where it says");
    Fields fields(std::string_view(record).substr(24));
    const std::uint64_t here = fields.next(8), members = fields.next(8), bytes = fields.next(8),
                        begin = fields.next(8);
    if (here != members) damaged("it is a part of an archive");
    return Directory{begin, bytes, members, at};
  }

  Directory checked(const Directory& directory) const {
    if (directory.begin > directory.end || directory.bytes > directory.end - directory.begin)
      damaged("its directory does not end before the end of the file");
    if (directory.members > directory.bytes / member_size)
      damaged("its directory has fewer bytes than " + std::to_string(directory.members) +
              " members take");
    return directory;
  }

  void read_member(Fields& fields) {
    if (fields.left() < member_size || fields.text(member_mark.size()) != member_mark)
      damaged("its directory has something other than a member");
    fields.next(4);  // versions
    const std::uint64_t flags = fields.next(2), method = fields.next(2);
    fields.next(4);  // time and date
    ZipMember member;
    member.checksum = static_cast<std::uint32_t>(fields.next(4));
    member.compressed = fields.next(4);
    member.size = fields.next(4);
    const std::uint64_t name = fields.next(2), extra = fields.next(2), comment = fields.next(2);
    fields.next(8);  // disk and attributes
    std::uint64_t header = fields.next(4);
    if (fields.left() < name + extra + comment) damaged("a name in its directory is cut off");
    member.name = fields.text(name);
    read_extra(Fields(fields.text(extra)), member, header);
    fields.text(comment);
    if (member.name.ends_with('/')) return;

    if (member.name.empty() || member.name.find('\0') != member.name.npos)
      fail_member(member.name, "whose name is empty or has a NUL byte");
    if ((flags & unreadable_flags) != 0) fail_member(member.name, "that is encrypted");
    if (method != stored && method != deflated)
      fail_member(member.name, "compressed by method " + std::to_string(method) +
                                   "; stored ones and those of deflate can be read");
    member.is_deflated = method == deflated;
    const bool is_possible = member.is_deflated ? member.size / most_per_byte <= member.compressed
                                                : member.size == member.compressed;
    if (!is_possible)
      fail_member(member.name, "of " + std::to_string(member.size) + " bytes, which the " +
                                   std::to_string(member.compressed) + " in the archive cannot be");
    if (!names_.insert(member.name).second) fail_member(member.name, "twice");
    headers_.emplace_back(header, members_.size());
    members_.push_back(std::move(member));
  }

  /// 64-bit numbers in the place of those that are full.
  static void read_extra(Fields extra, ZipMember& member, std::uint64_t& header) {
    while (extra.left() >= 4) {
      const std::uint64_t kind = extra.next(2), bytes = extra.next(2);
      if (bytes > extra.left()) return;
      Fields fields(extra.text(bytes));
      if (kind != zip64_extra) continue;
      for (std::uint64_t* number : {&member.size, &member.compressed, &header}) {
        if (*number == full32 && fields.left() >= 8) *number = fields.next(8);
      }
      return;
    }
  }

  /// Members lie before the directory, one behind the other, and are what the directory says.
  void check_places(std::uint64_t directory) {
    std::ranges::sort(headers_);
    std::uint64_t end = 0;
    for (const auto& [header, number] : headers_) {
      ZipMember& member = members_[number];
      if (header < end) fail_member(member.name, "that shares bytes with another");
      if (header > directory || directory - header < local_size)
        fail_member(member.name, "that is not in the file");
      const std::string record = file_.read(header, local_size);
      Fields fields(record);
      if (fields.text(local_mark.size()) != local_mark)
        fail_member(member.name, "that is not where the directory says");
      fields.text(22);
      const std::uint64_t name = fields.next(2), extra = fields.next(2);
      member.begin = header + local_size + name + extra;
      if (member.begin > directory || directory - member.begin < member.compressed)
        fail_member(member.name, "that is cut off");
      if (name != member.name.size() || file_.read(header + local_size, name) != member.name)
        fail_member(member.name, "that has another name in its own header");
      end = member.begin + member.compressed;
    }
  }

  const InputFile& file_;
  std::vector<ZipMember> members_;
  std::set<std::string> names_;
  std::vector<std::pair<std::uint64_t, std::size_t>> headers_;  // where, and of which member
};

/// Verifies the checksum with the last byte.
class VerifiedStream : public ByteStream {
 public:
  VerifiedStream(std::unique_ptr<ByteStream> content, std::uint32_t checksum)
      : ByteStream(content->caller(), content->path(), content->left()),
        content_(std::move(content)),
        wanted_(checksum) {
    verify();
  }

 private:
  void read_next(void* to, std::size_t bytes) override {
    content_->read(to, bytes);
    checksum_ = crc32(checksum_, to, bytes);
    verify();
  }
  void verify() const {
    if (left() == 0 && checksum_ != wanted_)
      fail("is damaged: its checksum is not that of its bytes");
  }

  std::unique_ptr<ByteStream> content_;
  std::uint32_t wanted_, checksum_ = 0;
};

/// Little-endian numbers, one behind the other.
class Record {
 public:
  explicit Record(std::string_view mark = {}) : bytes_(mark) {}
  Record& add(std::size_t bytes, std::uint64_t value) {
    for (std::size_t i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Record& add(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// What both headers of a member have, from the version on to the length of the name.
void add_common(Record& record, const ZipMember& member, bool is_64, std::uint64_t zip64) {
  constexpr std::uint64_t of_deflate = 20, of_64_bits = 45;  // versions
  constexpr std::uint64_t first_of_1980 = 0x21;              // the same bytes at any time
  const bool is_ascii = std::ranges::all_of(member.name, [](char c) { return (c & 0x80) == 0; });
  const auto short_of = [&](std::uint64_t size) { return size >= zip64 ? full32 : size; };
  record.add(2, is_64 ? of_64_bits : of_deflate)
      .add(2, is_ascii ? 0 : utf8_flag)
      .add(2, member.is_deflated ? deflated : stored)
      .add(2, 0)
      .add(2, first_of_1980)
      .add(4, member.checksum)
      .add(4, short_of(member.compressed))
      .add(4, short_of(member.size))
      .add(2, member.name.size());
}

}  // namespace

std::vector<ZipMember> read_zip(const InputFile& file) { return Reader(file).read(); }

std::unique_ptr<ByteStream> open_member(const InputFile& file, const ZipMember& member) {
  const std::string quoted = in_quotes(member.name);
  const std::string path = file.path() + "/" + quoted.substr(1, quoted.size() - 2);
  std::unique_ptr<ByteStream> content =
      std::make_unique<FileStream>(file, path, member.begin, member.compressed);
  if (member.is_deflated) content = inflated(std::move(content), member.size);
  return std::make_unique<VerifiedStream>(std::move(content), member.checksum);
}

ZipWriter::ZipWriter(const std::string& caller, const std::string& path, std::uint64_t zip64)
    : caller_(caller), zip64_(zip64), file_(caller, path) {}

void ZipWriter::write(const std::string& bytes) {
  file_.write(bytes.data(), bytes.size());
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, const std::vector<Piece>& pieces, bool compress) {
  ZipMember member{.name = name, .is_deflated = compress};
  std::string compressed;
  std::optional<Deflater> deflater;
  if (compress) deflater.emplace(caller_);
  for (const auto& [data, bytes] : pieces) {
    member.checksum = crc32(member.checksum, data, bytes);
    member.size += bytes;
    if (deflater) deflater->add(data, bytes, compressed);
  }
  if (deflater) deflater->finish(compressed);
  member.compressed = compress ? compressed.size() : member.size;

  const bool is_64 = member.size >= zip64_ || member.compressed >= zip64_;
  Record header(local_mark);
  // Here both sizes are 64-bit ones, or none is.
  add_common(header, member, is_64, is_64 ? 0 : full32);
  header.add(2, is_64 ? 20 : 0).add(name);
  if (is_64) header.add(2, zip64_extra).add(2, 16).add(8, member.size).add(8, member.compressed);
  members_.emplace_back(std::move(member), at_);
  write(header.bytes());
  if (compress) return write(compressed);
  for (const auto& [data, bytes] : pieces) {
    file_.write(data, bytes);
    at_ += bytes;
  }
}

void ZipWriter::commit() {
  const std::uint64_t begin = at_;
  for (const auto& [member, header] : members_) {
    Record extra;
    for (const std::uint64_t number : {member.size, member.compressed, header}) {
      if (number >= zip64_) extra.add(8, number);
    }
    const bool is_64 = !extra.bytes().empty();
    Record record(member_mark);
    record.add(2, is_64 ? 45 : 20);
    add_common(record, member, is_64, zip64_);
    record.add(2, is_64 ? extra.bytes().size() + 4 : 0)
        .add(2, 0)  // no comment
        .add(8, 0)  // disk and attributes
        .add(4, header >= zip64_ ? full32 : header)
        .add(member.name);
    if (is_64) record.add(2, zip64_extra).add(2, extra.bytes().size()).add(extra.bytes());
    write(record.bytes());
  }
  const std::uint64_t bytes = at_ - begin, end = at_, members = members_.size();
  const bool is_64 = members >= std::min(full16, zip64_) || bytes >= zip64_ || begin >= zip64_;
  Record record;
  if (is_64) {
    record.add(end64_mark).add(8, end64_size - 12).add(2, 45).add(2, 45).add(8, 0);
    record.add(8, members).add(8, members).add(8, bytes).add(8, begin);
    record.add(end64_place_mark).add(4, 0).add(8, end).add(4, 1);
  }
  record.add(end_mark).add(4, 0);
  for (int i = 0; i < 2; ++i) record.add(2, is_64 ? full16 : members);
  record.add(4, is_64 ? full32 : bytes).add(4, is_64 ? full32 : begin).add(2, 0);
  write(record.bytes());
  file_.commit();
}

}  // namespace ein::io
