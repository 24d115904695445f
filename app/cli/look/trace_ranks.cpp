#include "app/cli/look/trace_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/cli/parsing/options.h"
#include "core/formats/recording/recording.h"
#include "core/questions/ranks/collective.h"
#include "core/trace/print/printer.h"

namespace retrograd::cli {
namespace {

/// One rank, and how far it is printed.
struct Column {
  std::int64_t rank = 0;
  std::shared_ptr<const Analysis> analysis;
  std::vector<BoundSymbolId> ops;  ///< that the recording has
  std::size_t at = 0;

  const Document& document() const { return *analysis->document; }
  const StepRecording& recording() const { return *analysis->file.recording; }
  bool ended() const { return at >= ops.size(); }
  std::string_view nameAt(std::size_t place) const { return document().symbol(ops[place]).name; }
  std::string types() const {
    std::string text;
    for (const auto output : document().outputs(ops[at]))
      if (output && document().isTensor(output))
        text += (text.empty() ? "" : ", ") + typeComment(document().meta(output));
    return text;
  }
};

class RanksListing {
 public:
  explicit RanksListing(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void print() {
    while (std::ranges::any_of(columns_, [](const Column& one) { return !one.ended(); })) {
      if (isOne()) printTogether();
      else printApart();
    }
    fmt::print("\n# {} ops on all ranks, {} on some\n", together_, apart_);
  }

 private:
  bool isOne() const {
    const auto& first = columns_.front();
    return std::ranges::all_of(columns_, [&](const Column& one) {
      return !one.ended() && !first.ended() && isSame(first, first.at, one, one.at);
    });
  }

  static bool isSame(const Column& a, std::size_t x, const Column& b, std::size_t y) {
    return a.nameAt(x) == b.nameAt(y) && a.recording().op(a.ops[x]).phase == b.recording().op(b.ops[y]).phase;
  }

  void printTogether() {
    auto& first = columns_.front();
    heading(first);
    std::string others;
    for (const auto& one : columns_)
      if (const auto types = one.types(); types != first.types())
        others += fmt::format("; rank {}: {}", one.rank, types);
    line(ranksText(ranks()), first, others);
    for (auto& one : columns_) ++one.at;
    ++together_;
  }

  /// Up to the nearest ops at which all ranks are one again.
  void printApart() {
    std::vector<std::size_t> until;
    for (const auto& one : columns_) until.push_back(one.ops.size());
    constexpr std::size_t farthest = 2000;
    const auto& first = columns_.front();
    auto fewest = std::numeric_limits<std::size_t>::max();
    for (std::size_t ahead = 0; ahead < std::min(farthest, fewest) && first.at + ahead < first.ops.size(); ++ahead) {
      std::vector<std::size_t> found{first.at + ahead};
      std::size_t skipped = ahead;
      for (std::size_t i = 1; i < columns_.size() && skipped < fewest; ++i) {
        const auto& one = columns_[i];
        auto place = one.at;
        const auto end = std::min(one.ops.size(), one.at + farthest);
        while (place < end && !isSame(first, first.at + ahead, one, place)) ++place;
        if (place == end) break;
        skipped += place - one.at;
        found.push_back(place);
      }
      if (found.size() < columns_.size() || skipped >= fewest) continue;
      fewest = skipped;
      until = std::move(found);
    }
    const bool isStuck = until == starts();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      auto& one = columns_[i];
      until[i] = std::max(until[i], one.at + (isStuck ? 1 : 0));
      for (until[i] = std::min(until[i], one.ops.size()); one.at < until[i]; ++one.at, ++apart_) {
        heading(one);
        line(ranksText({one.rank}), one, {});
      }
    }
  }

  std::vector<std::size_t> starts() const {
    std::vector<std::size_t> places;
    for (const auto& one : columns_) places.push_back(one.at);
    return places;
  }

  std::vector<std::int64_t> ranks() const {
    std::vector<std::int64_t> found;
    for (const auto& one : columns_) found.push_back(one.rank);
    return found;
  }

  void heading(const Column& column) {
    const auto& op = column.recording().op(column.ops[column.at]);
    const bool isWithin = op.phase == Phase::hook || op.phase == Phase::recompute || op.phase == Phase::accumulation;
    const auto title = fmt::format("step {}, {}", op.step, name(isWithin ? Phase::backward : op.phase));
    if (title == title_) return;
    title_ = title;
    fmt::print("\n# ---- {}\n", title);
  }

  static void line(const std::string& ranks, const Column& column, const std::string& more) {
    const auto op = column.ops[column.at];
    const auto where = recordedLine(column.document(), op);
    fmt::print("{}  {}  # {}{}{}\n", ranks, printCall(column.document(), op), column.types(),
               where.empty() ? "" : "; " + where, more);
  }

  std::vector<Column> columns_;
  std::string title_;
  std::size_t together_ = 0, apart_ = 0;
};

}  // namespace

void printRanks(const std::string& folder, const Progress& progress) {
  std::vector<Column> columns;
  for (const auto& path : ranksIn(folder)) {
    Column column{.analysis = open(path, {}, progress)};
    column.rank = column.recording().rank;
    for (const auto op : column.analysis->joint.ops)
      if (column.recording().op(op).number >= 0) column.ops.push_back(op);
    columns.push_back(std::move(column));
  }
  RanksListing(std::move(columns)).print();
}

}  // namespace retrograd::cli
