#include "views/settings/last_session.h"

#include <QVariant>

#include "core/notes/notes.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString nameOf(MultiUse use) {
  return use == MultiUse::transmit ? QStringLiteral("transmit") : QStringLiteral("replicate");
}
MultiUse useOf(const QVariant& name) {
  return name.toString() == nameOf(MultiUse::transmit) ? MultiUse::transmit : MultiUse::replicate;
}

QVariantMap written(const CutRequest& cuts) {
  QStringList at;
  for (const auto& point : cuts.at) at << toQt(point);
  QVariantMap shared;
  for (const auto& [parameter, use] : cuts.options.multiUseOf) shared[toQt(parameter)] = nameOf(use);
  return {{QStringLiteral("at"), at},
          {QStringLiteral("stages"), static_cast<qulonglong>(cuts.stages)},
          {QStringLiteral("balance"), static_cast<int>(cuts.balance)},
          {QStringLiteral("markers"), cuts.useMarkers},
          {QStringLiteral("shared"), nameOf(cuts.options.multiUse)},
          {QStringLiteral("shared-by-name"), shared}};
}

CutRequest readCuts(const QVariantMap& map) {
  CutRequest cuts;
  for (const auto& point : map.value(QStringLiteral("at")).toStringList()) cuts.at.push_back(point.toStdString());
  cuts.stages = static_cast<std::size_t>(map.value(QStringLiteral("stages")).toULongLong());
  const int balance = map.value(QStringLiteral("balance")).toInt();
  if (balance >= 0 && balance <= static_cast<int>(Balance::bytes)) cuts.balance = static_cast<Balance>(balance);
  cuts.useMarkers = map.value(QStringLiteral("markers"), true).toBool();
  cuts.options.multiUse = useOf(map.value(QStringLiteral("shared")));
  const auto shared = map.value(QStringLiteral("shared-by-name")).toMap();
  for (auto it = shared.begin(); it != shared.end(); ++it)
    cuts.options.multiUseOf[it.key().toStdString()] = useOf(it.value());
  return cuts;
}

// Where inputs come from, as settings of earlier versions say it: samples, drawn, a file.
constexpr int drawnSource = 1, lastSource = 2;

QVariantMap written(const WindowRecord& window) {
  const auto& request = window.request;
  QVariantMap map{{QStringLiteral("path"), toQt(request.path)},
                  {QStringLiteral("source"), request.drawn ? drawnSource : 0},
                  {QStringLiteral("input-file"), toQt(request.inputs)},
                  {QStringLiteral("seed"), static_cast<qulonglong>(request.seed.value_or(0))},
                  {QStringLiteral("geometry"), window.geometry},
                  {QStringLiteral("arrangement"), window.arrangement},
                  {QStringLiteral("selected"), window.selected},
                  {QStringLiteral("active"), window.active}};
  if (request.device) map[QStringLiteral("device")] = toQt(toString(*request.device));
  if (!request.loss.empty()) map[QStringLiteral("loss")] = toQt(request.loss);
  if (window.cuts) map[QStringLiteral("cuts")] = written(*window.cuts);
  return map;
}

/// Nothing where the path is missing or a number is none of ours.
std::optional<WindowRecord> read(const QVariantMap& map) {
  WindowRecord window;
  window.request.path = map.value(QStringLiteral("path")).toString().toStdString();
  const int source = map.value(QStringLiteral("source")).toInt();
  const int active = map.value(QStringLiteral("active")).toInt();
  if (window.request.path.empty() || source < 0 || source > lastSource || active < 0 || active > 3) return {};
  window.request.drawn = source == drawnSource;
  window.request.inputs = map.value(QStringLiteral("input-file")).toString().toStdString();
  if (const auto seed = map.value(QStringLiteral("seed")).toULongLong()) window.request.seed = seed;
  if (const auto device = map.value(QStringLiteral("device")).toString(); !device.isEmpty()) try {
      window.request.device = deviceFromString(device.toStdString());
    } catch (const Error&) {  // without it, the file says
    }
  window.request.loss = map.value(QStringLiteral("loss")).toString().toStdString();
  if (map.contains(QStringLiteral("cuts"))) window.cuts = readCuts(map.value(QStringLiteral("cuts")).toMap());
  window.geometry = map.value(QStringLiteral("geometry")).toByteArray();
  window.arrangement = map.value(QStringLiteral("arrangement")).toByteArray();
  window.selected = map.value(QStringLiteral("selected")).toString();
  window.active = active;
  return window;
}

}  // namespace

LastSession::LastSession(QSettings* settings)
    : settings_(settings), lock_(std::make_unique<QLockFile>(settings->fileName() + QStringLiteral(".restoring"))) {
  lock_->setStaleLockTime(0);  // good for as long as its process runs
}

void LastSession::save(const std::vector<WindowRecord>& windows) {
  if (isRestoredElsewhere()) return;
  QVariantList list;
  for (const auto& window : windows) list << written(window);
  kept::sessionWindows.keep(*settings_, list);
}

std::vector<WindowRecord> LastSession::windows() const {
  std::vector<WindowRecord> windows;
  for (const auto& entry : kept::sessionWindows.of(*settings_))
    if (auto window = read(entry.toMap())) windows.push_back(std::move(*window));
  return windows;
}

void LastSession::beginRestoring() {
  if (!lock_->isLocked()) lock_->tryLock(0);
  kept::restoringSession.keep(*settings_, true);
  settings_->sync();
}

void LastSession::endRestoring() {
  if (isRestoredElsewhere()) return;
  kept::restoringSession.forget(*settings_);
  lock_->unlock();
}

bool LastSession::isRestoredElsewhere() const {
  if (lock_->isLocked()) return false;
  if (lock_->tryLock(0)) {
    lock_->unlock();
    return false;
  }
  return lock_->error() ==
         QLockFile::LockFailedError;  // other errors: the folder cannot be written, so nobody has a lock there
}

QString opText(const Analysis& analysis, BoundSymbolId op) {
  if (!op) return {};
  Note note;
  note.op = keyOf(analysis, op);
  note.bookmark = true;
  Notes notes;
  notes.set(note);
  return toQt(notesText(notes));
}

BoundSymbolId opOfText(const Analysis& analysis, const QString& text) {
  if (text.isEmpty()) return {};
  try {
    const auto notes = parseNotes(text.toStdString(), "last session");
    return notes.all().empty() ? BoundSymbolId() : findKeys(analysis, std::vector{notes.all().front().op}).front();
  } catch (const Error&) {  // of another version of the program
    return {};
  }
}

}  // namespace retrograd::views
