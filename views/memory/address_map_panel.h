#pragma once
#include <QWidget>

#include "views/engine/pool_job.h"
#include "views/memory/address_map_view.h"
#include "views/memory/open_memory.h"

class QLabel;

namespace retrograd::views {

/// The address map of a moment, and a line with what there is to say of the chosen piece. At a request that failed it
/// is the most that the request could have had.
class AddressMapPanel : public QWidget {
  Q_OBJECT

 public:
  explicit AddressMapPanel(Theme* theme, QWidget* parent = nullptr);

  /// Lays the moment after an event out, on the pool.
  void show(const ShownMemory& shown, std::int64_t event);
  void clear();
  /// Nobody looks.
  void cancel() { job_.cancel(); }
  bool busy() const { return job_.busy(); }
  /// Chooses the piece of an allocation, if it is there.
  void choose(std::int32_t allocation);
  /// The same in the moment that is shown next.
  void chooseNext(std::int32_t allocation) { next_ = allocation; }
  void setMarked(std::set<std::int32_t> allocations) { view_->setMarked(std::move(allocations)); }
  AddressMapView& view() { return *view_; }

 Q_SIGNALS:
  /// A person chose the block of an allocation of the history.
  void chosen(std::int32_t allocation);
  void activated(std::int32_t allocation);
  /// Another moment is there.
  void shown();

 private:
  void tell();
  QString wordsOf(std::size_t piece) const;
  QString wordsOfFree(std::size_t piece) const;
  std::int32_t allocationOf(int piece) const;

  AddressMapView* view_;
  QLabel* line_;
  PoolJob job_;
  ShownMemory shown_;
  std::int32_t next_ = LaidOutPiece::free;
};

}  // namespace retrograd::views
