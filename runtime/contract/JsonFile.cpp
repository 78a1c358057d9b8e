// SPDX-License-Identifier: GPL-3.0-or-later
// JSON as text and as a file; places in a document are in Json.cpp.
#include "runtime/contract/Json.h"
#include "runtime/contract/Utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace shardscope::contract {

namespace {

constexpr std::size_t kKeyShown = 64; ///< bytes of a key of a file in a message

/// Makes the document and refuses what nlohmann's own parser accepts: duplicate keys, unbounded nesting, and values
/// beyond a number, since a value of two bytes in a file takes a hundred in memory.
class DocumentBuilder final : public nlohmann::json_sax<Json> {
public:
    explicit DocumentBuilder(std::size_t maximumValues)
        : m_left(maximumValues), m_maximumValues(maximumValues),
          m_maximumMembers(std::max(maximumValues / 4, std::size_t{1} << 17)) {}

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
        return isNew || fail(fmt::format("has the key \"{}\" twice in one object", shortened(name, kKeyShown)));
    }
    bool end_object() override { return ascend(); }
    bool start_array(std::size_t) override { return descend(Json::array()); }
    bool end_array() override { return ascend(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception) override {
        // "[json.exception.parse_error.101] parse error at line 3, column 5: ..." without the library's own prefix.
        std::string_view what = exception.what();
        if (const auto bracket = what.find("] "); bracket != std::string_view::npos)
            what.remove_prefix(bracket + 2);
        return fail("is not valid JSON: " + withoutMiddle(what));
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
        if (!m_open.empty() && m_open.back()->size() > m_maximumMembers)
            return fail(fmt::format("has more than {} values in one list or object", m_maximumMembers));
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
    std::size_t m_maximumMembers; ///< of one list or object: what a file is about is not one list
    std::string m_message;
};

/// Closes a file descriptor at the end of a scope.
class Descriptor {
public:
    explicit Descriptor(int value) : m_value(value) {}
    Descriptor(Descriptor&& other) noexcept : m_value(std::exchange(other.m_value, -1)) {}
    ~Descriptor() {
        if (m_value >= 0)
            ::close(m_value);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    Descriptor& operator=(Descriptor&&) = delete;
    int get() const { return m_value; }
    bool closeNow() {
        const int value = std::exchange(m_value, -1);
        return ::close(value) == 0;
    }

private:
    int m_value;
};

struct RegularFile {
    Descriptor descriptor;
    std::int64_t bytes = 0;
};

Result<RegularFile> openRegularFile(const std::string& path, std::int64_t maximumBytes) {
    // Without waiting: a pipe may have no writer.
    RegularFile file{Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))};
    if (file.descriptor.get() < 0)
        return badInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat status {};
    if (::fstat(file.descriptor.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return badInput(fmt::format("{}: is {}", path,
                                    S_ISDIR(status.st_mode) ? "a folder, not a regular file" : "not a regular file"));
    file.bytes = status.st_size;
    if (file.bytes > maximumBytes)
        return badInput(fmt::format("{}: is {} bytes, more than the {} this kind of file may have", path, file.bytes,
                                    maximumBytes));
    return file;
}

/// read() that goes on after a signal.
ssize_t readSome(int descriptor, char* bytes, std::size_t count) {
    ssize_t got = 0;
    do
        got = ::read(descriptor, bytes, count);
    while (got < 0 && errno == EINTR);
    return got;
}

tl::unexpected<Error> cannotBeRead(const std::string& path) {
    return badInput(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

/// The first bytes of a file one by one, so that its text and its document are not in memory together.
class FileBytes {
public:
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = char;
        using difference_type = std::ptrdiff_t;
        using pointer = const char*;
        using reference = const char&;

        Iterator() = default; ///< the end
        explicit Iterator(FileBytes* bytes) : m_bytes(bytes) {}
        const char& operator*() const { return m_bytes->m_buffer[m_bytes->m_at]; }
        Iterator& operator++() {
            if (++m_bytes->m_at == m_bytes->m_count && !m_bytes->fill())
                m_bytes = nullptr;
            return *this;
        }
        bool operator==(const Iterator& other) const { return m_bytes == other.m_bytes; }

    private:
        FileBytes* m_bytes = nullptr;
    };

    FileBytes(int descriptor, std::int64_t bytes) : m_descriptor(descriptor), m_left(static_cast<std::size_t>(bytes)) {}

    Iterator begin() { return fill() ? Iterator(this) : Iterator(); }
    bool failed() const { return m_failed; }

private:
    bool fill() {
        const ssize_t got = readSome(m_descriptor, m_buffer.data(), std::min(m_left, m_buffer.size()));
        m_failed = got < 0;
        m_at = 0;
        m_count = got > 0 ? static_cast<std::size_t>(got) : 0;
        m_left -= m_count;
        return m_count > 0;
    }

    int m_descriptor;
    std::size_t m_left; ///< of the file as it was when it was opened
    bool m_failed = false;
    std::size_t m_at = 0;
    std::size_t m_count = 0;
    std::vector<char> m_buffer = std::vector<char>(std::size_t{64} << 10);
};

} // namespace

Result<Json> parseJson(std::string_view text, std::string_view file, std::size_t maximumValues) {
    DocumentBuilder builder(maximumValues);
    if (!Json::sax_parse(text, &builder))
        return badInput(fmt::format("{}: {}", file, builder.message()));
    return builder.take();
}

Result<std::string> readTextFile(const std::string& path, std::int64_t maximumBytes) {
    const auto file = openRegularFile(path, maximumBytes);
    if (!file)
        return tl::unexpected(file.error());
    std::string text(static_cast<std::size_t>(file->bytes), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t count = readSome(file->descriptor.get(), text.data() + done, text.size() - done);
        if (count < 0)
            return cannotBeRead(path);
        if (count == 0)
            break;
        done += static_cast<std::size_t>(count);
    }
    text.resize(done);
    return text;
}

Result<Json> readJsonFile(const std::string& path, std::int64_t maximumBytes, std::size_t maximumValues) {
    const auto file = openRegularFile(path, maximumBytes);
    if (!file)
        return tl::unexpected(file.error());
    FileBytes bytes(file->descriptor.get(), file->bytes);
    DocumentBuilder builder(maximumValues);
    const bool parsed = Json::sax_parse(bytes.begin(), FileBytes::Iterator(), &builder);
    if (bytes.failed())
        return cannotBeRead(path);
    if (!parsed)
        return badInput(fmt::format("{}: {}", path, builder.message()));
    return builder.take();
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

} // namespace shardscope::contract
