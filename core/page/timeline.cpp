// Ops over the time of the step, and the bytes that live meanwhile.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/byte_size.h"
#include "core/base/module_path.h"
#include "core/formats/recording/recording.h"
#include "core/page/html.h"
#include "core/page/sections.h"
#include "core/questions/memory_timeline.h"
#include "core/questions/op_facts.h"

namespace retrograd {
namespace {

/// Of a drawing, from left to right; it is stretched to the page.
constexpr double drawingWidth = 1000;
constexpr std::size_t mostPoints = 500;
constexpr std::size_t mostModulesShown = 400;
constexpr std::size_t mostRows = 12;

/// "backward 1" of a recorded step without its step, which the stretch's title has.
std::string laneOf(const StepOp& op, Phase phase) { return op.phase == phase ? std::string(name(phase)) : "backward"; }

std::vector<PageStretch> recordedStretches(const Analysis& analysis) {
  const auto& recording = *analysis.file.recording;
  const auto& ops = analysis.joint.ops;
  const auto sections = sectionsOf(recording, ops);
  std::vector<PageStretch> stretches;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const auto& first = recording.op(ops[sections[i].begin]);
    const bool isWithin = sections[i].title.find("backward") != std::string::npos;
    stretches.push_back({sections[i].begin, i + 1 < sections.size() ? sections[i + 1].begin : ops.size(),
                         sections[i].title, laneOf(first, isWithin ? Phase::backward : first.phase)});
  }
  return stretches;
}

/// Stretches of ops of one module, two levels deep: "h.3".
std::vector<PageStretch> moduleStretches(const Analysis& analysis) {
  const OpFacts facts(analysis);
  std::vector<PageStretch> stretches;
  const auto& ops = analysis.joint.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::string path;
    for (const auto part : partsOf(facts.module(ops[i]), 3)) {
      path += (path.empty() ? "" : ".") + std::string(part);
      if (isListIndex(part)) break;
    }
    if (!stretches.empty() && stretches.back().title == path) ++stretches.back().end;
    else stretches.push_back({i, i + 1, path, "modules"});
  }
  std::erase_if(stretches, [](const PageStretch& stretch) { return stretch.title.empty(); });
  return stretches;
}

class Timeline {
 public:
  explicit Timeline(const Page& page)
      : page_(page), analysis_(*page.analysis), count_(static_cast<double>(analysis_.joint.ops.size())) {}

  std::string html() {
    std::string html =
        "<section aria-labelledby=\"timeline\">\n<h2 id=\"timeline\">Timeline</h2>\n<p class=\"faint\">Ops in the "
        "order "
        "in which they ran, from left to right; a click leads to the first one.</p>\n<div class=\"timeline\">\n";
    const auto stretches = stretchesOf(analysis_);
    std::vector<std::string> lanes;
    for (const auto& one : stretches)
      if (std::ranges::find(lanes, one.lane) == lanes.end()) lanes.push_back(one.lane);
    for (std::size_t i = 0; i < lanes.size(); ++i) html += lane(lanes[i], stretches);
    const auto modules = moduleStretches(analysis_);
    if (modules.size() > 1 && modules.size() <= mostModulesShown) html += lane("modules", modules);
    return html + marks() + memory() + "</div>\n</section>\n";
  }

 private:
  double x(std::size_t position) const { return drawingWidth * static_cast<double>(position) / count_; }

  static std::string drawing(std::string_view kind, double height, const std::string& content) {
    return fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">{}</svg>\n", kind,
                       drawingWidth, height, content);
  }

  std::string lane(const std::string& lane, const std::vector<PageStretch>& stretches) const {
    std::string content;
    std::size_t ops = 0, even = 0;
    for (const auto& one : stretches) {
      if (one.lane != lane) continue;
      ops += one.end - one.begin;
      content += fmt::format(
          "<a href=\"#op{}\" aria-label=\"{}, {} ops\"><rect class=\"stretch {}\" x=\"{:.2f}\" y=\"0\" "
          "width=\"{:.2f}\" "
          "height=\"10\"><title>{}, {} ops</title></rect></a>",
          analysis_.joint.ops[one.begin].index, htmlText(one.title), one.end - one.begin, ++even % 2 ? "odd" : "even",
          x(one.begin), std::max(0.8, x(one.end) - x(one.begin)), htmlText(one.title), one.end - one.begin);
    }
    return fmt::format("<span class=\"lane-name\">{} <span class=\"faint\">{}</span></span>", htmlText(lane), ops) +
           drawing("lane " + lane, 10, content);
  }

  /// Where findings are.
  std::string marks() const {
    const OpFacts facts(analysis_);
    std::string content;
    std::set<std::size_t> known;
    for (const auto& claim : page_.report.claims) {
      if (claim.severity < Severity::note) continue;
      const auto op = shownOp(analysis_, claim.op);
      const auto position = op ? facts.position(op) : std::nullopt;
      if (!position || !known.insert(*position).second) continue;
      content += fmt::format(
          "<a href=\"#op{}\" aria-label=\"finding: {}\"><rect class=\"mark {}\" x=\"{:.2f}\" y=\"0\" width=\"4\" "
          "height=\"10\"><title>{}</title></rect></a>",
          op.index, htmlText(claim.sentence), name(claim.severity), std::min(x(*position), drawingWidth - 4),
          htmlText(claim.sentence));
    }
    return content.empty() ? content : "<span class=\"lane-name\">findings</span>" + drawing("lane", 10, content);
  }

  /// Live bytes by what they are for, one above the other.
  std::string memory() const {
    const auto timeline = memoryTimeline(analysis_);
    if (timeline.peakBytes <= 0 || timeline.liveBytes.empty()) return {};
    const auto count = timeline.liveBytes.size();
    const auto points = std::min(count, mostPoints);
    std::array<double, mostPoints> below{};
    std::string content, legend;
    const auto height = [&](double bytes) { return 60 - 58 * bytes / static_cast<double>(timeline.peakBytes); };
    for (std::size_t use = 0; use < memoryUseCount; ++use) {
      std::string upper, lower;
      double most = 0;
      for (std::size_t i = 0; i < points; ++i) {
        const auto at =
            largestIn(timeline, i * count / points, std::max((i + 1) * count / points, i * count / points + 1));
        const auto bytes = static_cast<double>(timeline.liveBytes[at][use]);
        most = std::max(most, bytes);
        const auto left = drawingWidth * static_cast<double>(i) / static_cast<double>(points);
        lower.insert(0, fmt::format("L{:.1f} {:.1f}", left, height(below[i])));
        below[i] += bytes;
        upper += fmt::format("{}{:.1f} {:.1f}", i ? "L" : "M", left, height(below[i]));
      }
      if (most == 0) continue;
      const auto word = name(static_cast<MemoryUse>(use));
      content += fmt::format("<path class=\"use use{}\" d=\"{}{}Z\"/>", use, upper, lower);
      legend += fmt::format("<span class=\"key use{}\">{}</span>", use, word);
    }
    return fmt::format("<span class=\"lane-name\">memory <span class=\"faint\">{}</span></span>",
                       bytesText(timeline.peakBytes)) +
           fmt::format(
               "<svg class=\"memory\" viewBox=\"0 0 {} 60\" preserveAspectRatio=\"none\" role=\"img\" "
               "aria-label=\"Live bytes over the step; the peak is {} after op {} of {}\">{}</svg>\n",
               drawingWidth, bytesText(timeline.peakBytes), timeline.peakPosition + 1, count, content) +
           "<span></span><p class=\"legend\">" + legend + "</p>\n";
  }

  static std::size_t largestIn(const MemoryTimeline& timeline, std::size_t from, std::size_t to) {
    auto best = from;
    for (auto i = from; i < std::min(to, timeline.liveBytes.size()); ++i)
      if (timeline.total(i) > timeline.total(best)) best = i;
    return best;
  }

  const Page& page_;
  const Analysis& analysis_;
  double count_;
};

}  // namespace

std::vector<PageStretch> stretchesOf(const Analysis& analysis) {
  if (!analysis.derived() || analysis.joint.ops.empty()) return {};
  if (analysis.file.recording) return recordedStretches(analysis);
  const auto count = analysis.joint.ops.size(), border = std::min(analysis.joint.forwardCount, count);
  std::vector<PageStretch> stretches;
  if (border > 0) stretches.push_back({0, border, "forward", "forward"});
  if (border < count) stretches.push_back({border, count, "backward", "backward"});
  return stretches;
}

std::string timelineSection(const Page& page) {
  return stretchesOf(*page.analysis).empty() ? std::string() : Timeline(page).html();
}

std::vector<PageTable> memoryTables(const Analysis& analysis) {
  if (!analysis.derived()) return {};
  const auto timeline = memoryTimeline(analysis);
  if (timeline.peakBytes <= 0) return {};
  PageTable table{"Memory at the peak",
                  fmt::format("{} live after op {} of {}, besides parameters of {} and inputs of {}. As the traces "
                              "have it: what kernels take for themselves is not known.",
                              bytesText(timeline.peakBytes), timeline.peakPosition + 1, timeline.liveBytes.size(),
                              bytesText(timeline.parameterBytes), bytesText(timeline.inputBytes)),
                  {"Module", "Bytes", "Share"},
                  {}};
  const auto modules = bytesByModule(analysis, timeline, timeline.peakPosition);
  for (const auto& [module, bytes] : modules) {
    if (table.rows.size() == mostRows) break;
    table.rows.push_back(
        {module.empty() ? "(no module)" : module, bytesText(bytes),
         fmt::format("{:.1f} %", 100.0 * static_cast<double>(bytes) / static_cast<double>(timeline.peakBytes))});
  }
  return {std::move(table)};
}

}  // namespace retrograd
