// Counts what a program gives to MPI's collectives, and sends, from the arguments of its calls
// alone. It is preloaded; ein_mpi_counts() says what there was so far, a line for each kind of call
// and each set of processes: "all_reduce 0 2: 3 calls, 1024 bytes".
#include <mpi.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Count {
  long long calls = 0, bytes = 0;
};
std::mutex mutex;
std::map<std::string, Count> counts;

/// "0 2": the processes of a communicator, by their ranks among all.
std::string ranks_of(MPI_Comm communicator) {
  MPI_Group members = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  PMPI_Comm_group(communicator, &members);
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  int size = 0;
  PMPI_Group_size(members, &size);
  std::vector<int> own(static_cast<std::size_t>(size)), ranks(own.size());
  for (int i = 0; i < size; ++i) own[static_cast<std::size_t>(i)] = i;
  PMPI_Group_translate_ranks(members, size, own.data(), all, ranks.data());
  PMPI_Group_free(&members);
  PMPI_Group_free(&all);
  std::string text;
  for (const int rank : ranks) text += " " + std::to_string(rank);
  return text;
}

/// `elements` of `type`, once or for each process.
void count(const char* what, long long elements, MPI_Datatype type, bool for_each,
           MPI_Comm communicator) {
  int bytes = 0, processes = 1;
  PMPI_Type_size(type, &bytes);
  if (for_each) PMPI_Comm_size(communicator, &processes);
  const std::lock_guard lock(mutex);
  Count& known = counts[what + ranks_of(communicator)];
  ++known.calls;
  known.bytes += elements * bytes * processes;
}

}  // namespace

extern "C" {

int MPI_Iallreduce(const void* from, void* to, int elements, MPI_Datatype type, MPI_Op op,
                   MPI_Comm communicator, MPI_Request* request) {
  count("all_reduce", elements, type, false, communicator);
  return PMPI_Iallreduce(from, to, elements, type, op, communicator, request);
}
int MPI_Ireduce_scatter_block(const void* from, void* to, int elements, MPI_Datatype type,
                              MPI_Op op, MPI_Comm communicator, MPI_Request* request) {
  count("reduce_scatter", elements, type, true, communicator);
  return PMPI_Ireduce_scatter_block(from, to, elements, type, op, communicator, request);
}
int MPI_Iallgather(const void* from, int elements, MPI_Datatype type, void* to, int received,
                   MPI_Datatype received_type, MPI_Comm communicator, MPI_Request* request) {
  count("all_gather", elements, type, false, communicator);
  return PMPI_Iallgather(from, elements, type, to, received, received_type, communicator, request);
}
int MPI_Ialltoall(const void* from, int elements, MPI_Datatype type, void* to, int received,
                  MPI_Datatype received_type, MPI_Comm communicator, MPI_Request* request) {
  count("all_to_all", elements, type, true, communicator);
  return PMPI_Ialltoall(from, elements, type, to, received, received_type, communicator, request);
}

int MPI_Isend(const void* from, int elements, MPI_Datatype type, int to, int tag,
              MPI_Comm communicator, MPI_Request* request) {
  count("send", elements, type, false, communicator);
  return PMPI_Isend(from, elements, type, to, tag, communicator, request);
}

const char* ein_mpi_counts() {
  static std::string text;
  const std::lock_guard lock(mutex);
  text.clear();
  for (const auto& [what, known] : counts)
    text += what + ": " + std::to_string(known.calls) +
            (known.calls == 1 ? " call, " : " calls, ") + std::to_string(known.bytes) + " bytes\n";
  return text.c_str();
}

}  // extern "C"
