// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Json.h"

#include "runtime/contract/Spelling.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::contract {

namespace {

/// The bytes before `end`, without half a character at its end.
std::size_t characterEnd(std::string_view text, std::size_t end) {
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;
    return end;
}

/// A key of a file as it may stand in a message.
std::string shortened(std::string_view key) {
    constexpr std::size_t kLongest = 64;
    return key.size() <= kLongest ? std::string(key) : std::string(key.substr(0, characterEnd(key, kLongest))) + "...";
}

/// A message without its middle where that would be endless: it quotes what a file holds.
std::string readable(std::string_view message) {
    constexpr std::size_t kHead = 400;
    constexpr std::size_t kTail = 200;
    if (message.size() <= kHead + kTail)
        return std::string(message);
    return fmt::format("{} ... {}", message.substr(0, characterEnd(message, kHead)),
                       message.substr(characterEnd(message, message.size() - kTail)));
}

/// Makes the document and refuses what nlohmann's own parser accepts: duplicate keys, unbounded nesting, and values
/// beyond a number, since a value of two bytes in a file takes a hundred in memory.
class DocumentBuilder final : public nlohmann::json_sax<Json> {
public:
    explicit DocumentBuilder(std::size_t maximumValues) : m_left(maximumValues), m_maximumValues(maximumValues) {}

    const std::string& message() const { return m_message; }
    Json take() { return std::move(m_root); }

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t&) override { return false; } // not in JSON text
    bool start_object(std::size_t) override { return descend(Json::object()); }
    bool key(string_t& name) override {
        const auto [member, isNew] = m_open.back()->emplace(name, nullptr);
        m_member = &*member;
        return isNew || fail(fmt::format("has the key \"{}\" twice in one object", shortened(name)));
    }
    bool end_object() override { return ascend(); }
    bool start_array(std::size_t) override { return descend(Json::array()); }
    bool end_array() override { return ascend(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception) override {
        // "[json.exception.parse_error.101] parse error at line 3, column 5: ..." without the library's own prefix.
        std::string_view what = exception.what();
        if (const auto bracket = what.find("] "); bracket != std::string_view::npos)
            what.remove_prefix(bracket + 2);
        return fail("is not valid JSON: " + readable(what));
    }

private:
    bool fail(std::string message) {
        m_message = std::move(message);
        return false;
    }

    /// Puts a value in its place, which stays where it is until its container gets the next one.
    bool add(Json value) {
        if (m_left == 0)
            return fail(fmt::format("has more than {} values", m_maximumValues));
        --m_left;
        if (m_open.empty()) {
            m_root = std::move(value);
            m_added = &m_root;
        } else if (m_open.back()->is_array()) {
            m_open.back()->push_back(std::move(value));
            m_added = &m_open.back()->back();
        } else {
            *m_member = std::move(value);
            m_added = m_member;
        }
        return true;
    }

    bool descend(Json container) {
        if (m_open.size() == kMaximumJsonDepth)
            return fail(fmt::format("is nested deeper than {} levels", kMaximumJsonDepth));
        if (!add(std::move(container)))
            return false;
        m_open.push_back(m_added);
        return true;
    }

    bool ascend() {
        m_open.pop_back();
        return true;
    }

    Json m_root;
    std::vector<Json*> m_open; ///< the containers around the place
    Json* m_member = nullptr;  ///< of the innermost object, whose key was read last
    Json* m_added = nullptr;
    std::size_t m_left;
    std::size_t m_maximumValues;
    std::string m_message;
};

/// Closes a file descriptor at the end of a scope.
class Descriptor {
public:
    explicit Descriptor(int value) : m_value(value) {}
    ~Descriptor() {
        if (m_value >= 0)
            ::close(m_value);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return m_value; }
    bool closeNow() {
        const int value = std::exchange(m_value, -1);
        return ::close(value) == 0;
    }

private:
    int m_value;
};

const Json kNull = nullptr;

constexpr std::size_t kUnknownNamed = 16; ///< that many unknown keys are said one by one

/// "operators[17].kept[2].x" -> "operators[].kept[].x"
std::string withoutIndices(std::string_view path) {
    std::string pattern;
    bool inside = false;
    for (const char letter : path) {
        inside = inside && letter != ']';
        if (!inside)
            pattern += letter;
        inside = inside || letter == '[';
    }
    return pattern;
}

/// A member that was probably meant as `key`, which is not there: " (there is "flops_foward")"; else nothing.
std::string misspelt(const Json& object, std::string_view key) {
    constexpr std::size_t kMostLetters = 2;
    constexpr int kMembersSeen = 256; // objects of ours have fewer
    int seen = 0;
    for (const auto& [name, value] : object.items()) {
        if (++seen > kMembersSeen || key.size() <= 2 * kMostLetters)
            break;
        const std::size_t shorter = std::min(name.size(), key.size());
        if (std::max(name.size(), key.size()) - shorter <= kMostLetters && editDistance(name, key) <= kMostLetters)
            return fmt::format(" (there is \"{}\")", name);
    }
    return {};
}

} // namespace

Result<Json> parseJson(std::string_view text, std::string_view file, std::size_t maximumValues) {
    DocumentBuilder builder(maximumValues);
    if (!Json::sax_parse(text, &builder))
        return badInput(fmt::format("{}: {}", file, builder.message()));
    return builder.take();
}

Result<std::string> readTextFile(const std::string& path, std::int64_t maximumBytes) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0)
        return badInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return badInput(fmt::format("{}: is {}", path,
                                    S_ISDIR(status.st_mode) ? "a folder, not a regular file" : "not a regular file"));
    if (status.st_size > maximumBytes)
        return badInput(fmt::format("{}: is {} bytes, more than the {} this kind of file may have", path,
                                    static_cast<std::int64_t>(status.st_size), maximumBytes));
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + done, text.size() - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return badInput(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
        if (count == 0)
            break;
        done += static_cast<std::size_t>(count);
    }
    text.resize(done);
    return text;
}

Result<Json> readJsonFile(const std::string& path, std::int64_t maximumBytes, std::size_t maximumValues) {
    return readTextFile(path, maximumBytes).and_then([&](const std::string& text) {
        return parseJson(text, path, maximumValues);
    });
}

Result<void> writeFileAtomically(const std::string& given, std::string_view content) {
    // Renaming over a link would replace the link, over a device the device: write where a link points, and only files.
    std::error_code unresolved;
    const std::filesystem::path target = std::filesystem::weakly_canonical(given, unresolved);
    const std::string path = unresolved ? given : target.string();
    if (struct stat existing{}; ::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode))
        return runFailed(fmt::format("{}: is not a regular file; it is not replaced", given));
    const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
    const auto fail = [&](std::string_view what) {
        const int reason = errno;
        ::unlink(temporary.c_str());
        return runFailed(fmt::format("{}: {}: {}", path, what, std::strerror(reason)));
    };
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0)
        return fail("cannot be created");
    std::size_t done = 0;
    while (done < content.size()) {
        const ssize_t count = ::write(file.get(), content.data() + done, content.size() - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail("cannot be written");
        done += static_cast<std::size_t>(count);
    }
    if (::fsync(file.get()) != 0)
        return fail("cannot be flushed to disk");
    if (!file.closeNow())
        return fail("cannot be closed");
    if (::rename(temporary.c_str(), path.c_str()) != 0)
        return fail("cannot be put in place");
    return {};
}

JsonCursor::JsonCursor(const Json& document, std::string_view file)
    : m_value(&document), m_document(std::make_shared<Document>()) {
    m_document->file = file;
}

JsonCursor::JsonCursor(const Json* value, std::string path, std::shared_ptr<Document> document)
    : m_value(value), m_path(std::move(path)), m_document(std::move(document)) {}

void JsonCursor::fail(std::string_view message) const {
    if (m_document->error)
        return;
    const std::string place = m_path.empty() ? "the document" : m_path;
    m_document->error =
        Error{ErrorKind::BadInput, fmt::format("{}: {} {}", m_document->file, place, readable(message))};
}

JsonCursor JsonCursor::at(std::string_view key) const {
    const std::string path = m_path.empty() ? std::string(key) : m_path + "." + std::string(key);
    if (!m_value->is_object()) {
        if (!failed())
            fail("must be an object");
        return {&kNull, path, m_document};
    }
    const auto member = m_value->find(std::string(key));
    if (member == m_value->end()) {
        if (!failed())
            JsonCursor(&kNull, path, m_document).fail("is missing" + misspelt(*m_value, key));
        return {&kNull, path, m_document};
    }
    return {&*member, path, m_document};
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
    if (!m_value->is_object())
        return std::nullopt;
    const auto member = m_value->find(std::string(key));
    if (member == m_value->end() || member->is_null())
        return std::nullopt;
    return JsonCursor(&*member, m_path.empty() ? std::string(key) : m_path + "." + std::string(key), m_document);
}

std::size_t JsonCursor::arraySize(std::size_t maximum) const {
    if (!m_value->is_array()) {
        fail("must be an array");
        return 0;
    }
    if (m_value->size() > maximum) {
        fail(fmt::format("has {} elements, more than {}", m_value->size(), maximum));
        return 0;
    }
    return m_value->size();
}

JsonCursor JsonCursor::element(std::size_t index) const {
    const std::string path = fmt::format("{}[{}]", m_path, index);
    if (!m_value->is_array() || index >= m_value->size()) {
        fail("must be an array");
        return {&kNull, path, m_document};
    }
    return {&(*m_value)[index], path, m_document};
}

std::int64_t JsonCursor::integer(std::int64_t minimum, std::int64_t maximum) const {
    const auto range = [&] { return fmt::format("must be an integer from {} to {}", minimum, maximum); };
    if (!m_value->is_number_integer()) {
        fail(m_value->is_number() ? fmt::format("is {}; it {}", m_value->dump(), range()) : range());
        return minimum;
    }
    const bool tooLarge =
        m_value->is_number_unsigned() &&
        m_value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::max<std::int64_t>(maximum, 0));
    const std::int64_t value = tooLarge ? maximum : m_value->get<std::int64_t>();
    if (tooLarge || value < minimum || value > maximum) {
        fail(fmt::format("is {}; it {}", m_value->dump(), range()));
        return minimum;
    }
    return value;
}

double JsonCursor::number(double minimum, double maximum) const {
    if (!m_value->is_number()) {
        fail("must be a number");
        return minimum;
    }
    const double value = m_value->get<double>();
    if (!std::isfinite(value) || value < minimum || value > maximum) {
        fail(fmt::format("is {}; it must be a number from {} to {}", m_value->dump(), minimum, maximum));
        return minimum;
    }
    return value;
}

bool JsonCursor::boolean() const {
    if (!m_value->is_boolean()) {
        fail("must be true or false");
        return false;
    }
    return m_value->get<bool>();
}

std::string JsonCursor::text(std::size_t maximumLength) const {
    if (!m_value->is_string()) {
        fail("must be a string");
        return {};
    }
    const auto& value = m_value->get_ref<const std::string&>();
    if (value.size() > maximumLength) {
        fail(fmt::format("has {} characters, more than {}", value.size(), maximumLength));
        return {};
    }
    return value;
}

void JsonCursor::expectOnly(std::initializer_list<std::string_view> known) const {
    if (!m_value->is_object())
        return;
    for (auto member = m_value->begin(); member != m_value->end(); ++member) {
        const std::string& key = member.key();
        if (std::find(known.begin(), known.end(), key) != known.end())
            continue;
        const std::string path = (m_path.empty() ? "" : m_path + ".") + shortened(key);
        std::string pattern = withoutIndices(path);
        auto& unknown = m_document->unknown;
        const auto again = std::find_if(unknown.begin(), unknown.end(),
                                        [&](const UnknownKey& other) { return other.pattern == pattern; });
        if (again != unknown.end()) {
            ++again->count;
        } else if (unknown.size() == kUnknownNamed) {
            ++m_document->unnamed;
        } else {
            unknown.push_back({path, std::move(pattern), std::string(nearestWord(key, known))});
        }
    }
}

std::vector<std::string> JsonCursor::unknownKeys() const {
    std::vector<std::string> sentences;
    for (const UnknownKey& unknown : m_document->unknown) {
        const std::string others = unknown.count > 1 ? fmt::format(", as are {} more like it", unknown.count - 1) : "";
        sentences.push_back(
            fmt::format("{}: {} is not a key that is known here and is ignored{}; the nearest known key is \"{}\"",
                        m_document->file, unknown.path, others, unknown.nearest));
    }
    if (m_document->unnamed > 0)
        sentences.push_back(fmt::format("{}: {} more keys are ignored, since they are not known here", m_document->file,
                                        m_document->unnamed));
    return sentences;
}

bool JsonCursor::isNull() const {
    return m_value->is_null();
}
bool JsonCursor::isObject() const {
    return m_value->is_object();
}
bool JsonCursor::isArray() const {
    return m_value->is_array();
}
bool JsonCursor::isString() const {
    return m_value->is_string();
}
bool JsonCursor::isNumber() const {
    return m_value->is_number();
}

} // namespace shardscope::contract
