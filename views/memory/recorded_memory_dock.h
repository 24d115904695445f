#pragma once
#include <QComboBox>
#include <QLabel>
#include <QSplitter>
#include <QStandardItemModel>
#include <QTabWidget>
#include <QTreeView>

#include "core/base/enum_array.h"
#include "core/questions/memory/memory_groups.h"
#include "views/docks/panel.h"
#include "views/memory/address_map_panel.h"
#include "views/memory/block_words.h"
#include "views/memory/memory_history_view.h"

namespace retrograd::views {

/// What PyTorch's allocator recorded of a job, next to what the open model predicts: the history as a stack of
/// categories, lines, modules or holders; of the chosen moment its groups, its blocks and where they are; findings.
/// With a second snapshot, what that holds more and less. It works without an open file, too.
class RecordedMemoryDock : public Panel {
  Q_OBJECT

 public:
  struct Actions {
    QAction *open = nullptr, *compare = nullptr, *close = nullptr;
  };
  RecordedMemoryDock(ViewContext context, OpenMemory* memory, const Actions& actions, QWidget* parent = nullptr);

  QString caption() const { return caption_->text(); }
  const OpenMemory& memory() const { return *memory_; }
  bool busy() const override {
    return Panel::busy() || memory_->busy() || view_->busy() || momentJob_.busy() || blocksJob_.busy() ||
           addresses_->busy();
  }
  /// In front, with room for its chart and lists.
  Q_INVOKABLE void open(const QString& path);
  Q_INVOKABLE void compareWith(const QString& path) { memory_->compareWith(path); }
  /// Chooses the peak, or the request that failed with what it could have had.
  void goToPeak();
  void goToFailed();
  /// Chooses a block that the selected op made, at the event that made it: in the step with the peak, if it is there.
  void goToBlock();
  /// Why there is none; empty where there is one.
  QString whyNoBlock() const {
    return blockOfSelection() >= 0 ? QString() : tr("No recorded block is known to be of the selected op");
  }

 Q_SIGNALS:
  /// A snapshot is opened: it wants to be seen.
  void roomWanted();

 protected:
  void refresh() override;
  void leave() override;
  QString emptyText() const override;
  /// Of a finding: its line among the groups.
  void activate(const QModelIndex& row) override;

 private:
  /// What was held after an event.
  struct Moment {
    std::int64_t event = HeldAllocation::outside;
    std::uint64_t bytes = 0;
    std::vector<MemoryGroup> groups;
    std::vector<MemoryPair> pairs;  ///< with a second snapshot: the groups of both at their peaks
    EnumArray<JoinLevel, std::uint64_t, joinLevelCount> levels{};
  };
  struct Block {
    std::int32_t allocation = -1;
    BlockWords words;
  };

  QWidget* makeControls(const Actions& actions);
  QWidget* makeLists();
  /// The tabs get the room of the chart and the groups, or give it back.
  void enlargeTabs(bool on);
  void showGroupings();
  void showDevices();
  void showFindings();
  void tell();
  void askForMoment();
  void showMoment(const Moment& moment);
  QStandardItem* groupCell(const std::string& name) const;
  void showPairs(const std::vector<MemoryPair>& pairs);
  void askForBlocks();
  void showBlocks(const std::vector<Block>& blocks, std::size_t all);
  /// Underlines what the selected op made.
  void markBlocks();
  std::int32_t blockOfSelection() const;
  BoundSymbolId selectedMaker() const;
  /// The op of the open document that made an allocation.
  BoundSymbolId makerOf(std::int32_t allocation) const;
  /// Chooses the row of a block, where it is listed.
  void chooseBlock(std::int32_t allocation);
  QString chosenGroup() const;
  /// Chooses the group that is wanted, if it is among those that are shown.
  void chooseGroup();
  QString momentText() const;
  QString predictionText() const;

  OpenMemory* memory_;
  MemoryHistoryView* view_;
  QComboBox *by_, *device_;
  QLabel *caption_, *prediction_;
  QSplitter* lists_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  QStandardItemModel *groups_, *blocks_, *findings_;
  AddressMapPanel* addresses_ = nullptr;
  QTreeView *groupsTree_, *blocksTree_, *findingsTree_;
  class NamesFirst* groupColumns_;
  PoolJob momentJob_, blocksJob_;
  Moment moment_;
  QString wanted_;                                 ///< the group to choose once the groups are there
  std::shared_ptr<const RecordedMemory> shownOf_;  ///< that the moment was chosen of
};

}  // namespace retrograd::views
