#include "views/session/op_filter.h"

#include "views/text/format.h"

namespace retrograd::views {
namespace {

std::optional<Filter> parsed(const QString& words, std::optional<OpFilter::Problem>& problem) {
  const auto text = words.toUtf8();
  Filter::Problem found;
  auto filter = Filter::parse(std::string_view(text.constData(), static_cast<std::size_t>(text.size())), found);
  if (filter) return filter;
  // The language counts bytes, the line characters.
  const auto characters = [&](std::size_t bytes) {
    return static_cast<int>(QString::fromUtf8(text.left(static_cast<qsizetype>(bytes))).size());
  };
  problem = OpFilter::Problem{characters(found.begin), characters(found.end), toQt(found.message)};
  return std::nullopt;
}

}  // namespace

OpFilter::OpFilter(DocumentController* controller, QObject* parent) : QObject(parent), controller_(controller) {
  connect(controller_, &DocumentController::documentAboutToChange, this, [this] {
    job_.cancel();
    ops_.reset();
  });
  connect(controller_, &DocumentController::documentChanged, this, &OpFilter::run);
}

std::optional<OpFilter::Problem> OpFilter::problemOf(const QString& words) {
  std::optional<Problem> problem;
  parsed(words, problem);
  return problem;
}

bool OpFilter::apply(const QString& words) {
  std::optional<Problem> problem;
  auto filter = parsed(words.trimmed(), problem);
  if (!filter) return false;
  if (words.trimmed() == words_) return true;
  words_ = words.trimmed();
  filter_ = std::move(*filter);
  Q_EMIT wordsChanged();
  Q_EMIT historyChanged();
  run();
  return true;
}

void OpFilter::run() {
  job_.cancel();
  const auto& document = controller_->document();
  if (!document || filter_.passesAll()) {
    const bool had = ops_ != nullptr;
    ops_.reset();
    if (had) Q_EMIT changed();
    return;
  }
  job_.start([this, document, filter = filter_](const Progress& progress) -> PoolJob::Deliver {
    auto ops = filterOps(document, filter, progress);
    return [this, ops = std::move(ops)] {
      ops_ = ops;
      Q_EMIT changed();
    };
  });
}

void OpFilter::keep() {
  constexpr std::size_t most = 100;
  if (history_[at_] == words_) return;
  history_.resize(at_ + 1);
  history_.push_back(words_);
  if (history_.size() > most) history_.erase(history_.begin());
  at_ = history_.size() - 1;
  Q_EMIT historyChanged();
}

void OpFilter::back() {
  keep();
  if (at_ > 0) go(at_ - 1);
}

void OpFilter::forward() {
  if (canGoForward()) go(at_ + 1);
}

void OpFilter::go(std::size_t step) {
  at_ = step;
  apply(history_[at_]);
  Q_EMIT historyChanged();
}

}  // namespace retrograd::views
