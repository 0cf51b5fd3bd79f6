// The cubins on disk: kept, found again, and never believed when damaged.
#include "cuda/cubin_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <ein/error.hpp>

#include "io/temporary_name.hpp"
#include "support/nvrtc.hpp"
#include "support/scratch.hpp"

namespace ein::gpu {
namespace {

namespace fs = std::filesystem;
using test::read_bytes;
using test::ScratchDirectory;
using test::write_bytes;

Source source_of(int i) {
  return {"k.cu", "extern \"C\" __global__ void k" + std::to_string(i) + "(float* x) { *x = 1; }",
          "sm_80"};
}

/// Of any bytes: the cache does not look inside.
Cubin cubin_of(int i, std::size_t bytes = 1000) {
  std::string image(bytes, static_cast<char>('a' + i % 26));
  return {image + std::string("\0\xff", 2) + std::to_string(i), "log " + std::to_string(i)};
}

void expect_same(const std::optional<Cubin>& found, const Cubin& expected) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->image, expected.image);
  EXPECT_EQ(found->log, expected.log);
}

std::string error_of(const std::string& directory) {
  try {
    CubinCache{directory};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    return error.what();
  }
  return "";
}

TEST(CubinCache, KeepsWhatIsPut) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const std::string path = scratch.path("a/b/cubins");
  const CubinCache cache(path);
  EXPECT_FALSE(cache.find(source_of(1)));
  cache.put(source_of(1), cubin_of(1));
  cache.put(source_of(2), Cubin{"", ""});
  expect_same(cache.find(source_of(1)), cubin_of(1));
  expect_same(cache.find(source_of(2)), Cubin{"", ""});
  cache.put(source_of(1), cubin_of(3));
  expect_same(cache.find(source_of(1)), cubin_of(3));
  expect_same(CubinCache(path).find(source_of(1)), cubin_of(3));
  EXPECT_EQ(cache.path(source_of(1)).rfind(path + "/", 0), 0u);
}

TEST(CubinCache, EveryPartOfASourceCounts) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  const Source source{"k.cu", "text", "sm_80", {"-a", "-b"}};
  cache.put(source, cubin_of(1));
  for (const Source& other :
       {Source{"l.cu", "text", "sm_80", {"-a", "-b"}},
        Source{"k.cu", "text ", "sm_80", {"-a", "-b"}},
        Source{"k.cu", "text", "sm_90", {"-a", "-b"}}, Source{"k.cu", "text", "sm_80", {"-a"}},
        Source{"k.cu", "text", "sm_80", {"-b", "-a"}}, Source{"k.cu", "text", "sm_80", {"-a-b"}},
        Source{"k.cu", "text", "sm_80", {"-a\n2:-b"}}}) {
    EXPECT_FALSE(cache.find(other));
    EXPECT_NE(cache.path(other), cache.path(source));
  }
  EXPECT_TRUE(cache.find(source));
}

TEST(CubinCache, TruncatedEntriesAreAbsent) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  cache.put(source_of(1), cubin_of(1, 50));
  const std::string path = cache.path(source_of(1)), whole = read_bytes(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_bytes(path, whole.substr(0, size));
    ASSERT_FALSE(cache.find(source_of(1))) << size;
  }
  write_bytes(path, whole + "x");
  EXPECT_FALSE(cache.find(source_of(1)));
  write_bytes(path, whole);
  expect_same(cache.find(source_of(1)), cubin_of(1, 50));
}

TEST(CubinCache, DamagedEntriesAreAbsent) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  cache.put(source_of(1), cubin_of(1, 50));
  const std::string path = cache.path(source_of(1)), whole = read_bytes(path);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      write_bytes(path, damaged);
      ASSERT_FALSE(cache.find(source_of(1))) << at;
    }
  }
  cache.put(source_of(1), cubin_of(1, 50));  // and is put right again
  expect_same(cache.find(source_of(1)), cubin_of(1, 50));
}

TEST(CubinCache, AnEntryUnderAnothersNameIsAbsent) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  cache.put(source_of(1), cubin_of(1));
  fs::copy_file(cache.path(source_of(1)), cache.path(source_of(2)));
  EXPECT_FALSE(cache.find(source_of(2)));
}

TEST(CubinCache, OddFilesAreAbsent) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  fs::create_directory(cache.path(source_of(1)));
  EXPECT_FALSE(cache.find(source_of(1)));
  ASSERT_EQ(::mkfifo(cache.path(source_of(2)).c_str(), 0600), 0);
  EXPECT_FALSE(cache.find(source_of(2)));
}

TEST(CubinCache, DirectoryIsPrivate) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("cubins");
  const mode_t mask = ::umask(0);
  EXPECT_EQ(error_of(path), "");
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  for (const mode_t mode : {0750, 0707, 0720, 0701}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_NE(error_of(path).find("is open to other users; chmod 700"), std::string::npos) << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_EQ(error_of(path), "");
  EXPECT_EQ(error_of(path + "/"), "");

  fs::create_directory_symlink(path, scratch.path("link"));
  EXPECT_NE(error_of(scratch.path("link")).find("cannot be opened"), std::string::npos);
  EXPECT_NE(error_of(scratch.path("link") + "/").find("cannot be opened"), std::string::npos);
  write_bytes(scratch.path("file"), "");
  EXPECT_NE(error_of(scratch.path("file")), "");
  EXPECT_NE(error_of(scratch.path("file") + "/cubins"), "");
  EXPECT_NE(error_of(std::string("a\0b", 3)).find("NUL"), std::string::npos);
  EXPECT_NE(error_of(""), "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    EXPECT_NE(error_of(path).find("belongs to another user"), std::string::npos);
  }
}

TEST(CubinCache, OfTheUser) {
  const ScratchDirectory scratch;
  const auto set = [](const char* name, const std::string& value) {
    value.empty() ? ::unsetenv(name) : ::setenv(name, value.c_str(), 1);
  };
  const auto get = [](const char* name) {
    return std::string(std::getenv(name) ? std::getenv(name) : "");
  };
  const std::string cache = get("XDG_CACHE_HOME"), home = get("HOME");
  set("XDG_CACHE_HOME", scratch.path("x"));
  EXPECT_EQ(CubinCache::of_user().value().directory(), scratch.path("x/ein/cubin"));
  set("XDG_CACHE_HOME", "");
  set("HOME", scratch.path("h"));
  fs::create_directory(scratch.path("h"));
  EXPECT_EQ(CubinCache::of_user().value().directory(), scratch.path("h/.cache/ein/cubin"));
  set("HOME", "relative");
  EXPECT_FALSE(CubinCache::of_user());
  set("HOME", "");
  std::string why_not;
  EXPECT_FALSE(CubinCache::of_user(&why_not));
  EXPECT_NE(why_not.find("nor HOME"), std::string::npos) << why_not;
  write_bytes(scratch.path("file"), "");
  set("XDG_CACHE_HOME", scratch.path("file"));
  EXPECT_FALSE(CubinCache::of_user());
  set("XDG_CACHE_HOME", cache);
  set("HOME", home);
}

TEST(CubinCache, RemovesWhatWasUnusedLongest) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"), 5000);  // four fit
  const auto age = [&](int i, int seconds) {
    fs::last_write_time(cache.path(source_of(i)),
                        fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  };
  write_bytes(cache.directory() + "/notes.txt", std::string(9000, 'x'));  // none of its files
  for (int i = 0; i < 4; ++i) {
    cache.put(source_of(i), cubin_of(i));
    age(i, 1000 - i);
  }
  EXPECT_TRUE(cache.find(source_of(0)));  // used just now, so 1 is the oldest
  cache.put(source_of(4), cubin_of(4));
  EXPECT_FALSE(cache.find(source_of(1)));
  for (int i : {0, 2, 3, 4}) EXPECT_TRUE(cache.find(source_of(i))) << i;

  cache.put(source_of(5), cubin_of(5, 7000));  // larger than all there is room for
  EXPECT_FALSE(cache.find(source_of(5)));
  EXPECT_TRUE(cache.find(source_of(4)));
  EXPECT_TRUE(fs::exists(cache.directory() + "/notes.txt"));
}

TEST(CubinCache, FullDisk) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  {
    const test::FileSizeLimit limit(500);
    try {
      cache.put(source_of(1), cubin_of(1));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
    }
    // compile_all does without.
    EXPECT_FALSE(compile_all(std::vector<Source>{source_of(1)}, &cache).at(0).cubin.image.empty());
  }
  EXPECT_FALSE(cache.find(source_of(1)));
  EXPECT_TRUE(fs::is_empty(cache.directory()));
}

TEST(CubinCache, RemovesWhatADeadProcessLeft) {
  const ScratchDirectory scratch;
  EXPECT_EQ(error_of(scratch.path("c")), "");
  const io::Boot here = io::this_boot();
  write_bytes(scratch.path("c/.ein-" + here.host + "-" + here.id + "-1-1.tmp"), "half");
  EXPECT_EQ(error_of(scratch.path("c")), "");
  EXPECT_TRUE(fs::is_empty(scratch.path("c")));
}

/// Processes that put, find and remove in one directory, of which each finds what was put or
/// nothing.
TEST(CubinCache, ConcurrentProcesses) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  constexpr int processes = 4, sources = 8, rounds = 150;
  std::vector<pid_t> children;
  for (int p = 0; p < processes; ++p) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    int code = 0;
    try {
      std::mt19937 random(static_cast<unsigned>(p));
      int found = 0;
      for (int round = 0; round < rounds; ++round) {
        const CubinCache cache(scratch.path("c"), 40000);  // five or so of eight fit
        const int i = static_cast<int>(random() % sources);
        const Cubin expected = cubin_of(i, 4000 + 500 * static_cast<std::size_t>(i));
        if (const auto cubin = cache.find(source_of(i))) {
          if (cubin->image != expected.image || cubin->log != expected.log) code = 2;
          ++found;
        } else {
          cache.put(source_of(i), expected);
        }
      }
      if (found == 0) code = 3;
    } catch (...) {
      code = 4;
    }
    ::_exit(code);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  std::uint64_t total = 0;
  for (const auto& entry : fs::directory_iterator(scratch.path("c"))) {
    EXPECT_EQ(entry.path().extension(), ".cubin");
    total += entry.file_size();
  }
  EXPECT_LE(total, 40000u);
}

TEST(CubinCache, CompileAllRemembers) {
  SKIP_WITHOUT_NVRTC();
  const ScratchDirectory scratch;
  const CubinCache cache(scratch.path("c"));
  const std::vector<Source> sources{source_of(1), source_of(2), source_of(1)};
  const std::vector<Compiled> cold = compile_all(sources, &cache);
  // A poisoned entry: right in form, and of another kernel's code.
  const std::string good = read_bytes(cache.path(source_of(2)));
  std::string poisoned = good;
  poisoned[good.size() / 2] = static_cast<char>(poisoned[good.size() / 2] ^ 1);
  write_bytes(cache.path(source_of(2)), poisoned);
  const std::vector<Compiled> second = compile_all(sources, &cache);
  const std::vector<Compiled> third = compile_all(sources, &cache);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    EXPECT_FALSE(cold[i].was_cached);
    EXPECT_EQ(second[i].was_cached, i != 1) << i;
    EXPECT_TRUE(third[i].was_cached);
    EXPECT_EQ(third[i].cubin.image, cold[i].cubin.image);
    EXPECT_EQ(kernels_of(third[i].cubin).at(0).name, i == 1 ? "k2" : "k1");
    EXPECT_TRUE(kernels_of(third[i].cubin).at(0).spills);
  }
  // Not its size: a compiler's log tells times.
  EXPECT_NE(read_bytes(cache.path(source_of(2))), poisoned);
}

}  // namespace
}  // namespace ein::gpu
