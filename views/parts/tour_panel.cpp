#include "views/parts/tour_panel.h"

#include <QFileInfo>
#include <QVBoxLayout>

#include "views/docks/why_dock.h"
#include "views/models/goto_model.h"
#include "views/settings/keymap.h"
#include "views/settings/samples.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/window/window_part.h"

namespace retrograd::views {
namespace {

const WindowPart tourPanelPart(PartOrder::tour, [](MainWindow& window) {
  auto* panel = new TourPanel(window);
  auto* column = qobject_cast<QVBoxLayout*>(window.centralWidget()->layout());
  column->insertWidget(1, panel);  // under the messages, over start page or listings
  auto& actions = window.actions();
  auto* start = actions.add(
      "tour", tr("Take the &Tour"),
      tr("A few steps through a small sample: from a backward op to its origin and back, over the border, why saved"),
      {});
  actions.allowUnless(start, [] {
    return samples().isEmpty() ? tr("The samples that come with the program are not there") : QString();
  });
  window.menu("help")->insertAction(actions.palette, start);
  QObject::connect(start, &QAction::triggered, panel, &TourPanel::startOnSample);
  if (auto* page = window.findChild<StartPage*>())
    QObject::connect(page, &StartPage::tourWanted, start, &QAction::trigger);
});

bool isSample(const OpenDocument* document) {
  const auto all = samples();
  return document && !all.isEmpty() && QFileInfo(toQt(document->request.path)) == QFileInfo(all.first().path);
}

}  // namespace

TourPanel::TourPanel(MainWindow& window) : QFrame(window.centralWidget()), window_(window), tour_(window.context()) {
  named(this, "tour", tr("Tour"));
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::AlternateBase);
  number_ = new QLabel(this);
  title_ = named(new QLabel(this), "tour-title");
  auto font = title_->font();
  font.setBold(true);
  title_->setFont(font);
  text_ = named(new QLabel(this), "tour-text");
  text_->setWordWrap(true);
  for (auto* label : {title_, text_}) label->setTextFormat(Qt::PlainText);
  skip_ = named(new QPushButton(tr("Skip"), this), "tour-skip", tr("Skip this step of the tour"));
  again_ = new QPushButton(tr("Once More"), this);
  again_->setAccessibleName(tr("Take the tour once more"));
  end_ = named(new QPushButton(tr("End the Tour"), this), "tour-end");
  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(title_);
  words->addWidget(text_);
  auto* layout = withMargins(new QHBoxLayout(this), {12, 8, 10, 8}, 12);
  layout->addWidget(number_, 0, Qt::AlignTop);
  layout->addLayout(words, 1);
  for (auto* button : {skip_, again_, end_}) layout->addWidget(button, 0, Qt::AlignVCenter);
  connect(skip_, &QPushButton::clicked, &tour_, &Tour::skip);
  connect(again_, &QPushButton::clicked, &tour_, &Tour::start);
  connect(end_, &QPushButton::clicked, &tour_, &Tour::end);
  connect(&tour_, &Tour::changed, this, &TourPanel::follow);
  connect(window.context().controller, &DocumentController::documentChanged, this, [this] {
    if (std::exchange(waiting_, false) && isSample(window_.context().controller->document().get())) tour_.start();
  });
  connect(window.context().controller, &DocumentController::openFailed, this, [this] { waiting_ = false; });
  connect(&Keymap::of(window.shared().settings), &Keymap::changed, this, &TourPanel::follow,
          Qt::QueuedConnection);  // when the actions have their keys
  hide();
}

void TourPanel::startOnSample() {
  const auto all = samples();
  if (all.isEmpty()) return;
  const auto* document = window_.context().controller->document().get();
  if (isSample(document)) return tour_.start();
  if (document) {  // what is open stays
    auto* other = new MainWindow(window_.shared());
    other->show();
    return other->findChild<TourPanel*>()->startOnSample();
  }
  waiting_ = true;
  window_.openFile(all.first().path);
}

void TourPanel::prepare() {
  auto& listings = window_.listings();
  const auto show = [&](TraceKind kind) {
    if (!listings.isShown(kind)) listings.toggleAction(kind)->setChecked(true);
  };
  switch (tour_.step()) {
    case Tour::Step::chooseBackward:
    case Tour::Step::toOrigin:
    case Tour::Step::andBack:
      show(TraceKind::forward);
      show(TraceKind::backward);
      break;
    case Tour::Step::whySaved:
      show(TraceKind::forward);
      window_.showPanel(window_.panel<WhyDock>());
      break;
    default: break;
  }
}

void TourPanel::follow() {
  setVisible(tour_.active());
  if (!tour_.active()) return;
  const bool finished = tour_.finished();
  if (!finished) prepare();
  number_->setText(finished ? tr("Done") : tr("%1 of %2").arg(static_cast<int>(tour_.step()) + 1).arg(Tour::count));
  title_->setText(finished ? tr("That was the tour") : titleOf(tour_.step()));
  text_->setText(finished ? tr("Open a model of your own with %1. %2 lists all keys, %3 all commands.")
                                .arg(keyOf(window_.actions().open), keyOf(window_.actions().keys),
                                     keyOf(window_.actions().palette))
                          : textOf(tour_.step()));
  skip_->setVisible(!finished);
  again_->setVisible(finished);
  end_->setText(finished ? tr("Close") : tr("End the Tour"));
  setAccessibleDescription(title_->text() + QStringLiteral(". ") + text_->text());
}

QString TourPanel::keyOf(const QAction* action) const {
  return action->shortcut().isEmpty() ? tr("the command '%1'").arg(commandText(*action))
                                      : action->shortcut().toString(QKeySequence::NativeText);
}

QString TourPanel::titleOf(Tour::Step stop) const {
  switch (stop) {
    case Tour::Step::chooseBackward: return tr("Click an op in the Backward listing");
    case Tour::Step::toOrigin: return tr("Press %1 to go to its origin").arg(keyOf(window_.actions().origin));
    case Tour::Step::andBack: return tr("Press %1 again to come back").arg(keyOf(window_.actions().origin));
    case Tour::Step::crossBorder:
      return tr("Press %1 until the arrow is in the backward").arg(keyOf(window_.actions().stepOver));
    case Tour::Step::whySaved: return tr("Ask why a value is saved: choose its line in the Forward listing");
    case Tour::Step::stepBack: return tr("Press %1 to step back").arg(keyOf(window_.actions().stepOverBack));
  }
  return {};
}

QString TourPanel::textOf(Tour::Step stop) const {
  switch (stop) {
    case Tour::Step::chooseBackward:
      return tr(
          "Any line that computes a gradient will do, one with mm for example. The other listings mark what belongs to "
          "it.");
    case Tour::Step::toOrigin: return tr("Each backward op knows the forward op that it is the derivative of.");
    case Tour::Step::andBack:
      return tr("The same key leads from a forward op to its backward, and back to where you came from.");
    case Tour::Step::crossBorder:
      return tr(
          "Each press runs what comes of one operation; the arrow in the margin is the op that runs next. After the "
          "last of the forward comes the first of the "
          "backward.");
    case Tour::Step::whySaved:
      return tr(
          "Lines with a saved mark in the margin make a value that the backward needs. Choose one with the mouse or "
          "the arrow keys; the Why panel lists the ops that need it and what keeping it costs.");
    case Tour::Step::stepBack: return tr("Every step has its reverse, across the border too.");
  }
  return {};
}

}  // namespace retrograd::views
