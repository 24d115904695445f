#include "app/cli/parsing/jobs_below.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/formats/jobs/job_log.h"
#include "core/formats/repro/repro_inputs.h"

namespace retrograd::cli {

std::string jobsBelow(const std::string& path) {
  constexpr std::size_t shown = 4, most = 5000;
  constexpr int deepest = 6;
  std::vector<std::string> found, scripts;  // logs come first: a folder of them holds the whole job
  std::error_code ignored;
  std::filesystem::recursive_directory_iterator entry(path, std::filesystem::directory_options::skip_permission_denied,
                                                      ignored),
      end;
  for (std::size_t seen = 0; !ignored && entry != end && seen < most; ++seen, entry.increment(ignored)) {
    if (entry.depth() >= deepest) entry.disable_recursion_pending();
    std::error_code error;
    if (!entry->is_directory(error) || error) continue;
    const auto folder = entry->path().string();
    const bool isLog = jobs::isJobLog(folder);
    if (!isLog && !isReproFolder(folder)) continue;
    (isLog ? found : scripts).push_back(folder);
    entry.disable_recursion_pending();
  }
  std::sort(found.begin(), found.end());
  std::sort(scripts.begin(), scripts.end());
  found.insert(found.end(), scripts.begin(), scripts.end());
  if (found.empty()) return {};
  auto text = fmt::format("; folders below it that can be opened: {}",
                          fmt::join(found.begin(), found.begin() + std::min(shown, found.size()), ", "));
  return found.size() > shown ? text + fmt::format(" and {} more", found.size() - shown) : text;
}

}  // namespace retrograd::cli
