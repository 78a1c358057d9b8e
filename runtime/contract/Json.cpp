// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>

namespace shardscope::contract {

namespace {

/// Refuses what nlohmann accepts and we do not: duplicate keys and unbounded nesting. A pass of its own, since with a
/// callback the library looks through the whole container after every element of it.
class StructureGuard final : public nlohmann::json_sax<Json> {
public:
    const std::string& message() const { return m_message; }

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override {
        m_keys.emplace_back();
        return descend();
    }
    bool key(string_t& name) override {
        if (m_keys.back().insert(name).second)
            return true;
        m_message = fmt::format("has the key \"{}\" twice in one object", name);
        return false;
    }
    bool end_object() override {
        m_keys.pop_back();
        --m_depth;
        return true;
    }
    bool start_array(std::size_t) override { return descend(); }
    bool end_array() override {
        --m_depth;
        return true;
    }
    /// The parser that makes the document will say so again.
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

private:
    bool descend() {
        if (++m_depth > kMaximumJsonDepth)
            m_message = fmt::format("is nested deeper than {} levels", kMaximumJsonDepth);
        return m_message.empty();
    }

    std::vector<std::unordered_set<std::string>> m_keys; ///< of the objects that are open
    int m_depth = 0;
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

} // namespace

Result<Json> parseJson(std::string_view text, std::string_view file) {
    StructureGuard guard;
    try {
        if (!Json::sax_parse(text, &guard) && !guard.message().empty())
            return badInput(fmt::format("{}: {}", file, guard.message()));
        return Json::parse(text);
    } catch (const Json::exception& exception) {
        // "[json.exception.parse_error.101] parse error at line 3, column 5: ..." without the library's own prefix.
        std::string_view what = exception.what();
        if (const auto bracket = what.find("] "); bracket != std::string_view::npos)
            what.remove_prefix(bracket + 2);
        return badInput(fmt::format("{}: is not valid JSON: {}", file, what));
    }
}

Result<std::string> readTextFile(const std::string& path, std::int64_t maximumBytes) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0)
        return badInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return badInput(fmt::format("{}: is not a regular file", path));
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

Result<Json> readJsonFile(const std::string& path, std::int64_t maximumBytes) {
    return readTextFile(path, maximumBytes).and_then([&](const std::string& text) { return parseJson(text, path); });
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
    m_document->error = Error{ErrorKind::BadInput, fmt::format("{}: {} {}", m_document->file, place, message)};
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
        JsonCursor(&kNull, path, m_document).fail("is missing");
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
