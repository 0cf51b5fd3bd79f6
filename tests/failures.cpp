// What becomes of every kind of call when the machine fails: memory, threads, mappings, files, and
// limits of a process. The n-th call of a system function fails, or all from the n-th on, for each
// n until no more are made; each time in a child of its own.
//
//   ein_failures [--calls NAME] [--kind NAME|others] [--manner once|on] [--every K] [--from N]
//                [--state fresh|used] [--at N]
//
// Of allocations, which are thousands, every K-th is tried, from the N-th on, and where $EIN_SEEDS
// is 1/M every K·M-th; `others` are all
// kinds but these. The state is that before the call: fresh, or after the same call. With --at the
// N-th position alone, in this process, for a debugger.
//
// A good end is the call's value, an Error or bad_alloc; the same call then gives its value, and
// leaves as many files and descriptors as it does where nothing fails. Prints a table of calls and
// kinds with the positions tried, and every bad end; exits with 1 if there was one.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <ein/error.hpp>
#include <ein/mesh.hpp>
#include <ein/nn.hpp>
#include <ein/npz.hpp>
#include <ein/text.hpp>
#include <ein/tokenizer.hpp>
#include "support/all_calls.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace {

enum class Kind { memory, thread, mapping, code, open, write, sync, rename, none };

std::atomic<Kind> failing{Kind::none};
std::atomic<long> left{0};         // calls that succeed before the one that fails, and that one
std::atomic<bool> goes_on{false};  // whether those after it fail, too

bool fails(Kind kind) {
  if (failing.load(std::memory_order_relaxed) != kind) return false;
  const long now = left.fetch_sub(1, std::memory_order_relaxed);
  return now == 1 || (now < 1 && goes_on.load(std::memory_order_relaxed));
}

/// The function of that name that this program's stands before. Looked up before anything fails.
template <class F>
F next_of(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

struct Next {
  int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                        void*) = next_of<decltype(pthread_create)>("pthread_create");
  void* (*mmap)(void*, std::size_t, int, int, int, off_t) = next_of<decltype(mmap)>("mmap");
  int (*mprotect)(void*, std::size_t, int) = next_of<decltype(mprotect)>("mprotect");
  int (*open)(const char*, int, ...) = next_of<decltype(open)>("open");
  int (*openat)(int, const char*, int, ...) = next_of<decltype(openat)>("openat");
  ssize_t (*write)(int, const void*, std::size_t) = next_of<decltype(write)>("write");
  ssize_t (*pwrite)(int, const void*, std::size_t, off_t) = next_of<decltype(pwrite)>("pwrite");
  int (*fsync)(int) = next_of<decltype(fsync)>("fsync");
  int (*fdatasync)(int) = next_of<decltype(fdatasync)>("fdatasync");
  int (*fcntl)(int, int, ...) = next_of<decltype(fcntl)>("fcntl");
  int (*rename)(const char*, const char*) = next_of<decltype(rename)>("rename");
  int (*renameat)(int, const char*, int, const char*) = next_of<decltype(renameat)>("renameat");
  int (*mkdir)(const char*, mode_t) = next_of<decltype(mkdir)>("mkdir");
};
const Next& next() {
  static const Next next;
  return next;
}

template <class Result>
Result failed(int error, Result result) {
  errno = error;
  return result;
}

mode_t mode_of(int flags, std::va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) {
  return fails(Kind::memory) ? failed<void*>(ENOMEM, nullptr) : __libc_malloc(n);
}
void* calloc(std::size_t count, std::size_t n) {
  return fails(Kind::memory) ? failed<void*>(ENOMEM, nullptr) : __libc_calloc(count, n);
}
void* realloc(void* memory, std::size_t n) {
  return fails(Kind::memory) ? failed<void*>(ENOMEM, nullptr) : __libc_realloc(memory, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  return fails(Kind::memory) ? failed<void*>(ENOMEM, nullptr) : __libc_memalign(alignment, n);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t n) {
  if (fails(Kind::memory)) return ENOMEM;
  *memory = __libc_memalign(alignment, n);
  return *memory ? 0 : ENOMEM;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (fails(Kind::thread)) return EAGAIN;
  return next().pthread_create(thread, attributes, start, argument);
}
void* mmap(void* at, std::size_t n, int access, int flags, int file, off_t offset) {
  if (fails(Kind::mapping) || ((access & PROT_EXEC) && fails(Kind::code)))
    return failed(ENOMEM, MAP_FAILED);
  return next().mmap(at, n, access, flags, file, offset);
}
int mprotect(void* at, std::size_t n, int access) {
  if ((access & PROT_EXEC) && fails(Kind::code)) return failed(EACCES, -1);
  return next().mprotect(at, n, access);
}
int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails(Kind::open) ? failed(EMFILE, -1) : next().open(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return fails(Kind::open) ? failed(EMFILE, -1) : next().openat(folder, path, flags, mode);
}
ssize_t write(int file, const void* bytes, std::size_t n) {
  return fails(Kind::write) ? failed<ssize_t>(ENOSPC, -1) : next().write(file, bytes, n);
}
ssize_t pwrite(int file, const void* bytes, std::size_t n, off_t offset) {
  return fails(Kind::write) ? failed<ssize_t>(ENOSPC, -1) : next().pwrite(file, bytes, n, offset);
}
int fsync(int file) { return fails(Kind::sync) ? failed(EIO, -1) : next().fsync(file); }
int fdatasync(int file) { return fails(Kind::sync) ? failed(EIO, -1) : next().fdatasync(file); }
int rename(const char* from, const char* to) {
  return fails(Kind::rename) ? failed(EACCES, -1) : next().rename(from, to);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fails(Kind::rename) ? failed(EACCES, -1)
                             : next().renameat(from_folder, from, to_folder, to);
}
int mkdir(const char* path, mode_t mode) {
  return fails(Kind::rename) ? failed(EACCES, -1) : next().mkdir(path, mode);
}
int fcntl(int file, int command, ...) {
  std::va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool opens = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  return opens && fails(Kind::open) ? failed(EMFILE, -1) : next().fcntl(file, command, argument);
}

}  // extern "C"

namespace {

namespace fs = std::filesystem;
using ein::test::NamedCheck;

/// Beside test::all_calls, what does not hold again at the end of a process, or takes longer.
const NamedCheck more_calls[] = {
    {"a mesh",
     [](const std::string&) {
       const ein::Mesh mesh({{"data", 2}});
       const ein::Tensor x = ein::place(ein::ones({64, 8}), mesh, "a@data b");
       return ein::test::total(ein::reduce(x, "a b -> b", "sum")) == 64.0 * 8;
     }},
    {"batches",
     [](const std::string&) {
       ein::Prefetcher batches(
           ein::BatchSampler(ein::Tokens(ein::zeros({1000}, ein::DType::u8)), 4, 16, 1));
       batches.next();
       return batches.next().x.numel() == 64 && batches.position() == 2;
     }},
    {"npz",
     [](const std::string& folder) {
       ein::save_npz(folder + "/x.npz", {{"x", ein::test::kept_tensor()}});
       return ein::test::total(ein::load_npz(folder + "/x.npz").at("x")) == 64.0 * 64;
     }},
    {"a tokenizer",
     [](const std::string&) {
       return ein::CharTokenizer("hello wörld").encode("hello").size() == 5;
     }},
    {"byte-level BPE",
     [](const std::string& folder) {
       const auto trained = ein::train_bpe("hello world, hello",
                                           {.vocabulary_size = 262, .special_tokens = {"<s>"}});
       ein::save_bpe(folder + "/tokenizer.json", trained);
       const auto loaded = ein::load_bpe(folder + "/tokenizer.json");
       return loaded.decode(loaded.encode("hello<s> wörld")) == "hello<s> wörld";
     }},
    {"any length",
     [](const std::string&) {
       auto f = ein::compile([](const ein::Tensor& x) { return ein::softmax(x * 2.0, "b [s]"); },
                             {"b=4 s"});
       return std::abs(ein::test::total(f(ein::ones({4, 10}))) - 4) < 1e-5 &&
              std::abs(ein::test::total(f(ein::ones({4, 17}))) - 4) < 1e-5;
     }},
    {"a model",
     [](const std::string&) {
       ein::manual_seed(1);
       const ein::nn::Transformer model(
           {.vocab_size = 11, .block_size = 8, .n_layer = 1, .n_head = 2, .n_embd = 8});
       const ein::Tensor logits = model(ein::zeros({2, 8}, ein::DType::i64));
       ein::reduce(logits, "b s v ->", "mean").backward();
       return logits.numel() == 2 * 8 * 11 && !model.parameters().empty();
     }},
};

/// Something that fails at a position.
struct Failure {
  const char* name;
  void (*begin)(long position);
  long last = 0;             // positions are 1 to this, or as many as are met if it is 0
  bool is_frequent = false;  // thousands of positions, of which each --every is tried
  bool is_felt_by_all = true;
  std::array<std::string_view, 2> felt_by{};  // or else the only calls that may end in an Error
};

template <Kind kind>
void count_down(long position) {
  left = position;
  failing = kind;
}

void set_limit(decltype(RLIMIT_AS) which, rlim_t value) {
  rlimit limit{};
  ::getrlimit(which, &limit);
  limit.rlim_cur = std::min(value, limit.rlim_max);
  ::setrlimit(which, &limit);
}

long pages_in_use() {
  long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  return pages;
}

const Failure failures[] = {
    {"memory", count_down<Kind::memory>, 0, true},
    {"threads", count_down<Kind::thread>, 0, false, false, {"set_num_threads", "a mesh"}},
    {"mappings", count_down<Kind::mapping>},
    {"executable memory", count_down<Kind::code>, 0, false, false},
    {"open", count_down<Kind::open>},
    {"write", count_down<Kind::write>},
    {"fsync", count_down<Kind::sync>},
    {"names of files", count_down<Kind::rename>},
    {"address space",  // of so many MiB
     [](long position) {
       set_limit(RLIMIT_AS,
                 static_cast<rlim_t>(pages_in_use() * ::sysconf(_SC_PAGESIZE) + (position << 20)));
     },
     40},
    {"descriptors",
     [](long position) { set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(2 + position)); }, 8},
};

void end_failures() {
  failing = Kind::none;
  rlimit limit{};
  for (const auto which : {RLIMIT_AS, RLIMIT_NOFILE}) {
    ::getrlimit(which, &limit);
    set_limit(which, limit.rlim_max);
  }
}

/// What a child tells of a call.
struct Report {
  bool is_hit = true;
  bool is_good = false;
  long files = 0, descriptors = 0;
  char text[240] = "";
};

long entries(const char* folder) {
  std::error_code error;
  long count = 0;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    ++count;
  return count;
}

int report_to = -1;

[[noreturn]] void tell(Report report) {
  if (report_to >= 0)
    next().write(report_to, &report, sizeof report);
  else
    std::fprintf(stderr, "%s%s\n", report.is_good ? "good" : "BAD ", report.text);
  ::_exit(0);
}

[[noreturn]] void tell_bad(const std::string& text) {
  Report report;
  std::snprintf(report.text, sizeof report.text, "%s", text.c_str());
  tell(report);
}

void tell_of_terminate() {
  end_failures();
  tell_bad("std::terminate");
}

/// How a call ends: "" where it holds.
std::string end_of(const NamedCheck& check, const std::string& folder, bool& is_good) {
  std::string text;
  is_good = true;
  try {
    if (check.holds(folder)) return "";
    is_good = false;
    end_failures();
    return "another value";
  } catch (const ein::Error& error) {
    end_failures();
    return std::string("Error: ") + error.what();
  } catch (const std::bad_alloc&) {
    end_failures();
    return "bad_alloc";
  } catch (const std::exception& error) {
    end_failures();
    text = error.what();
  }
  is_good = false;
  return "another exception: " + text;
}

/// In the child: the call with a failure, then without.
[[noreturn]] void call(const NamedCheck& check, const std::string& folder, const Failure* failure,
                       long position, bool is_used) {
  std::set_terminate(tell_of_terminate);
  ::alarm(10);
  bool is_good = true;
  if (is_used && !end_of(check, folder, is_good).empty()) tell_bad("the first call fails");
  if (failure) failure->begin(position);
  const std::string first = end_of(check, folder, is_good);
  Report report;
  report.is_hit = failure && (failure->last > 0 || left < 1);
  end_failures();
  if (failure && !failure->is_felt_by_all &&
      std::find(failure->felt_by.begin(), failure->felt_by.end(), check.name) ==
          failure->felt_by.end())
    is_good &= first.empty();
  if (!is_good) tell_bad(first);
  const std::string second = end_of(check, folder, is_good);
  if (!second.empty()) tell_bad(first + "; then, without a failure: " + second);
  report.is_good = true;
  report.files = entries(folder.c_str());
  report.descriptors = entries("/proc/self/fd");
  tell(report);
}

/// The child's report.
Report report_of(const NamedCheck& check, const std::string& folder, const Failure* failure,
                 long position, bool is_used) {
  fs::create_directory(folder);
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    report_to = ends[1];
    call(check, folder, failure, position, is_used);
  }
  ::close(ends[1]);
  Report report;
  const bool is_told = ::read(ends[0], &report, sizeof report) == sizeof report;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!is_told)
    std::snprintf(report.text, sizeof report.text, "%s",
                  WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "an exit");
  fs::remove_all(folder);
  return report;
}

struct Options {
  std::string folder, calls, kind, manner, state;
  long every = 1, from = 1;
  long at = 0;  // the only position, in this process, for a debugger
};

/// Tries one kind of failure on one call at all its positions; the number of bad ends.
int try_all(const NamedCheck& check, const Failure& failure, bool is_used, const Options& options) {
  const std::string folder = options.folder + "/call";
  if (options.at > 0) {
    fs::create_directory(folder);
    call(check, folder, &failure, options.at, is_used);
  }
  const Report usual = report_of(check, folder, nullptr, 0, is_used);
  const std::string name = std::string(check.name) + (is_used ? " (used)" : "") + ", " +
                           failure.name + (goes_on ? " from there on" : "");
  int tried = 0, bad = 0;
  const auto blame = [&](long position, const std::string& text) {
    if (++bad <= 5) std::printf("BAD  %s, %ld: %s\n", name.c_str(), position, text.c_str());
  };
  if (!usual.is_good) blame(0, usual.text);
  const ein::test::PartOfSeeds part = ein::test::part_of_seeds();
  const long step = failure.is_frequent ? options.every * part.of : 1,
             from = failure.is_frequent ? options.from + options.every * (part.number - 1) : 1;
  for (long at = from; failure.last == 0 || at <= failure.last; at += step) {
    const Report report = report_of(check, folder, &failure, at, is_used);
    if (report.is_good && !report.is_hit) break;
    ++tried;
    if (!report.is_good)
      blame(at, report.text);
    else if (report.files > usual.files)
      blame(at, "leaves " + std::to_string(report.files) + " files in place of " +
                    std::to_string(usual.files));
    else if (report.descriptors > usual.descriptors)
      blame(at, "leaves " + std::to_string(report.descriptors) + " descriptors in place of " +
                    std::to_string(usual.descriptors));
  }
  if (tried > 0) std::printf("%-60s %6d tried, %d bad\n", name.c_str(), tried, bad);
  return bad;
}

bool read(int count, char** words, Options& options) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    const char* const value = words[i + 1];
    if (word == "--calls")
      options.calls = value;
    else if (word == "--kind")
      options.kind = value;
    else if (word == "--manner")
      options.manner = value;
    else if (word == "--state")
      options.state = value;
    else if (word == "--every")
      options.every = std::max(1L, std::atol(value));
    else if (word == "--from")
      options.from = std::max(1L, std::atol(value));
    else if (word == "--at")
      options.at = std::atol(value);
    else
      return false;
  }
  return count % 2 == 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!read(count, words, options)) {
    std::fprintf(stderr,
                 "usage: ein_failures [--calls NAME] [--kind NAME|others] [--manner once|on] "
                 "[--every K] [--from N] [--state fresh|used] [--at N]\n");
    return 2;
  }
  const ein::test::ScratchDirectory scratch;
  options.folder = scratch.path().string();
  next();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int bad = 0;
  std::vector<NamedCheck> calls(std::begin(ein::test::all_calls), std::end(ein::test::all_calls));
  calls.insert(calls.end(), std::begin(more_calls), std::end(more_calls));
  for (const NamedCheck& check : calls) {
    if (!options.calls.empty() && options.calls != check.name) continue;
    for (const Failure& failure : failures) {
      const bool is_other = options.kind == "others" && !failure.is_frequent;
      if (!options.kind.empty() && options.kind != failure.name && !is_other) continue;
      for (const bool all_after : {false, true}) {
        if (!options.manner.empty() && (options.manner == "on") != all_after) continue;
        if (all_after && failure.last > 0) continue;
        goes_on = all_after;
        for (const bool is_used : {false, true}) {
          if (!options.state.empty() && (options.state == "used") != is_used) continue;
          bad += try_all(check, failure, is_used, options);
        }
      }
    }
  }
  std::printf("%d bad ends\n", bad);
  return bad > 0;
}
