#include "views/jobs/job_graphs_window.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QMenu>
#include <QPlainTextDocumentLayout>
#include <QTextBlock>
#include <QVBoxLayout>

#include "views/text/format.h"
#include "views/widgets/controls.h"
#include "views/widgets/window_size.h"

namespace retrograd::views {
JobGraphsWindow::JobGraphsWindow(Theme* theme, std::shared_ptr<const jobs::JobLog> log, const jobs::Attempt& attempt,
                                 const QString& title, QWidget* parent)
    : QWidget(parent, Qt::Window), theme_(theme), log_(std::move(log)), title_(title), tabs_(new QTabWidget(this)) {
  setObjectName(QStringLiteral("job-graphs"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("%1 - The Job's Own Graphs").arg(title));
  named(tabs_, "job-texts", tr("Graphs"));
  tabs_->setDocumentMode(true);
  for (const auto& graph : attempt.graphs) addPage(graph);
  auto* layout = withMargins(new QVBoxLayout(this), {}, 0);
  layout->addWidget(tabs_, 1);
  layout->addWidget(makeFoot());
  resizeWithinScreen(*this, {1200, 860});
  connect(tabs_, &QTabWidget::currentChanged, this, [this](int page) {
    if (page >= 0 && isVisible()) read(static_cast<std::size_t>(page));
    describe();
  });
  connect(theme_, &Theme::changed, this, [this] {  // colours are in the documents
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      auto& page = pages_[i];
      if (!page.read) continue;
      page.line = page.view->textCursor().blockNumber() + 1;
      page.asked = page.read = false;
      read(i);
    }
  });
  const auto addKey = [this](const QKeySequence& key, auto&& run) {
    auto* action = new QAction(this);
    action->setShortcut(key);
    connect(action, &QAction::triggered, this, run);
    addAction(action);
    return action;
  };
  addKey(QKeySequence::Find, [this] {
    find_->setFocus();
    find_->selectAll();
  });
  addKey(Qt::Key_F3, [this] { find(false); });
  addKey(Qt::SHIFT | Qt::Key_F3, [this] { find(true); });
  addKey(Qt::CTRL | Qt::Key_W, [this] { close(); });
  addKey(Qt::Key_Escape, [this] {
    auto* page = current();
    if (page && find_->hasFocus()) page->view->setFocus();
    else close();
  });
  origin_ = addKey(Qt::Key_G, [this] { goToOrigin(); });
  origin_->setText(tr("&Origin and Back"));
}

void JobGraphsWindow::addPage(const jobs::GraphRecord& graph) {
  auto name = toQt(jobs::nameOf(graph));
  const auto before =
      std::ranges::count_if(pages_, [&](const Page& page) { return jobs::nameOf(page.graph) == jobs::nameOf(graph); });
  if (before > 0) name += QStringLiteral(" %1").arg(before + 1);  // after the forward's comes the backward's
  auto* view = named(new QPlainTextEdit(tabs_), QStringLiteral("job-text-") + name, name);
  view->setReadOnly(true);
  view->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  view->setFont(Theme::codeFont());
  view->setFrameShape(QFrame::NoFrame);
  view->setLineWrapMode(QPlainTextEdit::NoWrap);
  view->setTabChangesFocus(true);
  view->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(view, &QWidget::customContextMenuRequested, this, [this, view](QPoint at) {
    auto* menu = view->createStandardContextMenu();
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->insertAction(menu->actions().value(0), origin_);
    menu->popup(view->viewport()->mapToGlobal(at));
  });
  connect(view, &QPlainTextEdit::cursorPositionChanged, this, [this] {
    describe();
    markLine();
  });
  pages_.push_back({.graph = graph, .view = view, .job = new PoolJob(this)});
  tabs_->addTab(view, name);
  tabs_->setTabToolTip(tabs_->count() - 1,
                       tr("Ops: %1").arg(graph.ops) + QLatin1Char('\n') + toQt(jobs::placeOf(*log_, graph.payload)));
}

QWidget* JobGraphsWindow::makeFoot() {
  auto* foot = new QWidget(this);
  line_ = named(new QLabel(foot), "job-line", tr("Where the cursor is"));
  line_->setTextFormat(Qt::PlainText);
  find_ = named(new QLineEdit(foot), "job-find", tr("Find in the graph"));
  find_->setPlaceholderText(
      tr("Find in the graph (%1)").arg(QKeySequence(QKeySequence::Find).toString(QKeySequence::NativeText)));
  find_->setClearButtonEnabled(true);
  connect(find_, &QLineEdit::returnPressed, this, [this] { find(false); });
  auto* layout = withMargins(new QHBoxLayout(foot), {8, 5, 8, 5}, 12);
  layout->addWidget(find_, 2);
  layout->addWidget(line_, 3);
  return foot;
}

JobGraphsWindow::Page* JobGraphsWindow::current() {
  const auto index = tabs_->currentIndex();
  return index < 0 ? nullptr : &pages_[index];
}

std::optional<std::size_t> JobGraphsWindow::pageOf(jobs::GraphKind kind) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < pages_.size(); ++i)
    if (pages_[i].graph.kind == kind) found = i;
  return found;
}

void JobGraphsWindow::showGraph(std::size_t graph, int line) {
  show();
  raise();
  activateWindow();
  if (graph >= pages_.size()) return;
  auto& page = pages_[graph];
  page.line = line;
  tabs_->setCurrentIndex(static_cast<int>(graph));
  page.view->setFocus();
  page.read ? goTo(page, line) : read(graph);
}

void JobGraphsWindow::read(std::size_t index) {
  auto& page = pages_[index];
  if (std::exchange(page.asked, true)) return;
  describe();
  const OwnGraphLook look{Theme::codeFont(), theme_->colors().comment, theme_->colors().op, thread()};
  page.job->start([this, index, log = log_, graph = page.graph, look](const Progress&) -> PoolJob::Deliver {
    return [this, index, text = readOwnGraph(*log, graph, look)] { shown(index, text); };
  });
}

void JobGraphsWindow::shown(std::size_t index, OwnGraph text) {
  auto& page = pages_[index];
  text.document->setDocumentLayout(new QPlainTextDocumentLayout(text.document.get()));
  page.view->setDocument(text.document.get());
  connect(page.view, &QObject::destroyed, this,
          [document = text.document] {});  // the view, which goes after the pages, does not own it
  page.text = std::move(text);
  page.read = true;
  goTo(page, page.line);
  if (const auto then = std::exchange(page.then, {})) then();
}

int JobGraphsWindow::lineOfCursor() const { return pages_[tabs_->currentIndex()].view->textCursor().blockNumber() + 1; }

void JobGraphsWindow::goToOrigin() {
  const auto* page = current();
  if (!page || !page->read) return;
  const Place here{static_cast<std::size_t>(tabs_->currentIndex()), lineOfCursor()};
  if (here == to_ && to_.line > 0) {
    std::swap(from_, to_);
    return showGraph(to_.page, to_.line);
  }
  using Kind = jobs::GraphKind;
  const auto kind = page->graph.kind;
  const auto target = kind == Kind::backward  ? pageOf(Kind::forward)
                      : kind == Kind::forward ? pageOf(Kind::backward)
                                              : std::optional(here.page);
  if (kind != Kind::backward && kind != Kind::forward && kind != Kind::joint)
    return line_->setText(tr("This graph has no forward and backward"));
  if (kind == Kind::joint && !page->text.hasBackwardMarks)
    return line_->setText(tr("The log does not mark which ops of the joint belong to the backward"));
  const auto* op =
      opAt(page->text, here.line, page->view->textCursor().block().text().trimmed().startsWith(QLatin1Char('#')));
  if (!op) return line_->setText(tr("There is no op at the cursor"));
  if (op->source.empty()) return line_->setText(tr("The log has no line of Python for this op"));
  if (!target) return line_->setText(tr("The log has no such graph of this compile"));
  auto& other = pages_[*target];
  if (other.read) return goToCounterpart(*op, *target, here);
  other.then = [this, op = *op, target = *target, here] { goToCounterpart(op, target, here); };
  read(*target);
}

void JobGraphsWindow::goToCounterpart(const OwnOp& op, std::size_t target, Place from) {
  const auto source = toQt(op.source);
  const auto* found = counterpart(op, pages_[target].text, target == from.page);
  if (!found) return line_->setText(tr("No op there comes from %1").arg(source));
  from_ = from;
  to_ = {target, found->line};
  showGraph(target, found->line);
  line_->setText(line_->text() + QStringLiteral("  \u00b7  ") + tr("linked by line of Python: %1").arg(source));
}

void JobGraphsWindow::goTo(Page& page, int line) {
  if (line > 0) {
    page.view->setTextCursor(QTextCursor(page.view->document()->findBlockByNumber(line - 1)));
    page.view->centerCursor();
  }
  describe();
  markLine();
}

void JobGraphsWindow::describe() {
  const auto* page = current();
  if (!page) return line_->setText(tr("The log has no graph of this compile"));
  if (!page->read) return line_->setText(tr("Reading..."));
  auto text = tr("Line %1 of %2").arg(page->view->textCursor().blockNumber() + 1).arg(page->view->blockCount());
  text += QStringLiteral("  \u00b7  ") + tr("Ops: %1").arg(page->graph.ops);
  if (page->graph.damaged) text += QStringLiteral("  \u00b7  ") + tr("not whole: the text is not what was written");
  line_->setText(text);
}

void JobGraphsWindow::markLine() {
  const auto* page = current();
  if (!page || !page->read) return;
  QTextEdit::ExtraSelection mark;
  mark.format.setBackground(theme_->colors().selected);
  mark.format.setProperty(QTextFormat::FullWidthSelection, true);
  mark.cursor = page->view->textCursor();
  mark.cursor.clearSelection();
  page->view->setExtraSelections({mark});
}

void JobGraphsWindow::find(bool backward) {
  const auto* page = current();
  if (!page || !page->read) return;
  const auto text = find_->text();
  if (text.isEmpty()) return find_->setFocus();
  auto* view = page->view;
  const auto flags = backward ? QTextDocument::FindBackward : QTextDocument::FindFlags();
  if (view->find(text, flags)) return;
  const auto from = view->textCursor();
  view->moveCursor(backward ? QTextCursor::End : QTextCursor::Start);
  if (view->find(text, flags))
    return line_->setText(line_->text() + QStringLiteral("  \u00b7  ") + tr("the search went on from the other end"));
  view->setTextCursor(from);
  line_->setText(tr("'%1' does not occur in this graph").arg(text));
}

}  // namespace retrograd::views
