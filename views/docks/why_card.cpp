#include "views/docks/why_card.h"

#include <QVBoxLayout>

#include "core/trace/source.h"
#include "views/models/why_model.h"
#include "views/text/line_text.h"
#include "views/theme/tokens.h"
#include "views/widgets/controls.h"
#include "views/widgets/elided_label.h"

namespace retrograd::views {
namespace {

constexpr std::size_t mostReaders = 4, mostLinks = 8;

}  // namespace

WhyCard::WhyCard(ViewContext context, QWidget* parent)
    : QFrame(parent), context_(context), sentence_(new WrappedLabel(this)), line_(new SentenceButton(this)) {
  named(this, "why-card");
  named(sentence_, "why-sentence", tr("What is known of the value"));
  named(line_, "why-line", tr("Its line of Python"));
  line_->setWraps();
  auto bold = font();
  bold.setBold(true);
  sentence_->setFont(bold);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  line_->setFont(Theme::codeFont());
  auto* layout =
      withMargins(new QVBoxLayout(this), {tokens::gap, tokens::gap, tokens::gap, tokens::tight}, tokens::hair);
  layout->addWidget(sentence_);
  layout->addWidget(line_);
  for (std::size_t i = 0; i < mostLinks; ++i) {
    auto* button = new SentenceButton(this);
    button->setAccessibleName(tr("An op that has to do with the value"));
    button->setWraps();
    connect(button, &QAbstractButton::clicked, this, [this, i] {
      if (i < links_.size()) Q_EMIT jumpRequested(links_[i].op);
    });
    layout->addWidget(button);
    buttons_.push_back(button);
  }
  connect(line_, &QAbstractButton::clicked, this, &WhyCard::sourceWanted);
  hide();
}

void WhyCard::clear() {
  setLinks({});
  hide();
}

void WhyCard::show(const std::shared_ptr<const OpenDocument>& document, const WhyReport& report) {
  if (!document || !report.op) return clear();
  const auto line = pythonLine(*document->analysis->document, report.op);
  const auto sentence = report.values.empty() ? tr("The selected op saves nothing, and all it makes has a gradient")
                                              : WhyModel::sentenceOf(*document, report.values.front(), context_.notes);
  sentence_->setText(sentence);
  sentence_->setAccessibleName(sentence);  // what is read out: the name, where a label has one
  line_->setSentence(toQt(line), true);
  line_->setVisible(!line.empty());
  setLinks(linksOf(*document, report));
  setVisible(true);
}

std::vector<WhyCard::Link> WhyCard::linksOf(const OpenDocument& document, const WhyReport& report) const {
  std::vector<Link> links;
  if (report.values.empty()) return links;
  const auto& tables = *document.analysis->document;
  const auto add = [&](const QString& label, BoundSymbolId op) {
    if (op && op != report.op && links.size() < mostLinks)
      links.push_back({label.arg(numberedCallOf(tables, op, context_.notes)), op});
  };
  const auto& value = report.values.front();
  add(tr("Made by %1"), value.saved.maker ? value.saved.maker : value.backward.maker);
  for (std::size_t i = 0; i < std::min(value.saved.readers.size(), mostReaders); ++i)
    add(tr("Read by %1"), value.saved.readers[i].op);
  add(tr("Forward op: %1"), value.backward.forward);
  add(tr("Recomputed by %1"), value.recomputedBy);
  if (value.asksGradient) add(tr("Its gradient: %1"), value.gradientOp);
  return links;
}

void WhyCard::setLinks(std::vector<Link> links) {
  links_ = std::move(links);
  for (std::size_t i = 0; i < buttons_.size(); ++i) {
    if (i < links_.size()) buttons_[i]->setSentence(links_[i].text, true);
    buttons_[i]->setVisible(i < links_.size());
  }
}

}  // namespace retrograd::views
