#pragma once
#include <QFrame>
#include <vector>

#include "views/session/view_context.h"
#include "views/session/why_report.h"
#include "views/widgets/sentence_button.h"

namespace retrograd::views {

class WrappedLabel;

/// What matters of a value in one column: a sentence, its whole line of Python, and links to who makes and reads it, to
/// its forward op and its gradient.
class WhyCard : public QFrame {
  Q_OBJECT

 public:
  explicit WhyCard(ViewContext context, QWidget* parent = nullptr);
  /// Hidden where nothing is known.
  void show(const std::shared_ptr<const OpenDocument>& document, const WhyReport& report);
  void clear();

 Q_SIGNALS:
  void jumpRequested(retrograd::BoundSymbolId op);
  /// The line of Python is wanted.
  void sourceWanted();

 private:
  struct Link {
    QString text;
    BoundSymbolId op;
  };
  std::vector<Link> linksOf(const OpenDocument& document, const WhyReport& report) const;
  void setLinks(std::vector<Link> links);

  const ViewContext context_;
  WrappedLabel* sentence_;
  SentenceButton* line_;
  std::vector<SentenceButton*> buttons_;
  std::vector<Link> links_;
};

}  // namespace retrograd::views
