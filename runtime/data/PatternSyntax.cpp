// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/SplitPattern.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

namespace shardscope::engine {

namespace {

constexpr std::size_t kMaximumLength = 8192;

/// A class by its name in Oniguruma, and what stands for it between brackets in PCRE2. PCRE2's own \s has U+180E, and
/// its \w other letters than Unicode's.
struct ClassEscape {
    char name;
    std::string_view members;
    std::string_view others; ///< what the capital letter stands for between brackets; empty: it cannot be said
};
constexpr std::array<ClassEscape, 3> kClassEscapes{{{'s', "\\p{White_Space}", "\\P{White_Space}"},
                                                    {'d', "\\p{Nd}", "\\P{Nd}"},
                                                    {'w', "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}", ""}}};

class Translation {
public:
    explicit Translation(std::string_view pattern) : m_pattern(pattern) {}

    contract::Result<std::string> run() {
        if (m_pattern.size() > kMaximumLength)
            return contract::badInput(
                fmt::format("has {} bytes, more than the {} it may have", m_pattern.size(), kMaximumLength));
        while (m_at < m_pattern.size() && m_refusal.empty())
            m_inClass ? classElement() : element();
        if (!m_refusal.empty())
            return contract::badInput(std::move(m_refusal));
        return std::move(m_text);
    }

private:
    bool next(std::string_view text) const { return m_pattern.substr(m_at).starts_with(text); }
    void copy(std::size_t count) {
        m_text += m_pattern.substr(m_at, count);
        m_at += count;
    }
    void refuse(std::string_view what, std::string_view why) {
        m_refusal = fmt::format("has {} at byte {}: {}", what, m_at, why);
    }

    void element() {
        const char c = m_pattern[m_at];
        if (c == '\\')
            return escape();
        if (c == '(')
            return group();
        if (c == '{')
            return interval();
        if (c == '[') {
            m_inClass = true;
            copy(next("[^") ? 2 : 1);
            if (next("]"))
                refuse("an empty class", "a bracket in a class must be escaped");
            return;
        }
        copy(1);
    }

    void classElement() {
        const char c = m_pattern[m_at];
        if (c == '\\')
            return escape();
        if (c == '[' || next("&&"))
            return refuse(c == '[' ? "[ in a class" : "&& in a class",
                          "classes in classes are not read; escape it with \\ if it is meant as a character");
        m_inClass = c != ']';
        copy(1);
    }

    void group() {
        if (!next("(?") && !next("(*"))
            return copy(1);
        for (const std::string_view known : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:", "(?-i:", "(?i)"})
            // Further on, engines disagree how far (?i) reaches.
            if (next(known) && (known != "(?i)" || m_at == 0))
                return copy(known.size());
        refuse("a group that is not read",
               "known are (?:, (?=, (?!, (?<=, (?<!, (?>, (?i:, (?-i:, and (?i) to begin with");
    }

    /// {n}, {n,} and {n,m}; any other brace is a character.
    void interval() {
        std::size_t end = m_at + 1;
        while (end < m_pattern.size() &&
               (std::isdigit(static_cast<unsigned char>(m_pattern[end])) != 0 || m_pattern[end] == ','))
            ++end;
        if (end == m_at + 1 || end >= m_pattern.size() || m_pattern[end] != '}') {
            m_text += '\\';
            return copy(1);
        }
        const std::string_view inside = m_pattern.substr(m_at + 1, end - m_at - 1);
        if (inside.front() == ',')
            return refuse("an interval without its least number", "write {0,...}");
        copy(end + 1 - m_at);
        if (next("+") || (next("?") && inside.find(',') == std::string_view::npos))
            refuse("+ or ? after an interval", "engines disagree what it means; use a group");
    }

    void escape() {
        if (m_at + 1 >= m_pattern.size())
            return refuse("\\", "nothing follows it");
        const char c = m_pattern[m_at + 1];
        if (static_cast<unsigned char>(c) >= 0x80 || std::ispunct(static_cast<unsigned char>(c)) != 0 ||
            c == ' ') // stands for itself
            return copy(2);
        for (const ClassEscape& known : kClassEscapes) {
            const bool negated = c == std::toupper(static_cast<unsigned char>(known.name));
            if (c != known.name && !negated)
                continue;
            if (negated && m_inClass && known.others.empty())
                break;
            if (m_inClass)
                m_text += negated ? known.others : known.members;
            else
                m_text += fmt::format("[{}{}]", negated ? "^" : "", known.members);
            m_at += 2;
            return;
        }
        switch (c) {
        case 'r':
        case 'n':
        case 't':
        case 'f':
            return copy(2);
        case 'v':
            m_text += "\\x0b";
            m_at += 2;
            return;
        case 'p':
        case 'P':
            return property();
        case 'x':
        case 'u':
            return codePoint();
        default:
            refuse(fmt::format("\\{}", c), "this escape is not read here");
        }
    }

    void property() {
        const std::size_t end = m_pattern.find('}', m_at);
        if (m_at + 2 >= m_pattern.size() || m_pattern[m_at + 2] != '{' || end == std::string_view::npos)
            return refuse("\\p", "a name in braces must follow it");
        copy(end + 1 - m_at);
    }

    void codePoint() {
        const bool braces = m_at + 2 < m_pattern.size() && m_pattern[m_at + 2] == '{' && m_pattern[m_at + 1] == 'x';
        const std::size_t begin = m_at + (braces ? 3 : 2);
        const std::size_t most = braces ? 8 : m_pattern[m_at + 1] == 'u' ? 4 : 2;
        std::size_t end = begin;
        while (end < m_pattern.size() && end - begin < most &&
               std::isxdigit(static_cast<unsigned char>(m_pattern[end])) != 0)
            ++end;
        const bool closed = !braces || (end < m_pattern.size() && m_pattern[end] == '}');
        if (end == begin || !closed || (!braces && end - begin != most))
            return refuse("a code point", "it must be \\xHH, \\x{H...} or \\uHHHH");
        m_text += fmt::format("\\x{{{}}}", m_pattern.substr(begin, end - begin));
        m_at = end + (braces ? 1 : 0);
    }

    std::string_view m_pattern;
    std::size_t m_at = 0;
    bool m_inClass = false;
    std::string m_text;
    std::string m_refusal;
};

} // namespace

contract::Result<std::string> translatePattern(std::string_view pattern) {
    return Translation(pattern).run();
}

} // namespace shardscope::engine
