#include "mesh/process.hpp"

#include <algorithm>

#include "size/ask.hpp"

namespace ein::mesh {

Process::Process(Transport& transport, std::span<const MeshAxis> axes, std::vector<int> processes)
    : transport_(transport),
      axes_(axes.begin(), axes.end()),
      processes_(std::move(processes)),
      rank_(static_cast<int>(
          std::lower_bound(processes_.begin(), processes_.end(), transport.rank()) -
          processes_.begin())),
      coordinates_(axes.size()) {
  int rest = rank_;
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

std::vector<int> Process::along(std::uint32_t mesh_axes) const {
  std::vector<int> ranks;
  for (std::size_t place = 0; place < processes_.size(); ++place) {
    bool is_along = true;
    int rest = static_cast<int>(place);
    for (std::size_t a = axes_.size(); a-- > 0;) {
      const bool may_differ = mesh_axes >> a & 1u;
      is_along &= may_differ || rest % axes_[a].size == coordinates_[a];
      rest /= axes_[a].size;
    }
    if (is_along) ranks.push_back(processes_[place]);
  }
  return ranks;
}

Group& Process::group(std::uint32_t mesh_axes, Transport& by) const {
  // Nobody differs along an axis of one process, and the same processes are one group.
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (axes_[a].size == 1) mesh_axes &= ~(std::uint32_t{1} << a);
  }
  const std::lock_guard lock(known_->mutex);
  auto& [known, before] = known_->groups[{mesh_axes, &by}];
  if (known) return *known;
  known = &by.group(along(mesh_axes));
  before = known->counters();
  return *known;
}

}  // namespace ein::mesh
