#include "views/memory/address_map_panel.h"

#include <QVBoxLayout>
#include <utility>

#include "views/memory/block_words.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

QString sizeText(std::uint64_t bytes) { return bytesText(static_cast<std::int64_t>(bytes)); }

/// The request that failed at an event; none where that was another event.
std::optional<MemoryRequest> failedRequest(const RecordedMemory& recorded, std::int64_t event) {
  if (event < 0 || event != recorded.failed) return std::nullopt;
  const auto found = eventAt(*recorded.snapshot, recorded.device, event);
  return found ? std::optional(MemoryRequest{found->size, found->stream}) : std::nullopt;
}

AddressPicture pictureOf(const ShownMemory& shown, std::int64_t event) {
  const auto& recorded = *shown.recorded;
  AddressPicture picture{.layout = addressLayout(recorded.history, event), .stack = shown.stack};
  picture.bands.reserve(picture.layout.pieces.size());
  for (const auto& piece : picture.layout.pieces) {
    const auto group = piece.allocation == LaidOutPiece::free ? 0 : shown.grouped->groups[piece.allocation];
    picture.bands.push_back(piece.allocation == LaidOutPiece::free ? 0 : shown.stack->bandOf()[group]);
  }
  const auto request = failedRequest(recorded, event);
  picture.largest = freeMemory(picture.layout, request, recorded.snapshot->settings).largest;
  picture.wanted = request ? request->size : 0;
  return picture;
}

}  // namespace

AddressMapPanel::AddressMapPanel(Theme* theme, QWidget* parent)
    : QWidget(parent), view_(new AddressMapView(theme, this)), line_(new ElidedLabel(this)) {
  line_->setObjectName(QStringLiteral("memory-address-words"));
  line_->setContentsMargins(6, 2, 6, 2);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(view_, 1);
  layout->addWidget(line_);
  view_->setHint(tr("This snapshot has no segments"));
  connect(view_, &AddressMapView::chosen, this, [this](int piece) {
    tell();
    if (const auto allocation = allocationOf(piece); allocation >= 0) Q_EMIT chosen(allocation);
  });
  connect(view_, &AddressMapView::activated, this, [this](int piece) {
    if (const auto allocation = allocationOf(piece); allocation >= 0) Q_EMIT activated(allocation);
  });
  tell();
}

std::int32_t AddressMapPanel::allocationOf(int piece) const {
  return piece < 0 ? LaidOutPiece::free : view_->picture().layout.pieces[piece].allocation;
}

void AddressMapPanel::clear() {
  job_.cancel();
  shown_ = {};
  view_->set({}, {});
  tell();
}

void AddressMapPanel::show(const ShownMemory& shown, std::int64_t event) {
  const auto kept = allocationOf(view_->current());
  const bool isSame = shown.read == shown_.read;
  job_.start([this, shown, event, kept, isSame](const Progress&) -> PoolJob::Deliver {
    return [this, shown, kept, isSame, picture = pictureOf(shown, event)] {
      shown_ = shown;
      view_->set(picture, [this](std::size_t piece) { return wordsOf(piece); });
      const auto next = std::exchange(next_, LaidOutPiece::free);
      if (next >= 0) view_->setCurrent(view_->pieceOf(next));
      else if (picture.wanted > 0 && picture.largest) view_->setCurrent(static_cast<int>(*picture.largest));
      else if (isSame && kept >= 0) view_->setCurrent(view_->pieceOf(kept));
      tell();
      Q_EMIT this->shown();
    };
  });
}

void AddressMapPanel::choose(std::int32_t allocation) {
  view_->setCurrent(view_->pieceOf(allocation));
  tell();
}

void AddressMapPanel::tell() {
  const int piece = view_->current();
  line_->setText(piece < 0 ? tr("Choose a block to see what it is") : wordsOf(static_cast<std::size_t>(piece)));
}

QString AddressMapPanel::wordsOf(std::size_t piece) const {
  const auto allocation = view_->picture().layout.pieces[piece].allocation;
  return allocation == LaidOutPiece::free
             ? wordsOfFree(piece)
             : blockWords(*shown_.recorded, static_cast<std::size_t>(allocation)).sentence();
}

QString AddressMapPanel::wordsOfFree(std::size_t piece) const {
  const auto& picture = view_->picture();
  const auto [before, behind] = neighboursOf(picture.layout, piece);
  const auto side = [&](const LaidOutPiece* each) {
    if (each == nullptr || each->allocation == LaidOutPiece::free) return tr("the segment's border");
    const auto words = blockWords(*shown_.recorded, static_cast<std::size_t>(each->allocation));
    return tr("%1 of %2").arg(sizeText(words.bytes), words.line);
  };
  const auto size = sizeText(picture.layout.pieces[piece].size);
  if (picture.wanted > 0 && picture.largest == piece)
    return tr("%1 free, the most that the request for %2 could have: between %3 and %4")
        .arg(size, sizeText(picture.wanted), side(before), side(behind));
  return tr("%1 free, between %2 and %3").arg(size, side(before), side(behind));
}

}  // namespace retrograd::views
