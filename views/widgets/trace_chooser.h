#pragma once
#include <QComboBox>
#include <QWidget>
#include <vector>

#include "core/trace/trace.h"
#include "views/session/document_controller.h"

namespace retrograd::views {

/// Where a trace to be compared comes from.
struct TraceSource {
  enum class Kind : std::uint8_t {
    open,          ///< the document as it is open
    pass,          ///< its joint as the pass `detail` left it
    fewestBytes,   ///< were as few bytes saved as possible
    recomputeAll,  ///< were everything recomputed that can be
    tried,         ///< what another view has derived
    file           ///< another file, `detail`
  };
  Kind kind = Kind::open;
  QString detail;
  bool operator==(const TraceSource&) const = default;
};

/// Chooses one side of a comparison: where the trace comes from, and which of the four it is.
class TraceChooser : public QWidget {
  Q_OBJECT

 public:
  TraceChooser(const QString& side, QWidget* parent = nullptr);

  /// Offers what there is to choose of a document; what was chosen stays where it is still offered.
  void follow(const OpenDocument* document, const QString& tried);
  TraceSource source() const { return sources_.at(std::max(0, source_->currentIndex())); }
  TraceKind kind() const { return static_cast<TraceKind>(kind_->currentData().toInt()); }
  QString title() const { return tr("%1: %2").arg(source_->currentText(), kind_->currentText()); }
  void choose(const TraceSource& source, TraceKind kind);

 Q_SIGNALS:
  void chosen();

 private:
  void add(const QString& text, const TraceSource& source, const QString& tip);
  void sourceActivated(int row);
  void updateKind();

  QComboBox* source_;
  QComboBox* kind_;
  std::vector<TraceSource> sources_;  ///< by row
  int before_ = 0;                    ///< row chosen before a file was asked for
  bool derived_ = false;
  TraceKind wanted_ = TraceKind::joint;  ///< what was chosen, where the source has it
};

}  // namespace retrograd::views
