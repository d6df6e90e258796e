// The only file of the room that sees nlohmann/json (a heavy header).
#include "cli/json_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

namespace rubato::cli {
namespace {

using Json = nlohmann::json;
constexpr std::size_t depth_max = 64;

/// How far the lexer has read. The line of the last character that is no space is the line of the token at hand: the
/// lexer looks one character ahead, perhaps into the next line, only behind numbers, and then it sees a space.
struct Progress {
    std::size_t position = 0;
    int line = 1;
    int token_line = 1;
    char last = ' ';      ///< last character that is no space
    char previous = ' ';  ///< the one before it
};

class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    CountingIterator(const char* at, Progress* progress) : at_(at), progress_(progress) {}
    reference operator*() const { return *at_; }
    CountingIterator& operator++() {
        const char c = *at_++;
        ++progress_->position;
        if (c == '\n') {
            ++progress_->line;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            progress_->token_line = progress_->line;
            progress_->previous = progress_->last;
            progress_->last = c;
        }
        return *this;
    }
    bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

private:
    const char* at_;
    Progress* progress_;
};

/// Builds the tree while nlohmann reads.
class Builder {
public:
    using number_integer_t = Json::number_integer_t;
    using number_unsigned_t = Json::number_unsigned_t;
    using number_float_t = Json::number_float_t;
    using string_t = Json::string_t;
    using binary_t = Json::binary_t;

    Builder(const std::string& text, const Where& base, const Progress& progress)
        : text_(text), base_(base), progress_(progress) {}

    bool null() { return value({}); }
    bool boolean(bool v) { return value(Node::of(v)); }
    bool number_integer(number_integer_t v) { return value(Node::of(std::int64_t{v})); }
    bool number_unsigned(number_unsigned_t v) {
        const bool fits = v <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max());
        return value(fits ? Node::of(static_cast<std::int64_t>(v)) : Node::of(static_cast<double>(v)));
    }
    bool number_float(number_float_t v, const string_t&) { return value(Node::of(v)); }
    bool string(string_t& v) { return value(Node::of(std::move(v))); }
    bool binary(binary_t&) { return false; }
    bool start_object(std::size_t) { return open(Node::Kind::object); }
    bool start_array(std::size_t) { return open(Node::Kind::array); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(string_t& name) {
        Node& object = *open_.back();
        if (!keys_.back().insert(name).second) {
            const int first = [&] {
                for (const auto& member : object.members) {
                    if (member.key == name) return member.where.line;
                }
                return 0;
            }();
            const std::string told = first > 0 ? ", already on line " + std::to_string(first) : "";
            throw InputError(here(), "", "duplicate key \"" + name + "\"" + told);
        }
        object.members.push_back({name, here(), {}});
        return true;
    }

    bool parse_error(std::size_t, const std::string& token, const Json::exception& error) {
        throw InputError(here(), "", explain(token, error));
    }

    Node take() { return std::move(root_); }

private:
    Where here() const {
        Where where = base_;
        if (where.line > 0) where.line += progress_.token_line - 1;
        return where;
    }

    bool value(Node node) {
        place(std::move(node));
        return true;
    }

    Node* place(Node node) {
        node.where = here();
        if (open_.empty()) {
            root_ = std::move(node);
            return &root_;
        }
        Node& parent = *open_.back();
        if (parent.kind == Node::Kind::array) return &parent.items.emplace_back(std::move(node));
        parent.members.back().value = std::move(node);
        return &parent.members.back().value;
    }

    bool open(Node::Kind kind) {
        if (open_.size() >= depth_max) {
            throw InputError(here(), "", "nested deeper than " + std::to_string(depth_max) + " levels");
        }
        Node node;
        node.kind = kind;
        // Addresses stay good: a parent's vector does not grow before this child is closed.
        open_.push_back(place(std::move(node)));
        keys_.emplace_back();
        return true;
    }

    bool close() {
        open_.pop_back();
        keys_.pop_back();
        return true;
    }

    std::string explain(const std::string& token, const Json::exception& error) const;

    const std::string& text_;
    const Where& base_;
    const Progress& progress_;
    Node root_;
    std::vector<Node*> open_;
    std::vector<std::set<std::string>> keys_;
};

/// The word that the lexer stumbled over, such as NaN or True.
std::string word_at(const std::string& text, std::size_t position) {
    const auto part = [&](std::size_t i) {
        const char c = text[i];
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '+' || c == '.';
    };
    std::size_t begin = std::min(position, text.size());
    if (begin > 0) --begin;
    if (begin >= text.size() || !part(begin)) return {};
    while (begin > 0 && part(begin - 1)) --begin;
    std::size_t end = begin;
    while (end < text.size() && part(end)) ++end;
    return text.substr(begin, std::min<std::size_t>(end - begin, 40));
}

std::string Builder::explain(const std::string& token, const Json::exception& error) const {
    if (error.id == 406) return "the number " + head_of(token, 40) + " is too large";
    std::string what = error.what();
    const bool end = what.find("unexpected end of input") != std::string::npos;
    if (end) {
        if (open_.empty()) return "expected a JSON object, found an empty file";
        const std::string opened = open_.back()->kind == Node::Kind::array ? "the array" : "the object";
        const int line = open_.back()->where.line;
        if (line == 0) return opened + " is not closed";  // a value from the command line
        return "the file ends too early: " + opened + " that opens on line " + std::to_string(line) + " is not closed";
    }
    if ((progress_.last == '}' || progress_.last == ']') && progress_.previous == ',') {
        return std::string("trailing comma before '") + progress_.last + "'";
    }
    if (what.find("ill-formed UTF-8") != std::string::npos) return "a string holds a byte that is not UTF-8";
    if (what.find("control character") != std::string::npos)
        return "a string holds a control character or a line break";
    if (what.find("missing closing quote") != std::string::npos) return "a string is not closed";
    if (progress_.last == '/') return "JSON has no comments; use the key \"comment\"";
    if (progress_.last == '\'') return "JSON strings stand in double quotes";
    if (what.find("expected end of input") != std::string::npos) return "something follows the end of the JSON value";
    const std::string word = word_at(text_, progress_.position);
    if (!word.empty() && what.find("invalid literal") != std::string::npos) {
        return "\"" + word + "\" is not a JSON value (strings stand in double quotes; NaN and infinity do not exist)";
    }
    if (!word.empty() && what.find("invalid number") != std::string::npos)
        return "\"" + word + "\" is not a JSON number";
    if (const auto at = what.find("; expected "); at != std::string::npos) {
        std::string expected = what.substr(at + 11);
        if (const auto cut = expected.find(';'); cut != std::string::npos) expected.resize(cut);
        return "expected " + expected + ", found \"" + tail_of(token, 20) + "\"";
    }
    return "not valid JSON near \"" + tail_of(token, 20) + "\"";
}

}  // namespace

void require_plain_text(const std::string& text, const Where& where, const std::string& kind,
                        const std::string& expected) {
    if (text.starts_with("\xef\xbb\xbf"))
        throw InputError(where, "",
                         "starts with a byte order mark, which " + kind + " does not allow: save as plain UTF-8");
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        throw InputError(where, "", "looks like UTF-16: save as plain UTF-8");
    if (text.starts_with("\x1f\x8b")) throw InputError(where, "", "is compressed by gzip: expected " + expected);
    // The lexer takes it for the end, and would not see what follows.
    if (const auto zero = text.find('\0'); zero != std::string::npos) {
        Where place = where;
        if (place.line > 0) place.line += static_cast<int>(std::count(text.begin(), text.begin() + zero, '\n'));
        throw InputError(place, "", "holds a zero byte: expected " + expected);
    }
}

Node parse_json(const std::string& text, const Where& where) {
    require_plain_text(text, where, "JSON", "JSON text");
    Progress progress;
    Builder builder(text, where, progress);
    CountingIterator first(text.data(), &progress);
    CountingIterator last(text.data() + text.size(), &progress);
    Json::sax_parse(first, last, &builder);
    return builder.take();
}

std::string read_file(const std::string& path) {
    const auto fail = [&](const std::string& why) { return InputError(path + ": " + why); };
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) throw fail("is a folder, expected a file");
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (!file) throw fail(std::string("cannot be read: ") + std::strerror(errno));
    std::string text;
    char block[65536];
    std::size_t count = 0;
    while (text.size() <= (64u << 20) && (count = std::fread(block, 1, sizeof block, file)) > 0)
        text.append(block, count);
    const bool bad = std::ferror(file) != 0;
    std::fclose(file);
    if (bad) throw fail("cannot be read");
    if (text.size() > (64u << 20)) throw fail("is larger than 64 MiB");
    return text;
}

Node read_json(const std::string& path, int rank) {
    return parse_json(read_file(path), {std::make_shared<const std::string>(path), 1, rank});
}

std::optional<Node> try_parse_json(const std::string& text, const Where& where) {
    try {
        return parse_json(text, where);
    } catch (const InputError&) {
        return std::nullopt;
    }
}

bool is_utf8(const std::string& text) {
    try {
        static_cast<void>(Json(text).dump());
        return true;
    } catch (const Json::type_error&) {
        return false;
    }
}

}  // namespace rubato::cli
