#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/layout/layering.h"
#include "core/process/child.h"

namespace retrograd::layout {

/// What dot is asked for, by the number of nodes in one graph: its time grows faster than the square of them
/// (docs/graph.md has the figures).
enum class DotEffort : std::uint8_t {
  full,     ///< to 300: all that it does by itself, some ten milliseconds
  reduced,  ///< to 1,000: fewer rounds, tenths of a second
  watched,  ///< to 2,000: the same, and how long it takes is reported while it does
  none      ///< above: never; the own layout, or groups that are closed
};
DotEffort dotEffort(std::int32_t nodes);

/// `retrograd-layout` next to the running program; empty where it is not there.
std::string layoutHelper();

/// Rows and order by Graphviz's dot, in a process of its own that is started when first needed, asked one graph at a
/// time and killed to cancel. Not for several threads at once.
class DotClient {
 public:
  explicit DotClient(std::string program = layoutHelper()) : program_(std::move(program)) {}

  /// Nothing where there is no helper, dotEffort() is none, the helper fails or takes longer than the limit. While a
  /// `watched` graph is laid out, `progress` hears "dot: 1,500 boxes" and the share of the limit that is over. Throws
  /// Error(cancelled), after the helper has been killed.
  std::optional<Layering> operator()(const LayerGraph& graph, const Progress& progress = {});

  void setLimit(std::chrono::milliseconds limit) { limit_ = limit; }
  /// Of the helper that runs; -1 where none does.
  pid_t process() const { return helper_ ? helper_->id() : -1; }

 private:
  bool start();
  bool send(const std::string& text, const Progress& progress);
  /// Reads up to the line "end" or an error; empty where the process ended or the time is over.
  std::string receive(const Progress& progress);
  bool wait(short what, const Progress& progress);

  std::string program_;
  std::unique_ptr<Child> helper_;  // none where it does not run
  std::chrono::milliseconds limit_{5'000};
  std::chrono::steady_clock::time_point deadline_;
  std::string told_;  ///< what progress hears while waiting; empty: nothing
};

/// The better of the own layout and dot's: dot is asked where the own has crossings.
std::optional<Layering> bestLayering(DotClient& dot, const LayerGraph& graph, const Progress& progress);

}  // namespace retrograd::layout
