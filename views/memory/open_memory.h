#pragma once
#include <QObject>
#include <memory>
#include <unordered_map>

#include "core/questions/memory/memory_stack.h"
#include "core/questions/memory_join/memory_prediction.h"
#include "core/questions/memory_join/recorded_memory.h"
#include "views/engine/pool_job.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// A snapshot of the window with what is asked of it once.
struct ShownMemory {
  std::shared_ptr<const RecordedMemory> read;      ///< as it was read
  std::shared_ptr<const RecordedMemory> recorded;  ///< the same, joined where a model is open
  std::shared_ptr<const GroupedAllocations> grouped;
  std::shared_ptr<const MemoryStack> stack;
  std::shared_ptr<const MemoryPrediction> prediction;  ///< where something in it agrees with the model
  std::weak_ptr<const Analysis> joinedWith;            ///< whose ops the makers of its blocks are

  std::shared_ptr<const std::unordered_map<BoundSymbolId, std::int32_t>> blocks;  ///< of each op, see blockOf()

  /// The op of an analysis that made a block of the history; invalid where that is not known.
  BoundSymbolId makerOf(std::int32_t allocation, const std::shared_ptr<const Analysis>& analysis) const;
  /// A block that an op made, in the step with the peak if there is one; -1 where none is known.
  std::int32_t blockOf(BoundSymbolId op, const std::shared_ptr<const Analysis>& analysis) const;
};

/// What a step of a document allocates.
struct OpenStep {
  std::shared_ptr<const TracedStep> what;
  std::weak_ptr<const Analysis> of;
};

/// The snapshots of CUDA's allocator that are open in a window: one, and one that it is compared with. They are read
/// and replayed on the thread pool, and joined with the open document where that has a backward. Nothing here waits.
class OpenMemory : public QObject {
  Q_OBJECT

 public:
  /// Bands of the stack, that of all others included.
  static constexpr std::size_t bands = 9;

  explicit OpenMemory(DocumentController* controller, QObject* parent = nullptr);

  /// Opens instead of what is open, which stays until the new one is there.
  void open(const QString& path) { read(path, Side::first, {}); }
  /// Opens next to what is open.
  void compareWith(const QString& path) { read(path, Side::second, {}); }
  /// Closes the second snapshot, else the first.
  void close();
  void setGrouping(MemoryGrouping by);
  void setDevice(std::size_t device);

  /// Without `recorded` while none is open.
  const ShownMemory& shown() const { return shown_; }
  const ShownMemory& other() const { return other_; }
  MemoryGrouping grouping() const { return by_; }
  bool busy() const { return opening_.busy() || joining_.busy(); }
  /// What is under way, for people: "Reading memory.pickle: 40 %". Empty while nothing is.
  QString busyText() const { return busyText_; }
  /// Why the open document is not joined; empty where it is.
  QString notJoined() const { return notJoined_; }

 Q_SIGNALS:
  void changed();
  void busyChanged();
  void failed(const QString& message);
  /// A snapshot was read.
  void opened(const QString& path);

 private:
  enum class Side : std::uint8_t { first, second };

  void read(const QString& path, Side side, std::optional<std::size_t> device);
  void replay(const std::shared_ptr<const MemorySnapshot>& snapshot, Side side, std::optional<std::size_t> device);
  void documentChanged();
  /// Asks what a step of the open document allocates, and joins both snapshots with it.
  void askForStep();
  void join();
  void setBusy(const QString& text);

  DocumentController* controller_;
  PoolJob opening_, joining_;
  ShownMemory shown_, other_;
  MemoryGrouping by_ = MemoryGrouping::category;
  OpenStep step_;  ///< of the open document
  QString path_;   ///< of what is being read
  QString busyText_, notJoined_;
};

}  // namespace retrograd::views
