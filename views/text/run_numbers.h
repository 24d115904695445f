#pragma once
#include <QObject>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/base/enum_array.h"
#include "core/base/id_vector.h"
#include "core/derivation/analysis.h"
#include "core/questions/intended_infinities.h"
#include "core/stepping/moment.h"
#include "core/stepping/steps.h"

namespace retrograd::views {

/// A number that a listing or a table shows for each op next to its line; all that is known of one is an entry of
/// figureColumns(), in this order. Settings keep it by position: new ones go to the end.
enum class OpFigure : std::uint8_t {
  none,
  time,         ///< seconds; of an op of the computation the sum of its forward ops
  bytes,        ///< that it allocated
  norm,         ///< the 2-norm of its first output that is a tensor, as all below
  greatest,     ///< the greatest absolute value
  bad,          ///< NaN and Inf in all of its outputs, but for infinities that the model means
  gradientNorm  ///< the 2-norm of the gradient of that output
};

/// All that listings, tables, titles and menus know of a figure. Its number is of the op's run, or of what it made.
struct FigureColumn {
  OpFigure kind;
  const char *id, *title, *tip;
  int width;    ///< of a table's column, in pixels at the usual size of letters
  bool adds;    ///< the numbers of a folded module are summed
  bool isCost;  ///< a table has a bar behind it
  QString (*text)(double number);
  double (*ofRun)(const OpMeasure& measure) = nullptr;
  double (*ofValue)(const TensorStatistics& statistics) = nullptr;  ///< of the first output that has any
  bool isOfGradient = false;                                        ///< of that output's gradient
};
inline constexpr std::size_t figureCount = 7;
const EnumArray<OpFigure, FigureColumn, figureCount>& figureColumns();

/// What is known of each op of the open document's run, whoever ran it: times, bytes, and statistics of what it made.
/// Views subscribe to it.
class RunNumbers : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  /// Forgets all; what comes is of this analysis, whose ops run at these positions (both may be null).
  void reset(std::shared_ptr<const Analysis> analysis, std::shared_ptr<const OpPositions> positions,
             IntendedInfinities intended = {});
  void add(const RunNews& news);
  /// This op failed when it was run ahead.
  void setFailed(BoundSymbolId op, const QString& why);

  std::size_t known() const { return measures_.size(); }
  std::size_t size() const { return analysis_ ? analysis_->joint.ops.size() : 0; }
  const TensorStatistics* statistics(ValueId value) const;
  /// nullopt where it is not known, or there is none.
  std::optional<double> number(OpFigure kind, BoundSymbolId op) const;
  /// Where the op runs whose run makes this number: of a gradient's norm the one that makes the gradient, of an op of
  /// the computation its last forward op. nullopt where there is none.
  std::optional<std::size_t> madeAt(OpFigure kind, BoundSymbolId op) const;
  /// What a bar as long as the column means. At most one op of a hundred has a greater number: the first use of a
  /// thread pool takes a thousand times as long as another op, and would leave all others without a bar. Of a long run
  /// a sample of 20,000 to 40,000 ops decides.
  double scale(OpFigure kind) const;
  bool isBad(BoundSymbolId op) const;
  /// The first op of the run whose outputs have a NaN or Inf, as isBad() counts them; invalid where none has.
  BoundSymbolId firstBad() const { return firstBad_; }
  /// All of which isBad() is true.
  const std::set<BoundSymbolId>& badOps() const { return badOps_; }
  BoundSymbolId failed() const { return failed_; }
  const QString& failure() const { return failure_; }

 Q_SIGNALS:
  void changed();
  void badOpsChanged();

 private:
  std::optional<double> ownNumber(OpFigure kind, BoundSymbolId op) const;
  ValueId gradientOf(ValueId value) const;
  std::optional<TensorStatistics>& slot(ValueId value);

  std::shared_ptr<const Analysis> analysis_;
  IntendedInfinities intended_;
  std::vector<OpMeasure> measures_;  ///< of ops [0, known())
  std::shared_ptr<const OpPositions> positions_;
  /// In blocks, made once a value of theirs is known: a table of a million values takes longer to make than an event
  /// may.
  static constexpr int blockSize = 256;
  using Block = std::array<std::optional<TensorStatistics>, blockSize>;
  std::vector<std::unique_ptr<Block>> statistics_;
  mutable std::map<OpFigure, double> scales_;     ///< those that were asked for
  mutable IdVector<ValueId, ValueId> gradients_;  ///< of all values, from when one was asked for first
  BoundSymbolId firstBad_, failed_;
  std::set<BoundSymbolId> badOps_;
  QString failure_;
};

/// "12.3 ms", "4 KiB", "0.513", "3 NaN, Inf"; empty for nullopt.
QString numberText(OpFigure kind, std::optional<double> number);
/// "Time", "Bytes", ... for menus and headers.
QString titleOf(OpFigure kind);

}  // namespace retrograd::views
