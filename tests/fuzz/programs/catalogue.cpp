#include "tests/fuzz/programs/catalogue.h"

#include <sstream>

namespace retrograd::fuzz {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

/// "add.Tensor" -> "aten.add_.Tensor"
std::string inPlace(const std::string& op) {
  auto name = op;
  return name.insert(name.rfind('.'), "_");
}

Arg numberOf(const std::string& text) {
  if (text.find('.') == std::string::npos) return Arg::number(static_cast<std::int64_t>(std::stoll(text)));
  return Arg::number(std::stod(text));
}

class Drawer {
 public:
  explicit Drawer(Draft& draft) : d_(draft) {}

  bool draw(const Entry& entry) {
    std::vector<Arg> args;
    for (const auto& token : entry.tokens) {
      if (!add(token, args)) return false;
    }
    return d_.call(entry.op, std::move(args));
  }

 private:
  bool add(const std::string& token, std::vector<Arg>& args) {
    switch (token[0]) {
      case '~':
      case '=': return other(token, args);
      case 'm': return push(d_.truths(first_), args);
      case 'D': return dimension(token.size() > 1, args);
      case 'L': return dimensions(args);
      case 'K': return args.push_back(Arg::boolean(d_.random.chance(0.5))), true;
      case 'S':
        return args.push_back(d_.random.chance(0.3) ? Arg::number(d_.random.between(-2, 3)) : Arg::number(d_.scalar())),
               true;
      case 'P': return args.push_back(Arg::number(0.125 + static_cast<double>(d_.random.between(0, 12)) / 8)), true;
      case 'I': return args.push_back(Arg::number(d_.random.between(0, token[1] - '0'))), true;
      case 'N': return args.push_back(Arg::none()), true;
      case 'T':
      case 'F': return args.push_back(Arg::boolean(token[0] == 'T')), true;
      case '_': return args.push_back(Arg::missing()), true;
      case '$': return args.push_back(Arg::string(token.substr(1))), true;
      case '#': return literal(token.substr(1), args);
      case 'd': return args.push_back(Arg::dtype(d_.main)), true;
      default: return tensor(token, args);
    }
  }

  bool literal(const std::string& text, std::vector<Arg>& args) {
    if (text[0] != '[') return args.push_back(numberOf(text)), true;
    std::vector<Arg> items;
    std::istringstream stream(text.substr(1, text.size() - 2));
    for (std::string item; std::getline(stream, item, ',');) items.push_back(numberOf(item));
    return args.push_back(Arg::list(std::move(items))), true;
  }

  bool push(int value, std::vector<Arg>& args) {
    if (value < 0) return false;
    if (first_ < 0) first_ = value;
    args.push_back(Arg::value(value));
    return true;
  }

  bool tensor(const std::string& token, std::vector<Arg>& args) {
    const bool written = token[0] == 'w';
    const auto range = token[written ? 1 : 0];
    const auto rest = token.substr(written ? 2 : 1);
    Want want;
    if (!rest.empty()) {
      want.least = std::stol(rest.substr(rest[0] == '=' ? 1 : 0));
      if (rest[0] == '=') want.most = want.least;
    }
    int value = -1;
    switch (range) {
      case 'c': want.kinds = Want::complex; break;
      case 'i': want.kinds = Want::integer; break;
      case 'b': want.kinds = Want::boolean; break;
      case 'a': want.kinds = Want::any; break;
      case 'n': want.kinds = Want::integer | Want::boolean; break;
      case 'f': want.kinds = Want::floating; break;
      case 'r': want.kinds = Want::real; break;
      default: break;
    }
    const bool plain = std::string("cibanfr").find(range) != std::string::npos;
    value = written ? target(range, want) : plain ? d_.pick(want) : d_.inRange(range, want);
    if (value < 0 && (range == 'f' || range == 'r') && want.least > 0) value = d_.shaped(d_.sizes(want.least));
    if (value < 0 && !written && range == 'i')
      value = d_.indices(d_.random.between(2, 5), d_.sizes(d_.random.between(1, 2)));
    if (value < 0 && !written && (range == 'b' || range == 'n')) {
      value = d_.pick({Want::floating});
      if (value >= 0) value = d_.truths(value);
    }
    if (value < 0 && !written && range == 'c') value = complexValue();
    return push(value, args);
  }

  /// What is written: a view rather than not.
  int target(char range, const Want& want) {
    int value = -1;
    for (int tries = 0; tries < 4; ++tries) {
      const auto found =
          range == 'p' || range == 'u' || range == 'g' || range == 'o' ? d_.inRange(range, want) : d_.pick(want);
      if (found < 0 || !d_.writable(found)) continue;
      value = found;
      if (d_.isViewed(found)) break;
    }
    return value;
  }

  int complexValue() {
    const auto re = d_.pick({Want::real, 0, 4});
    if (re < 0) return -1;
    const auto type = d_.tensor(re).scalar_type();
    if (type != at::kDouble && type != at::kFloat) return -1;
    const auto im = d_.partner(re, true);
    return im < 0 ? -1 : d_.make("aten.complex.default", {Arg::value(re), Arg::value(im)});
  }

  bool other(const std::string& token, std::vector<Arg>& args) {
    if (first_ < 0) return false;
    if (token[1] == '?' && d_.random.chance(0.4))
      return args.push_back(d_.random.chance(0.5) ? Arg::number(d_.random.between(1, 3)) : Arg::number(d_.scalar())),
             true;
    if (token[1] == 'n') {
      const auto type = d_.tensor(first_).scalar_type();
      const auto sizes = d_.tensor(first_).sizes().vec();
      auto found = d_.pick({Want::any, 0, 9, [&](const at::Tensor& t) {
                              return t.scalar_type() == type && (t.sizes() == at::IntArrayRef(sizes) || t.dim() == 0);
                            }});
      return push(found < 0 ? first_ : found, args);
    }
    return push(d_.partner(first_, token[0] == '=', token[1] == '?' ? 'f' : token[1]), args);
  }

  bool dimension(bool optional, std::vector<Arg>& args) {
    if (optional && d_.random.chance(0.3)) return args.push_back(Arg::none()), true;
    if (first_ < 0) return false;
    const auto dims = d_.tensor(first_).dim();
    if (dims == 0) return false;
    auto dim = static_cast<std::int64_t>(d_.random.below(static_cast<std::size_t>(dims)));
    if (d_.random.chance(0.4)) dim -= dims;
    args.push_back(Arg::number(dim));
    return true;
  }

  bool dimensions(std::vector<Arg>& args) {
    if (first_ < 0) return false;
    const auto dims = d_.tensor(first_).dim();
    std::vector<std::int64_t> chosen;
    for (std::int64_t d = 0; d < dims; ++d)
      if (d_.random.chance(0.5)) chosen.push_back(d_.random.chance(0.3) ? d - dims : d);
    if (chosen.empty() && dims > 0)
      chosen.push_back(static_cast<std::int64_t>(d_.random.below(static_cast<std::size_t>(dims))));
    if (chosen.empty()) return false;
    args.push_back(Arg::ints(chosen));
    return true;
  }

  Draft& d_;
  int first_ = -1;
};

}  // namespace

void Catalogue::add(const std::string& names, const std::string& tokens, Flags flags) {
  for (const auto& name : words(names)) {
    Entry entry;
    entry.op = "aten." + name;
    entry.tokens = words(tokens);
    entry.keeps = flags.keeps;
    entry.view = flags.view;
    entries.push_back(entry);
    if (!flags.inPlace) continue;
    entry.op = inPlace(entry.op);
    entry.writes = true;
    entry.keeps = false;
    entry.tokens[0].insert(0, "w");
    entries.push_back(entry);
  }
}

void Catalogue::add(const std::string& names, bool (*custom)(Draft&, const std::string&), Flags flags) {
  for (const auto& name : words(names)) {
    Entry entry;
    entry.op = "aten." + name;
    entry.custom = custom;
    entry.keeps = flags.keeps;
    entry.view = flags.view;
    entry.writes = flags.inPlace;
    entries.push_back(entry);
  }
}

const std::vector<Entry>& catalogue() {
  static const auto all = [] {
    Catalogue catalogue;
    addElementwise(catalogue);
    addReductions(catalogue);
    addViews(catalogue);
    addIndexing(catalogue);
    addMatrices(catalogue);
    addNetworks(catalogue);
    addRandom(catalogue);
    addWrites(catalogue);
    return catalogue.entries;
  }();
  return all;
}

bool draw(Draft& draft, const Entry& entry) try {
  return entry.custom ? entry.custom(draft, entry.op) : Drawer(draft).draw(entry);
} catch (const c10::Error&) {  // as in addRegion()
  return false;
}

}  // namespace retrograd::fuzz
