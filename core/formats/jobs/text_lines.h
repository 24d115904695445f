#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace retrograd::jobs {

/// A line of a text log that belongs to an artifact: "... file.py:1844] [0/0] [__aot_joint_graph] TEXT".
struct TextLine {
  std::optional<std::int64_t> rank;
  std::string_view time, pid, compile;
  std::string_view header;  ///< all up to the artifact's "]": equal for the lines of one record
  std::string_view content;
};
/// nullopt for any other line.
std::optional<TextLine> readTextLine(std::string_view line);

/// The content as a line of the graph: "path/_lazy_graph_module.py class inner_f(torch.nn.Module):" has the name of a
/// file in front.
inline std::string_view textOfLine(const TextLine& line) {
  if (!line.content.ends_with("(torch.nn.Module):")) return line.content;
  const auto at = line.content.find("class ");
  const bool isHead = at != std::string_view::npos && line.content.find_first_not_of(' ') < at;
  return isHead ? line.content.substr(at) : line.content;
}

}  // namespace retrograd::jobs
