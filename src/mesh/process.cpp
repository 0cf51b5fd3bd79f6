#include "mesh/process.hpp"

namespace ein::mesh {

Process::Process(Transport& transport, std::span<const MeshAxis> axes)
    : transport_(transport), axes_(axes.begin(), axes.end()), coordinates_(axes.size()) {
  int rest = transport.rank();
  for (std::size_t a = axes.size(); a-- > 0;) {
    coordinates_[a] = rest % axes_[a].size;
    rest /= axes_[a].size;
  }
}

std::map<std::uint32_t, Counters> Process::counters() const {
  const std::lock_guard lock(known_->mutex);
  std::map<std::uint32_t, Counters> since;
  for (const auto& [key, known] : known_->groups) {
    const Counters now = known.first->counters();
    Counters& counters = since[key.first];
    for (std::size_t c = 0; c < collective_count; ++c) {
      counters.counts[c].calls += now.counts[c].calls - known.second.counts[c].calls;
      counters.counts[c].bytes += now.counts[c].bytes - known.second.counts[c].bytes;
    }
  }
  return since;
}

Group& Process::group(std::uint32_t mesh_axes, Transport& by) const {
  const std::lock_guard lock(known_->mutex);
  const auto known = known_->groups.find({mesh_axes, &by});
  if (known != known_->groups.end()) return *known->second.first;
  std::vector<int> ranks;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    bool is_of_group = true;
    int rest = rank;
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const bool may_differ = mesh_axes >> a & 1u;
      is_of_group &= may_differ || rest % axes_[a].size == coordinates_[a];
      rest /= axes_[a].size;
    }
    if (is_of_group) ranks.push_back(rank);
  }
  Group& group = by.group(ranks);
  known_->groups.emplace(std::pair(mesh_axes, &by), std::pair(&group, group.counters()));
  return group;
}

}  // namespace ein::mesh
