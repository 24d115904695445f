#pragma once
#include <QObject>
#include <cstdint>
#include <optional>

#include "core/base/tensor_meta.h"

namespace retrograd::views {

/// "3.1 MiB", "512 B".
QString bytesText(std::int64_t bytes);
/// "1 op", "12 ops".
QString opsText(std::size_t ops);
/// Three significant digits: "0.41 ms", "12 µs".
QString secondsText(double seconds);
/// A number as people read it: five significant digits, "nan", "inf".
QString numberText(double number);
/// Three significant digits, or two and a power of ten, in about six letters: "12.3", "0.0123", "1.2e-5".
QString briefNumber(double number);
/// "[2, 3]", with the names of dynamic sizes.
QString shapeText(const TensorMeta& meta);
/// "f32[2, 3]".
QString typeText(const TensorMeta& meta);
QString toQt(std::string_view text);
/// Words for people, in functions that are not members of a QObject.
inline QString tr(const char* text, const char* meaning = nullptr, int n = -1) { return QObject::tr(text, meaning, n); }
/// A seed as people write it, of all 64 bits; nothing where the text is none.
std::optional<std::uint64_t> seedFromText(const QString& text);
/// The words for a text that is not a seed.
QString noSeedText(const QString& text);

}  // namespace retrograd::views
