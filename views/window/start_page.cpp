#include "views/window/start_page.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QFileInfo>

#include "views/theme/theme.h"
#include "views/widgets/controls.h"

namespace retrograd::views {
namespace {

constexpr int columnWidth = 720, cardWidth = 350;

QLabel* heading(const QString& text, qreal scale, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  auto font = label->font();
  font.setPointSizeF(font.pointSizeF() * scale);
  font.setWeight(scale > 1.5 ? QFont::Normal : QFont::DemiBold);
  label->setFont(font);
  return label;
}

/// "Ctrl+O  Open    ...": the keys that lead on from here, as they are now.
QLabel* keysOf(const QList<QAction*>& actions, QWidget* parent) {
  auto* label = named(new QLabel(parent), "start-keys");
  label->setTextFormat(Qt::PlainText);
  label->setForegroundRole(QPalette::PlaceholderText);
  const auto tell = [label, actions] {
    QStringList parts;
    for (const auto* action : actions) {
      if (action->shortcut().isEmpty()) continue;
      parts << QStringLiteral("%1  %2").arg(action->shortcut().toString(QKeySequence::NativeText),
                                            action->text().remove(QLatin1Char('&')).remove(QStringLiteral("...")));
    }
    label->setText(parts.join(QStringLiteral("     ")));
  };
  tell();
  for (auto* action : actions) QObject::connect(action, &QAction::changed, label, tell);
  return label;
}

}  // namespace

SampleCard::SampleCard(const Sample& sample, QWidget* parent) : QPushButton(parent), column_(new QVBoxLayout(this)) {
  setObjectName(QStringLiteral("sample-") + QFileInfo(sample.path).completeBaseName());
  setAccessibleName(tr("Open the sample %1").arg(sample.title));
  setAccessibleDescription(sample.text);
  setToolTip(sample.path);
  setAutoDefault(true);  // Enter opens it, as Space does
  auto* title = heading(sample.title, 1.1, this);
  auto* text = textLabel(sample.text, this);
  column_->setContentsMargins(14, 12, 14, 12);
  column_->setSpacing(4);
  for (auto* label : {title, text}) {
    label->setTextFormat(Qt::PlainText);
    label->setAttribute(Qt::WA_TransparentForMouseEvents);
    column_->addWidget(label);
  }
  column_->addStretch(1);
  setFixedWidth(cardWidth);
}

QSize SampleCard::sizeHint() const { return {cardWidth, column_->totalHeightForWidth(cardWidth)}; }

StartPage::StartPage(RecentFiles* recent, QAction* open, const QList<QAction*>& hints, QWidget* parent)
    : QScrollArea(parent), recent_(recent), page_(new QWidget) {
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setFocusPolicy(Qt::NoFocus);
  setAccessibleName(tr("Start page"));
  auto* text =
      new QLabel(tr("Step through it op by op, find where a NaN begins, see what memory it keeps. Open or drop a "
                    "model of torch.export (.pt2) or TorchScript (.pt), a log of torch.compile or a repro "
                    "script; or start with a sample."),
                 page_);
  text->setObjectName(QStringLiteral("start-what"));
  text->setWordWrap(true);
  auto* content = new QWidget(page_);
  content->setFixedWidth(columnWidth);
  auto* column = withMargins(new QVBoxLayout(content), {0, 24, 0, 24}, 14);
  column->addStretch(2);
  column->addWidget(heading(tr("Debug a backward"), 1.7, page_));
  column->addWidget(text);
  addFirstButtons(column, open);
  addSamples(column);
  column->addSpacing(10);
  recentTitle_ = heading(tr("Recent"), 1.1, page_);
  column->addWidget(recentTitle_);
  list_ = new QVBoxLayout;
  list_->setSpacing(2);
  column->addLayout(list_);
  addRecording(column);
  column->addSpacing(10);
  column->addWidget(keysOf(hints, page_));
  column->addStretch(3);
  auto* layout = new QHBoxLayout(page_);
  layout->addStretch(1);
  layout->addWidget(content);
  layout->addStretch(1);
  setWidget(page_);
}

QPushButton* StartPage::button(const QString& text, const QString& name) {
  auto* made = named(new QPushButton(text, page_), name);
  made->setAutoDefault(true);  // Enter presses it, as Space does
  return made;
}

/// The tour comes first: it is for who is here for the first time.
void StartPage::addFirstButtons(QVBoxLayout* column, QAction* open) {
  auto* row = new QHBoxLayout;
  if (!samples().isEmpty()) {
    auto* tour = button(tr("Take the Tour"), QStringLiteral("start-tour"));
    tour->setToolTip(tr("A few steps through the first sample, which watch what you do; it can be left at any time"));
    connect(tour, &QPushButton::clicked, this, &StartPage::tourWanted);
    row->addWidget(tour);
  }
  auto* file = button(tr("Open a File..."), QStringLiteral("start-open"));
  const auto tellKey = [file, open] { file->setToolTip(open->toolTip()); };
  tellKey();
  connect(open, &QAction::changed, file, tellKey);
  connect(file, &QPushButton::clicked, open, &QAction::trigger);
  row->addWidget(file);
  row->addStretch(1);
  column->addLayout(row);
  beforeRecent_ = file;
}

void StartPage::addSamples(QVBoxLayout* column) {
  const auto all = samples();
  if (all.isEmpty()) return;  // a program without the files next to it
  column->addSpacing(10);
  column->addWidget(heading(tr("Samples"), 1.1, page_));
  auto* cards = new QGridLayout;
  cards->setSpacing(columnWidth - 2 * cardWidth);
  int count = 0;
  for (const auto& sample : all) {
    auto* card = new SampleCard(sample, page_);
    connect(card, &QPushButton::clicked, this, [this, sample] {
      Q_EMIT sampleChosen(sample);
      Q_EMIT chosen(sample.path);
    });
    cards->addWidget(card, count / 2, count % 2, Qt::AlignLeft);
    beforeRecent_ = card;
    ++count;
  }
  column->addLayout(cards);
}

void StartPage::addRecording(QVBoxLayout* column) {
  addLines(
      column, tr("Record a step of your training"),
      tr("These lines around your loop write the first step with a NaN or Inf into a folder. Open that folder here: "
         "File > Open Folder."),
      QStringLiteral("import retrograd\n"
                     "with retrograd.catch(model, optimizer):\n"
                     "    train()"),
      {QStringLiteral("recording"), tr("Lines of Python that record a step")});
  addLines(
      column, tr("From another machine"),
      tr("A folder holds the whole step: graph, weights, batch and your lines of Python. So train where the GPU is, "
         "and look at it here. In a terminal of this machine:"),
      QStringLiteral("rsync -a machine:training/retrograd-catch/step7 .\nretrograd step7"),
      {QStringLiteral("remote"), tr("Commands that open a folder of another machine")});
}

void StartPage::addLines(QVBoxLayout* column, const QString& title, const QString& says, const QString& lines,
                         const LinesNames& names) {
  column->addSpacing(10);
  column->addWidget(heading(title, 1.1, page_));
  column->addWidget(textLabel(says, page_));
  auto* code = named(new QLabel(lines, page_), QStringLiteral("start-") + names.object, names.spoken);
  code->setTextFormat(Qt::PlainText);
  code->setFont(Theme::codeFont());
  code->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  code->setContentsMargins(14, 6, 14, 6);
  auto* copy = button(tr("Copy the Lines"), QStringLiteral("start-copy-") + names.object);
  copy->setAccessibleDescription(names.spoken);
  connect(copy, &QPushButton::clicked, this,
          [lines] { QApplication::clipboard()->setText(lines + QLatin1Char('\n')); });
  auto* row = new QHBoxLayout;
  row->addWidget(code);
  row->addStretch(1);
  row->addWidget(copy, 0, Qt::AlignTop);
  column->addLayout(row);
}

void StartPage::showEvent(QShowEvent* event) {
  fill();
  QScrollArea::showEvent(event);
}

void StartPage::fill() {
  while (auto* item = list_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  const auto paths = recent_->paths().mid(0, 6);
  recentTitle_->setVisible(!paths.isEmpty());
  QWidget* before = beforeRecent_;
  for (const auto& path : paths) {
    const QFileInfo info(path);
    auto* entry = button(QStringLiteral("%1/%2")
                             .arg(info.dir().dirName(), info.fileName())
                             .replace(QLatin1Char('&'), QStringLiteral("&&")),
                         QStringLiteral("start-recent"));
    entry->setFlat(true);
    entry->setToolTip(info.exists() ? path : tr("%1: no longer there").arg(path));
    entry->setEnabled(info.exists());
    entry->setAccessibleName(tr("Open %1").arg(path));
    connect(entry, &QPushButton::clicked, this, [this, path] { Q_EMIT chosen(path); });
    list_->addWidget(entry, 0, Qt::AlignLeft);
    setTabOrder(before, entry);  // as they are on the page, not after all that the window has had by now
    before = entry;
  }
}

}  // namespace retrograd::views
