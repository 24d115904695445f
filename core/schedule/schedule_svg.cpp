#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/schedule/schedule_report.h"

namespace retrograd {
namespace {

constexpr double rowHeight = 34, rowGap = 8, left = 70, right = 120, top = 62, footer = 62;
constexpr double smallestCell = 26, widest = 60'000;

struct Look {
  ActionKind kind;
  const char *letter, *meaning, *fill;
};

// Okabe and Ito's colours, which stay apart for every kind of colour blindness; black text on each has a contrast of 6
// or more.
constexpr Look looks[] = {
    {ActionKind::forward, "F", "forward", "#7fc4ee"},
    {ActionKind::backward, "B", "backward", "#efb445"},
    {ActionKind::backwardInput, "I", "gradient of inputs", "#5cc6a2"},
    {ActionKind::backwardWeight, "W", "gradient of weights", "#e0a3c6"},
};

const Look& lookOf(ActionKind kind) {
  return *std::find_if(std::begin(looks), std::end(looks) - 1, [&](const Look& look) { return look.kind == kind; });
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20) out += ' ';
    else out += c;
  }
  return out;
}

class Drawing {
 public:
  Drawing(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs)
      : schedule_(schedule),
        run_(run),
        unit_(costs.unit.empty() ? std::string{} : fmt::format(" {}", escaped(costs.unit))),
        scale_(scale()) {}

  std::string draw() {
    const auto chart = std::max(run_.makespan * scale_, 560.0),
               height = top + static_cast<double>(run_.ranks.size()) * (rowHeight + rowGap) + footer;
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\">\n",
        left + chart + right, height);
    add("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    add("<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\" fill=\"#111\">{}</text>\n",
        escaped(schedule_.name));
    add("<text x=\"12\" y=\"42\" font-size=\"12\" fill=\"#333\">{} ranks, {} stages, {} microbatches; makespan "
        "{:.6g}{}, bubble {:.1f} %</text>\n",
        run_.ranks.size(), schedule_.stages, schedule_.microbatches, run_.makespan, unit_, 100 * run_.bubble);
    add("<text x=\"{:.1f}\" y=\"{:.0f}\" font-size=\"11\" fill=\"#333\">in flight</text>\n",
        left + run_.makespan * scale_ + 10, top - 6);
    for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) drawRank(rank);
    drawAxis();
    drawLegend();
    add("</svg>\n");
    return std::move(out_);
  }

 private:
  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  /// Pixels of a unit of time: the shortest action that takes time still holds its label, unless that made the drawing
  /// endless.
  double scale() const {
    double shortest = run_.makespan;
    for (const auto& rank : run_.ranks)
      for (const auto& timed : rank.actions)
        if (timed.end > timed.start) shortest = std::min(shortest, timed.end - timed.start);
    if (!(run_.makespan > 0)) return 1;
    return std::min(smallestCell / shortest, widest / run_.makespan);
  }
  double x(double time) const { return left + time * scale_; }
  static double y(std::size_t rank) { return top + static_cast<double>(rank) * (rowHeight + rowGap); }

  void drawRank(std::size_t rank) {
    const auto& timeline = run_.ranks[rank];
    add("<g><text x=\"12\" y=\"{:.1f}\" font-size=\"12\" fill=\"#111\">rank {}</text>\n", y(rank) + rowHeight / 2 + 4,
        rank);
    double free = 0;
    for (std::size_t i = 0; i < timeline.actions.size(); ++i) {
      const auto& timed = timeline.actions[i];
      if (!computes(timed.action.kind)) continue;
      drawIdle(rank, free, timed.start);
      drawAction(rank, i);
      free = std::max(free, timed.end);
    }
    drawIdle(rank, free, run_.makespan);
    drawFrames(rank);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\" fill=\"#111\">{}{}</text></g>\n", x(run_.makespan) + 10,
        y(rank) + rowHeight / 2 + 4, timeline.peakInFlight, bytesText(timeline.peakBytes));
  }

  static std::string bytesText(std::int64_t bytes) {
    return bytes ? fmt::format(" ({:.3g} MB)", static_cast<double>(bytes) / 1e6) : std::string{};
  }

  void drawIdle(std::size_t rank, double from, double to) {
    if ((to - from) * scale_ < 0.5) return;
    add("<g><title>rank {} waits from {:.6g} to {:.6g}{}</title>", rank, from, to, unit_);
    drawHatched(x(from), y(rank), (to - from) * scale_, rowHeight);
    add("</g>\n");
  }

  /// Line by line: SVG's patterns are more than some viewers know.
  void drawHatched(double left, double above, double width, double height) {
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"#f4f4f4\"/><path stroke=\"#bdbdbd\" "
        "stroke-width=\"1\" d=\"",
        left, above, width, height);
    for (auto first = 8 - height; first < width; first += 8) {
      const auto from = std::max(first, 0.0), to = std::min(first + height, width);
      add("M{:.1f} {:.1f}L{:.1f} {:.1f}", left + from, above + height - (from - first), left + to,
          above + height - (to - first));
    }
    add("\"/>");
  }

  /// An action over its row's height; of an overlap whose parts run at once, over its half.
  void drawAction(std::size_t rank, std::size_t index) {
    const auto& actions = run_.ranks[rank].actions;
    const auto& timed = actions[index];
    const bool second = index > 0 && sharesTime(actions[index - 1], timed),
               first = index + 1 < actions.size() && sharesTime(timed, actions[index + 1]);
    const auto height = first || second ? rowHeight / 2 : rowHeight, above = y(rank) + (second ? rowHeight / 2 : 0);
    const auto width = (timed.end - timed.start) * scale_;
    const auto& look = lookOf(timed.action.kind);
    add("<g><title>{}: rank {}, stage {}, {} of microbatch {}, {:.6g} to {:.6g}{}</title>", text(timed.action), rank,
        timed.action.stage, look.meaning, timed.action.microbatch, timed.start, timed.end, unit_);
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"#555\" "
        "stroke-width=\"0.6\"/>",
        x(timed.start), above, width, height, look.fill);
    if (width >= 9) drawLabel(timed, look, x(timed.start) + width / 2, above, width, height);
    add("</g>\n");
  }

  void drawLabel(const TimedAction& timed, const Look& look, double middle, double above, double width, double height) {
    const bool stages = schedule_.stages > static_cast<std::int32_t>(schedule_.ranks.size()) && height == rowHeight;
    const auto label = fmt::format("{}{}", look.letter, timed.action.microbatch);
    const auto size = std::min(12.0, 1.6 * width / static_cast<double>(label.size()));
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\" text-anchor=\"middle\" fill=\"#000\">{}</text>", middle,
        above + (stages ? 15 : height / 2 + 4), size, label);
    if (stages)
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"8.5\" text-anchor=\"middle\" fill=\"#000\">s{}</text>", middle,
          above + 28, timed.action.stage);
  }

  static bool sharesTime(const TimedAction& a, const TimedAction& b) {
    return a.overlapped && b.overlapped && a.position == b.position && a.start == b.start;
  }

  void drawFrames(std::size_t rank) {
    const auto& actions = run_.ranks[rank].actions;
    for (std::size_t i = 0; i < actions.size();) {
      auto end = i + 1;
      double last = actions[i].end;
      for (; end < actions.size() && actions[i].overlapped && actions[end].overlapped &&
             actions[end].position == actions[i].position;
           ++end)
        last = std::max(last, actions[end].end);
      if (actions[i].overlapped)
        add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"none\" stroke=\"#000\" "
            "stroke-width=\"2\"/>\n",
            x(actions[i].start), y(rank), (last - actions[i].start) * scale_, rowHeight);
      i = end;
    }
  }

  void drawAxis() {
    const auto bottom = y(run_.ranks.size()) + 2;
    if (!(run_.makespan > 0)) return;
    const auto wanted = 90 / scale_;  // a mark each 90 pixels or so, at 1, 2 or 5 of a power of ten
    const auto power = std::pow(10.0, std::floor(std::log10(wanted)));
    const auto step = power * (wanted / power <= 1 ? 1 : wanted / power <= 2 ? 2 : wanted / power <= 5 ? 5 : 10);
    for (int i = 0; i * step <= run_.makespan * (1 + 1e-9); ++i)
      add("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"#777\"/><text x=\"{0:.1f}\" "
          "y=\"{3:.1f}\" font-size=\"10\" "
          "text-anchor=\"middle\" fill=\"#444\">{4:.6g}{5}</text>\n",
          x(i * step), bottom - 4, bottom, bottom + 11, i * step, i ? std::string{} : unit_);
  }

  void drawLegend() {
    const auto line = y(run_.ranks.size()) + 30;
    double at = left;
    const auto entry = [&](std::string_view fill, std::string_view letter, std::string_view meaning) {
      if (fill.empty()) drawHatched(at, line, 20, 16);
      add("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"20\" height=\"16\" fill=\"{}\" stroke=\"#555\" "
          "stroke-width=\"0.6\"/>",
          at, line, fill.empty() ? "none" : fill);
      add("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#000\">{}</text>", at + 10,
          line + 12, letter);
      add("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"11\" fill=\"#111\">{}</text>\n", at + 25, line + 12, meaning);
      at += 38 + 6.2 * static_cast<double>(meaning.size());
    };
    for (const auto& look : looks) entry(look.fill, look.letter, look.meaning);
    entry("", "", "waiting (bubble)");
  }

  const Schedule& schedule_;
  const Simulation& run_;
  std::string unit_;
  double scale_;
  std::string out_;
};

}  // namespace

std::string scheduleSvg(const Schedule& schedule, const Simulation& run, const ScheduleCosts& costs) {
  return Drawing(schedule, run, costs).draw();
}

}  // namespace retrograd
