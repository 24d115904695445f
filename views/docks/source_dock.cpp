#include "views/docks/source_dock.h"

#include <QAction>
#include <QDir>
#include <QFileInfo>
#include <QHeaderView>
#include <QPainter>
#include <QScrollBar>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/trace/source.h"
#include "views/content/token_color.h"
#include "views/settings/editor.h"
#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/dock_tree.h"
#include "views/widgets/elided_label.h"
#include "views/widgets/shown_op.h"

namespace retrograd::views {
namespace {

/// Paints the line of the selected op on the colour that it has in the listings, and Python in the colours of listings.
class LineDelegate : public RowDelegate {
 public:
  LineDelegate(QTreeView* tree, const SourceLinesModel* lines, const Theme* theme)
      : RowDelegate(tree), lines_(lines), theme_(theme) {}

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    RowDelegate::paint(painter, option, index);
    if (index.column() != SourceLinesModel::code) return;
    const auto text = index.data().toString();
    const auto& colors = theme_->colors();
    const bool isChosen = option.state.testFlag(QStyle::State_Selected) &&
                          option.state.testFlag(QStyle::State_Active) && option.widget && option.widget->hasFocus();
    painter->setFont(option.font);
    int at = 0;
    double x = option.rect.left() + 3;  // where Qt begins a cell's text
    const QFontMetricsF metrics(option.font);
    const auto draw = [&](int end, const QColor& color) {
      auto part = text.mid(at, end - at);
      part.replace(QLatin1Char('\t'), QStringLiteral("    "));
      // The colours of Python are made for the background of code, not for that of the chosen row.
      painter->setPen(isChosen ? option.palette.color(QPalette::Active, QPalette::HighlightedText) : color);
      painter->drawText(
          QPointF(x, option.rect.top() + (option.rect.height() - metrics.height()) / 2 + metrics.ascent()), part);
      x += metrics.horizontalAdvance(part);
      at = end;
    };
    for (const auto& span : lines_->spansAt(index.row())) {
      draw(span.begin, colors.text);
      draw(span.begin + span.length, colorOf(colors, span.kind));
    }
    draw(static_cast<int>(text.size()), colors.text);
  }

 protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    RowDelegate::initStyleOption(option, index);
    const auto& colors = theme_->colors();
    if (index.data(SourceLinesModel::currentRole).toBool()) option->backgroundBrush = colors.selected;
    option->palette.setColor(QPalette::Text, colors.gutterText);
    if (index.column() == SourceLinesModel::code) option->text.clear();  // paint() writes it, part by part
  }

 private:
  const SourceLinesModel* lines_;
  const Theme* theme_;
};

/// Rows that come into sight scroll up and down only: the numbers of lines stay where they are.
class CodeTree : public QTreeView {
 public:
  using QTreeView::QTreeView;
  void scrollTo(const QModelIndex& index, ScrollHint hint = EnsureVisible) override {
    const int across = horizontalScrollBar()->value();
    QTreeView::scrollTo(index, hint);
    horizontalScrollBar()->setValue(across);
  }
};

QString trimmedFirstLine(const QString& text) { return text.section(QLatin1Char('\n'), 0, 0).trimmed(); }

}  // namespace

SourceDock::SourceDock(ViewContext context, QSettings* settings, const QList<QAction*>& actions, QWidget* parent)
    : Panel(context, "source", parent),
      settings_(settings),
      frames_(new FramesModel(this)),
      lines_(new SourceLinesModel(this)) {
  stack_ = new QTreeView(this);
  prepareTree(*stack_, frames_, "source-stack", tr("Source stack of the selected op, innermost first"),
              {.isFlat = true});
  auto* splitter = new QSplitter(Qt::Horizontal, this);
  splitter->addWidget(stack_);
  splitter->addWidget(makeText());
  splitter->setStretchFactor(0, 1);
  splitter->setStretchFactor(1, 3);
  splitter->setSizes({240, 720});
  splitter->setChildrenCollapsible(false);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(new ShownOp(context_, this));
  layout->addWidget(splitter, 1);
  layout->addWidget(makeButtons(actions));
  for (auto* view : {stack_, text_}) view->addActions(actions);
  setList(text_);
  connect(context_.selection, &Selection::changed, this, &SourceDock::invalidate);
  connect(stack_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &SourceDock::read);
}

QWidget* SourceDock::makeText() {
  auto* side = new QWidget(this);
  path_ = named(new QLabel(side), "source-path", tr("File"));
  path_->setTextFormat(Qt::PlainText);
  path_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  path_->setContentsMargins(8, 3, 8, 3);
  path_->setMinimumWidth(1);
  notice_ = named(new WrappedLabel(side), "source-notice", tr("What is to be known of the source"));
  notice_->setMargin(8);
  notice_->setAlignment(Qt::AlignLeft | Qt::AlignTop);  // the first words stay where not all fit
  text_ = new CodeTree(side);
  prepareTree(*text_, lines_, "source-text", tr("Source"), {.isFlat = true}, SourceLinesModel::code);
  text_->setItemDelegate(new LineDelegate(text_, lines_, context_.theme));
  text_->setFont(Theme::codeFont());
  text_->header()->setStretchLastSection(false);
  text_->header()->setFont(font());
  text_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  auto* layout = withMargins(new QVBoxLayout(side), {}, 0);
  layout->addWidget(path_);
  layout->addWidget(notice_);
  layout->addWidget(text_, 1);
  layout->addItem(new QSpacerItem(0, 0, QSizePolicy::Minimum,
                                  QSizePolicy::Expanding));  // where no text shows, the words are on top
  return side;
}

QWidget* SourceDock::makeButtons(const QList<QAction*>& actions) {
  auto* row = new QWidget(this);
  auto* layout = withMargins(new QHBoxLayout(row), {6, 4, 6, 4});
  for (auto* action : actions) layout->addWidget(commandButton(action, row));
  layout->addStretch(1);
  return row;
}

void SourceDock::forget() {
  job_.cancel();
  launches_ = false;
  stackShown_.clear();
  found_.clear();
  path_->clear();
  frames_->set({});
  showProblem({});
}

void SourceDock::leave() {
  if (!job_.busy()) return;
  job_.cancel();
  invalidate();
}

QString SourceDock::file() const {
  const auto row = stack_->currentIndex();
  return row.isValid() ? toQt(frames_->frame(row.row()).file) : QString();
}

void SourceDock::chooseFrame(int frame) {
  wantedFrame_ = frame;
  stack_->setFocus();
  if (inSight()) refresh();
}

void SourceDock::refresh() {
  const auto document = this->document();
  const auto op = document ? context_.selection->op() : BoundSymbolId();
  const auto stack = document ? sourceOf(*document->analysis->document, op) : SourceStack();
  const auto wanted = std::exchange(wantedFrame_, -1);
  const auto chooseWanted = [&] {
    const auto row = frames_->index(wanted, 0);
    if (row.isValid()) stack_->setCurrentIndex(row);
    return row.isValid();
  };
  if (!stack.empty() && stack == stackShown_) {
    if (!chooseWanted()) read();
    return;
  }
  stackShown_ = stack;
  frames_->set(stack);
  stack_->resizeColumnToContents(FramesModel::function);
  if (chooseWanted()) return;
  if (frames_->shownRow() >= 0) return stack_->setCurrentIndex(frames_->index(frames_->shownRow(), 0));
  job_.cancel();
  launches_ = false;
  found_.clear();
  path_->clear();
  showProblem(!op ? unlessClosed(tr("Select an op to see the Python source that it comes from"))
              : document->analysis->document->sourceCount()
                  ? tr("This op has no source, nor has the op that it comes from")
                  : tr("The model has no source lines"));
}

void SourceDock::read() {
  const auto document = this->document();
  const auto row = stack_->currentIndex();
  if (!inSight() || !document || !row.isValid()) return;
  const auto name = frames_->frame(row.row()).file;
  const auto tried =
      SourcePaths::load(*settings_).candidates(toQt(name), QFileInfo(toQt(document->request.path)).absolutePath());
  job_.start([this, document, name, tried](const Progress& progress) -> PoolJob::Deliver {
    auto answer = std::make_shared<Answer>();
    answer->tried = tried;
    answer->source = readSource(tried);
    if (answer->source.problem.isEmpty())
      answer->ops = opsByLine(document->trace(TraceKind::computation), name, progress);
    return [this, answer] { show(*answer); };
  });
}

void SourceDock::show(const Answer& answer) {
  const auto row = stack_->currentIndex();
  if (!row.isValid()) return;
  const auto& frame = frames_->frame(row.row());
  const auto& source = answer.source;
  found_ = source.path;
  // Next to the model its name says it all.
  const auto& document = context_.controller->document();
  const auto folder = document ? QFileInfo(toQt(document->request.path)).absoluteDir() : QDir();
  const auto near = folder.relativeFilePath(found_);
  path_->setText(found_.isEmpty() ? toQt(frame.file) : near.startsWith(QStringLiteral("..")) ? found_ : near);
  path_->setToolTip(tr("%1\nThe model names it %2").arg(found_, toQt(frame.file)));
  if (std::exchange(launches_, false)) launch();
  if (found_.isEmpty()) {
    const auto places =
        answer.tried.isEmpty() ? QString() : tr("Looked for:\n%1").arg(answer.tried.join(QLatin1Char('\n')));
    return showProblem(tr("%1 is not there. Use Find File to locate it and the files next to it.")
                           .arg(QFileInfo(toQt(frame.file)).fileName()),
                       places);
  }
  if (!source.problem.isEmpty()) return showProblem(source.problem);
  lines_->set(source.lines, answer.ops);
  lines_->setCurrent(frame.line);
  const auto expected = trimmedFirstLine(toQt(frame.code));
  const bool same =
      expected.isEmpty() || (lines_->currentRow() >= 0 && source.lines[lines_->currentRow()].trimmed() == expected);
  notice_->setText(tr("Line %1 is not what it was when the model was saved: %2").arg(frame.line).arg(expected));
  notice_->setVisible(!same);
  text_->show();
  const int character = text_->fontMetrics().horizontalAdvance(QLatin1Char('m'));
  constexpr int widest = 1000;  // characters that one can scroll to
  text_->header()->resizeSection(SourceLinesModel::number,
                                 character * (3 + static_cast<int>(QString::number(lines_->rowCount()).size())) + 10);
  text_->header()->resizeSection(SourceLinesModel::ops, character * 5);
  text_->header()->resizeSection(
      SourceLinesModel::code, std::max(character * std::min(lines_->width() + 2, widest), text_->viewport()->width()));
  if (lines_->currentRow() < 0) return;
  text_->setCurrentIndex(lines_->index(lines_->currentRow(), SourceLinesModel::code));
  text_->scrollTo(lines_->index(lines_->currentRow(), SourceLinesModel::number), QAbstractItemView::PositionAtCenter);
}

void SourceDock::showProblem(const QString& problem, const QString& more) {
  lines_->set({}, {});
  text_->hide();
  notice_->setText(more.isEmpty() ? problem : problem + QStringLiteral("\n\n") + more);
  notice_->setToolTip(more);
  notice_->show();
}

void SourceDock::useFile(const QString& chosen) {
  auto paths = SourcePaths::load(*settings_);
  paths.add(mappingFor(file(), chosen));
  paths.save(*settings_);
  read();
}

void SourceDock::openInEditor() {
  launches_ = true;
  if (!job_.busy()) launch();
}

void SourceDock::launch() {
  launches_ = false;
  const auto row = stack_->currentIndex();
  if (!row.isValid() || found_.isEmpty()) return Q_EMIT failed(notice_->text().section(QLatin1Char('\n'), 0, 0));
  // The line that one is at, where that is in view; else the frame's.
  const int line = text_->isVisible() && text_->currentIndex().isValid() ? text_->currentIndex().row() + 1
                                                                         : frames_->frame(row.row()).line;
  if (const auto problem = retrograd::views::openInEditor(editorCommand(*settings_), found_, line); !problem.isEmpty())
    Q_EMIT failed(problem);
}

void SourceDock::goToOpOf(int row) {
  const auto& document = context_.controller->document();
  const auto& ops = lines_->opsAt(row);
  if (!document || ops.empty()) return;
  const auto selected = context_.selection->op();
  const auto origin = selected ? OriginLinks::origin(*document->analysis->document, selected) : BoundSymbolId();
  const auto at = std::ranges::find(ops, origin);
  Q_EMIT placeChosen(at == ops.end() || at + 1 == ops.end() ? ops.front() : at[1]);
  text_->setFocus();  // the next Enter goes on along the ops of this line
}

}  // namespace retrograd::views
