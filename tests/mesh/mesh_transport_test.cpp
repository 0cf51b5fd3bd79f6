// Transports: processes that exchange values, and what happens when one of them ends. The processes
// are ein_mesh_worker (support/mesh_worker.cpp), which compares all results with plain loops.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <ein/error.hpp>

#include "machine/system.hpp"
#include "mesh/combine.hpp"
#include "mesh/mpi.hpp"
#include "mesh/shm.hpp"
#include "support/expect_error.hpp"
#include "support/scratch.hpp"
#include "support/seeds.hpp"

namespace ein::mesh {
namespace {

using Clock = std::chrono::steady_clock;
using test::expect_error;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int count_of(const std::string& part, const std::string& text) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

/// A program under way, whose output goes to a file.
class Program {
 public:
  Program(std::vector<std::string> words, const std::filesystem::path& output,
          const std::vector<std::string>& variables = {}) {
    std::vector<std::string> environment = variables;
    for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    const int error = posix_spawnp(&process_, words[0].c_str(), &files, nullptr,
                                   pointers(words).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&files);
    // A signal to process 0 would go to this one, and to what called it.
    if (error != 0) throw std::system_error(error, std::generic_category(), words[0]);
  }
  ~Program() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  Program(Program&& other) : process_(std::exchange(other.process_, 0)) {}

  pid_t process() const { return process_; }
  void send(int signal) const { ::kill(process_, signal); }
  /// Its exit code; 128 + signal if one ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(process_, 0), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }
  pid_t process_ = 0;
};

class MeshTransport : public testing::Test {
 protected:
  struct Outcome {
    int exit_code;
    std::string text;
    double seconds;
  };

  std::filesystem::path output() const { return directory_.path() / "output"; }
  std::string text() const { return content(output()); }

  /// What `ein launch -n count` makes of a program.
  Outcome launch(int count, const std::vector<std::string>& program,
                 const std::vector<std::string>& variables = {}) {
    std::filesystem::remove(output());
    const auto begin = Clock::now();
    const int exit_code = launched(count, program, variables).wait();
    return {exit_code, text(), seconds_since(begin)};
  }
  Program launched(int count, const std::vector<std::string>& program,
                   const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> words{EIN_COMMAND, "launch", "-n", std::to_string(count), "--"};
    words.insert(words.end(), program.begin(), program.end());
    return Program(words, output(), variables);
  }
  void expect_good(int count, const std::vector<std::string>& words,
                   const std::vector<std::string>& variables = {}) {
    std::vector<std::string> program{EIN_MESH_WORKER};
    program.insert(program.end(), words.begin(), words.end());
    const Outcome outcome = launch(count, program, variables);
    EXPECT_EQ(outcome.exit_code, 0) << count << " processes\n" << outcome.text;
    EXPECT_EQ(outcome.text, "");
  }

  /// Processes that write the name of a file when they run: their ids, by rank.
  std::vector<pid_t> processes_of(int count) const {
    std::vector<pid_t> processes(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank) {
      const auto file = directory_.path() / std::to_string(rank);
      const auto begin = Clock::now();
      while (!(std::ifstream(file) >> processes[static_cast<std::size_t>(rank)]) &&
             seconds_since(begin) < 20)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::filesystem::remove(file);
    }
    return processes;
  }
  /// A shell that writes its id to a file named by its rank and becomes the worker.
  std::vector<std::string> that_tells_its_id(const std::string& what) const {
    return {"sh", "-c",
            "echo $$ > '" + directory_.path().string() + "/'$EIN_RANK; exec " EIN_MESH_WORKER " " +
                what};
  }

  const test::ScratchDirectory directory_;
};

// --- values ---

TEST_F(MeshTransport, EveryDtypeAndCombineIsAPlainLoopOverRanks) {
  for (const int count : {1, 2, 3, 4}) expect_good(count, {"every_kind"});
}

TEST_F(MeshTransport, RandomCollectivesOfSeveralGroupsAtOnce) {
  test::for_seeds(3, [&](unsigned seed) {
    for (const int count : {1, 2, 3, 4})
      expect_good(count, {"random", std::to_string(seed) + ",12"});
  });
}

TEST_F(MeshTransport, ResultsThatAreTooLargeForTheCaches) {
  for (const int count : {2, 3}) expect_good(count, {"random", "7,12"}, {"EIN_CACHES=4K,16K,64K"});
}

TEST_F(MeshTransport, EveryProcessSendsBeforeAnyReceives) {
  for (const int count : {2, 4}) expect_good(count, {"sends"});
}

TEST_F(MeshTransport, GroupsMayBeUsedInAnyOrder) {
  for (const int count : {3, 4}) expect_good(count, {"crossed"});
}

TEST_F(MeshTransport, RefusesWrongArguments) { expect_good(2, {"arguments"}); }

TEST_F(MeshTransport, AChildOfForkHasNoPartInIt) { expect_good(2, {"fork"}); }

TEST_F(MeshTransport, NarrowFloatsAreRoundedOnce) {
  // 256 + 1 + 1 is 258 in f32; in bf16, 256 + 1 is 256.
  const bf16 parts[] = {convert<bf16>(256.0f), convert<bf16>(1.0f), convert<bf16>(1.0f)};
  std::vector<const std::byte*> from;
  for (const bf16& part : parts) from.push_back(reinterpret_cast<const std::byte*>(&part));
  bf16 sum{};
  combine_elements(from, reinterpret_cast<std::byte*>(&sum), 1, DType::bf16, Combine::sum);
  EXPECT_EQ(convert<float>(sum), 258.0f);
}

TEST_F(MeshTransport, NotANumberIsTheLargestAndTheLeast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Combine combine : {Combine::max, Combine::min, Combine::sum}) {
    const float a[] = {nan, 1, 2}, b[] = {1, nan, 3};
    const std::byte* const from[] = {reinterpret_cast<const std::byte*>(a),
                                     reinterpret_cast<const std::byte*>(b)};
    float result[3];
    combine_elements(from, reinterpret_cast<std::byte*>(result), 3, DType::f32, combine);
    EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]));
    EXPECT_FALSE(std::isnan(result[2]));
  }
}

// --- processes that differ, end or do not come ---

TEST_F(MeshTransport, NamesProcessesWhoseProgramDiffers) {
  const Outcome outcome = launch(4, {EIN_MESH_WORKER, "hash", "2"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("kind " + std::to_string(static_cast<int>(ErrorKind::value)) +
                         ": the program of process 2 differs from that of processes 0, 1 and 3\n",
                     outcome.text),
            4)
      << outcome.text;
}

TEST_F(MeshTransport, NamesDifferentCollectives) {
  const Outcome outcome = launch(3, {EIN_MESH_WORKER, "collective"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("process 1: all_gather of 3 f32\n", outcome.text), 3) << outcome.text;
  EXPECT_GE(count_of("process 0: all_reduce sum of 4 f32\n", outcome.text), 1) << outcome.text;
}

TEST_F(MeshTransport, NamesAMessageThatIsNotTheOneReceived) {
  const Outcome outcome = launch(2, {EIN_MESH_WORKER, "message"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("receive: process 0 sent something else\n  it: send of 3 f32\n"
                     "  this process: receive of 4 f32\n",
                     outcome.text),
            1)
      << outcome.text;
}

TEST_F(MeshTransport, WhatASenderSentBeforeItLeftArrives) {
  const Outcome outcome = launch(2, {EIN_MESH_WORKER, "leave_first"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("receive: process 0 has left", outcome.text), 1) << outcome.text;
  EXPECT_LT(outcome.seconds, 10);
}

TEST_F(MeshTransport, ACallAtExitIsAnError) {
  const Outcome outcome = launch(2, {EIN_MESH_WORKER, "exit"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("this process has left the others", outcome.text), 2) << outcome.text;
}

TEST_F(MeshTransport, AProcessThatHasLeftIsNotWaitedFor) {
  const Outcome outcome = launch(3, {EIN_MESH_WORKER, "leave"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("all_reduce: process 0 has left", outcome.text), 2) << outcome.text;
  EXPECT_LT(outcome.seconds, 10);
}

TEST_F(MeshTransport, AProcessThatDoesNotComeIsNotWaitedForLong) {
  const Outcome outcome = launch(2, {EIN_MESH_WORKER, "late"}, {"EIN_SHM_WAIT=1"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("shm: process 1 did not come within 1 s", outcome.text), 1) << outcome.text;
}

TEST_F(MeshTransport, AProcessThatLivesElsewhereIsNotWaitedForForEver) {
  const Outcome outcome = launch(3, {EIN_MESH_WORKER, "elsewhere", "4"}, {"EIN_SHM_TIMEOUT=1"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(count_of("all_reduce: process 1 did not take part within 1 s", outcome.text), 2)
      << outcome.text;
  EXPECT_LT(outcome.seconds, 10);
  expect_good(3, {"elsewhere", "2"}, {"EIN_SHM_TIMEOUT=60"});
}

TEST_F(MeshTransport, MemoryKeepsItsSize) {
  constexpr int count = 2;
  const SharedSpace space(count);
  const off_t bytes = ::lseek(space.descriptor(), 0, SEEK_END);
  ASSERT_GT(bytes, 0);
  for (const off_t other : {off_t{0}, bytes - 1, bytes + 1}) {
    EXPECT_EQ(::ftruncate(space.descriptor(), other), -1);
    EXPECT_EQ(errno, EPERM);
  }
  // The same in a file that could change is refused.
  const int copy = ::memfd_create("copy", MFD_CLOEXEC);
  std::vector<char> content(4096);
  ASSERT_EQ(::ftruncate(copy, bytes), 0);
  ASSERT_EQ(::pread(space.descriptor(), content.data(), content.size(), 0), 4096);
  ASSERT_EQ(::pwrite(copy, content.data(), content.size(), 0), 4096);
  expect_error([&] { open_shm(copy, 0, count); }, ErrorKind::peer, {"its size could change"});
  ::close(copy);
}

TEST_F(MeshTransport, KilledAtAnyMoment) {
  const unsigned seed = test::from_environment("EIN_FIRST_SEED", std::random_device()());
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  const char* const work[] = {"add", "pass", "pipeline"};
  for (int run = 0; run < 6; ++run) {
    std::filesystem::remove(output());
    Program launcher = launched(4, that_tells_its_id(work[run % 3]));
    const std::vector<pid_t> processes = processes_of(4);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    const std::size_t victim = random() % 4;
    const auto begin = Clock::now();
    ::kill(processes[victim], SIGKILL);
    EXPECT_EQ(launcher.wait(), 137);
    EXPECT_LT(seconds_since(begin), 10);
    EXPECT_EQ(count_of(": process " + std::to_string(victim) + " was ended by signal 9", text()),
              4)  // by three processes and the launcher
        << text();
    EXPECT_EQ(count_of("kind " + std::to_string(static_cast<int>(ErrorKind::peer)) + ": ", text()),
              3)
        << text();
  }
}

TEST_F(MeshTransport, StoppedOrKilledWithoutALauncherThatTells) {
  // Two meshes at once: in one a process is stopped, in the other killed, and nobody is told.
  constexpr int count = 3;
  SharedSpace spaces[2] = {SharedSpace(count), SharedSpace(count)};
  std::vector<Program> programs;
  for (const int mesh : {0, 1}) {
    for (int rank = 0; rank < count; ++rank) {
      programs.push_back(
          Program({EIN_MESH_WORKER, "add"}, directory_.path() / std::to_string(mesh),
                  {"EIN_RANK=" + std::to_string(rank), "EIN_SIZE=" + std::to_string(count),
                   "EIN_SHM=" + std::to_string(spaces[mesh].descriptor())}));
    }
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto begin = Clock::now();
  programs[1].send(SIGSTOP);
  programs[count + 1].send(SIGKILL);
  for (const std::size_t survivor : {0, 2, count, count + 2})
    EXPECT_EQ(programs[survivor].wait(), 3);
  EXPECT_LT(seconds_since(begin), 10);
  for (const int mesh : {0, 1}) {
    const std::string text = content(directory_.path() / std::to_string(mesh));
    EXPECT_EQ(count_of("process 1 gives no sign of life", text), 2) << text;
    EXPECT_TRUE(spaces[mesh].has_silent_process());
  }
}

TEST_F(MeshTransport, ProcessesEndWithTheirLauncher) {
  Program launcher = launched(2, that_tells_its_id("add"));
  const std::vector<pid_t> processes = processes_of(2);
  const auto begin = Clock::now();
  launcher.send(SIGKILL);  // nobody waits for it yet: its process id is still there
  for (const pid_t process : processes) {
    while (::kill(process, 0) == 0 && seconds_since(begin) < 10)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LT(seconds_since(begin), 10);
  launcher.wait();
  EXPECT_EQ(count_of("the launcher of the processes has ended", text()), 2) << text();
}

TEST_F(MeshTransport, StandardStreamsMayBeClosed) {
  for (const std::string closed : {">&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    const std::string worker = EIN_MESH_WORKER " chatter";
    EXPECT_EQ(launch(2, {"sh", "-c", "exec " + worker + " " + closed}).exit_code, 0) << text();
    Program launcher({"sh", "-c", "exec '" EIN_COMMAND "' launch -n 2 -- " + worker + " " + closed},
                     output());
    EXPECT_EQ(launcher.wait(), 0) << closed << "\n" << text();
  }
}

TEST_F(MeshTransport, RefusesWrongEnvironments) {
  expect_error([] { SharedSpace(0); }, ErrorKind::value, {"0 processes", "between 1 and 256"});
  expect_error([] { SharedSpace(257); }, ErrorKind::value, {"257 processes"});
  expect_error([] { open_shm(); }, ErrorKind::peer, {"ein launch -n 2 -- program"});
  SharedSpace space(2);
  expect_error([&] { open_shm(space.descriptor(), 0, 3); }, ErrorKind::value, {"process 0 of 3"});
  expect_error([&] { open_shm(space.descriptor(), 2, 2); }, ErrorKind::value, {"process 2 of 2"});
  expect_error([] { open_shm(9999, 0, 2); }, ErrorKind::peer, {"EIN_SHM"});
  const int null = ::open("/dev/null", O_RDWR);
  expect_error([&] { open_shm(null, 0, 2); }, ErrorKind::peer, {"something else"});
  EXPECT_EQ(::close(null), 0);  // still open
  const auto with = [&](const char* rank, const char* size, const char* descriptor,
                        const char* seconds = "60") {
    std::filesystem::remove(output());
    EXPECT_EQ(
        Program({EIN_MESH_WORKER, "hash", "0"}, output(),
                {std::string("EIN_RANK=") + rank, std::string("EIN_SIZE=") + size,
                 std::string("EIN_SHM=") + descriptor, std::string("EIN_SHM_WAIT=") + seconds})
            .wait(),
        3);
    return text();
  };
  EXPECT_NE(with("x", "2", "3").find("EIN_RANK=x is no number between 0 and 1"), std::string::npos);
  EXPECT_NE(with("2", "2", "3").find("EIN_RANK=2"), std::string::npos);
  EXPECT_NE(with("0", "1000", "3").find("EIN_SIZE=1000"), std::string::npos);
  EXPECT_NE(with("0", "2", "-1").find("EIN_SHM=-1"), std::string::npos);
  EXPECT_NE(with("0", "2", "999").find("no memory of ein launch"), std::string::npos);
  ::setenv("EIN_SHM_TIMEOUT", "0", 1);
  EXPECT_NE(with("0", "2", "3").find("EIN_SHM_TIMEOUT=0 is no number"), std::string::npos)
      << text();
  ::unsetenv("EIN_SHM_TIMEOUT");
  EXPECT_NE(with("0", "2", "3", "abc").find("help: give the seconds to wait"), std::string::npos);
}

// --- MPI ---

TEST_F(MeshTransport, SaysWhatToInstallForMpi) {
  const test::ScratchDirectory empty;
  ::setenv("EIN_MPI", (empty.path() / "libein_mpi.so").c_str(), 1);
  expect_error([] { open_mpi(); }, ErrorKind::peer,
               {"libein_mpi.so", "apt-get install libopenmpi-dev"});
  ::unsetenv("EIN_MPI");
  // Beside this program, in `lib` beside its folder, and where the loader looks.
  const std::filesystem::path folder = std::filesystem::canonical("/proc/self/exe").parent_path();
  expect_error(
      [] { open_mpi(); }, ErrorKind::peer,
      {(folder / "libein_mpi.so").string(),
       (folder.parent_path() / "lib" / "libein_mpi.so").string(), "libein_mpi.so: cannot"});
}

TEST_F(MeshTransport, AChildOfForkCallsNothingOfMpi) {
  ::setenv("EIN_MPI", EIN_FAKE_MPI, 1);
  std::unique_ptr<Transport> transport = open_mpi();
  ::unsetenv("EIN_MPI");
  Ticket ticket = transport->all().start_barrier();
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_refused = false;
    try {
      transport->all().barrier();
    } catch (const Error& error) {
      is_refused = error.kind() == ErrorKind::value;
    }
    ticket = {};
    transport->leave();
    transport.reset();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_NO_THROW(transport->all().barrier());
}

#ifdef EIN_MPI_PLUGIN
TEST_F(MeshTransport, CollectivesByMpi) {
  // Every kind by two, random ones by four: the former takes long where they share processors.
  const std::vector<std::string> calls[] = {{"2", EIN_MESH_WORKER, "every_kind"},
                                            {"4", EIN_MESH_WORKER, "random", "5,12"},
                                            {"3", EIN_MESH_WORKER, "sends"},
                                            {"2", EIN_MESH_WORKER, "arguments"}};
  for (const std::vector<std::string>& words : calls) {
    std::filesystem::remove(output());
    std::vector<std::string> call{EIN_MPIRUN, "-n"};
    call.insert(call.end(), words.begin(), words.end());
    // Open MPI, as root and with more processes than processors.
    Program mpirun(
        call, output(),
        {"EIN_MPI=" EIN_MPI_PLUGIN, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
         "OMPI_MCA_rmaps_base_oversubscribe=1", "OMPI_MCA_mpi_yield_when_idle=1"});
    EXPECT_EQ(mpirun.wait(), 0) << words[2] << "\n" << text();
  }
}
#endif

// --- ein launch ---

TEST_F(MeshTransport, LaunchEndsWithTheFirstExitCodeThatIsNotZero) {
  EXPECT_EQ(launch(3, {"true"}).exit_code, 0);
  EXPECT_EQ(
      launch(3, {"sh", "-c", "if [ $EIN_RANK = 1 ]; then exit 7; fi; sleep 0.2; exit 5"}).exit_code,
      7);
  EXPECT_EQ(launch(2, {"sh", "-c", "if [ $EIN_RANK = 1 ]; then exit 9; fi; exit 0"}).exit_code, 9);
  const Outcome killed =
      launch(2, {"sh", "-c", "if [ $EIN_RANK = 1 ]; then kill -9 $$; fi; exit 0"});
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_EQ(count_of("ein: launch: process 1 was ended by signal 9", killed.text), 1)
      << killed.text;
}

TEST_F(MeshTransport, LaunchSaysWhatIsWrongWithTheCall) {
  const auto expect_fails = [&](int exit_code, const std::vector<std::string>& words,
                                const std::string& part) {
    std::filesystem::remove(output());
    std::vector<std::string> call{EIN_COMMAND, "launch"};
    call.insert(call.end(), words.begin(), words.end());
    EXPECT_EQ(Program(call, output()).wait(), exit_code) << text();
    EXPECT_EQ(text().rfind("ein: ", 0), 0u) << text();
    EXPECT_NE(text().find(part), std::string::npos) << text();
  };
  expect_fails(2, {}, "is required");
  expect_fails(2, {"-n", "2"}, "PROGRAM is required");
  expect_fails(2, {"--", "true"}, "-n is required");
  for (const char* number : {"0", "-1", "257", "x", "2.5"})
    expect_fails(2, {"-n", number, "--", "true"}, "give one between 1 and 256");
  expect_fails(2, {"-n", "2", "-m", "--", "true"}, "-m");
  expect_fails(1, {"-n", "2", "--", "no-such-program"}, "'no-such-program' cannot be started");
}

TEST_F(MeshTransport, LaunchGivesEachProcessItsProcessors) {
  // With fewer than two, or where the system does not tell, both have all.
  const int count = system::available_processors();
  const bool is_bound = system::processors().size() >= 2;
  const auto line_of = [](int number) { return "\n" + std::to_string(number) + "\n"; };
  const Outcome bound = launch(2, {"sh", "-c", "echo; nproc"});
  EXPECT_GE(count_of(line_of(is_bound ? count / 2 : count), bound.text), 1) << bound.text;
  std::filesystem::remove(output());
  Program free({EIN_COMMAND, "launch", "-n", "2", "--no-bind", "--", "sh", "-c", "echo; nproc"},
               output());
  EXPECT_EQ(free.wait(), 0);
  EXPECT_GE(count_of(line_of(count), text()), 1) << text();
}

TEST_F(MeshTransport, LaunchPassesWordsInputAndSignalsOn) {
  const Outcome words = launch(1, {"printf", "%s|", "", "-x", "--", "a b", "[c]", "->"});
  EXPECT_EQ(words.text, "|-x|--|a b|[c]|->|");
  const Outcome variables = launch(2, {"sh", "-c", "echo $EIN_RANK of $EIN_SIZE"}, {"EIN_RANK=9"});
  EXPECT_EQ(count_of("0 of 2\n", variables.text), 1);
  EXPECT_EQ(count_of("1 of 2\n", variables.text), 1);

  std::filesystem::remove(output());
  Program launcher = launched(2, {"sh", "-c",
                                  "trap 'exit 5' TERM; echo $$ > '" + directory_.path().string() +
                                      "/'$EIN_RANK; while true; do sleep 0.05; done"});
  processes_of(2);
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), 5);
}

}  // namespace
}  // namespace ein::mesh
