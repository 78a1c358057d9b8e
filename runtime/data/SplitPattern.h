// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shardscope::engine {

/// A regular expression that cuts text into words. Tokenizer files are written for Oniguruma, we match with PCRE2: what
/// both understand differently is rewritten, and refused where it cannot be.
class SplitPattern {
public:
    /// Whether a piece is a match or lies between two.
    enum class Piece { Match, Between };
    using Sink = std::function<contract::Result<void>(std::string_view piece, Piece kind)>;

    /// Errors: BadInput, beginning with `where`: syntax that is refused, or backtracking that grows without bound.
    static contract::Result<SplitPattern> compile(std::string_view pattern, const std::string& where);

    SplitPattern(SplitPattern&&) noexcept;
    SplitPattern& operator=(SplitPattern&&) noexcept;
    ~SplitPattern();

    /// Gives every piece of `text` (valid UTF-8) to `sink` in order; none is empty. Errors: those of `sink`; BadInput
    /// when a match needs too many steps, or the text more time than any sensible pattern takes.
    contract::Result<void> split(std::string_view text, const Sink& sink);

private:
    struct Compiled;
    struct Attempt {
        bool matches = false;
        std::size_t end = 0;
    };
    SplitPattern(std::unique_ptr<Compiled> compiled, std::string where);
    /// A match that begins at byte `at`.
    contract::Result<Attempt> matchAt(std::string_view text, std::size_t at);
    contract::Result<void> checkTime(std::size_t bytes);
    contract::Result<void> tryOut();

    std::unique_ptr<Compiled> m_compiled;
    std::string m_where;
    std::uint32_t m_uncheckedAttempts = 0;
    double m_startSeconds = 0; ///< of processor time, at the first piece
    double m_bytes = 0;        ///< that have been split since
};

/// The same expression in the words of PCRE2. Errors: BadInput, saying what cannot be said in them.
contract::Result<std::string> translatePattern(std::string_view pattern);

} // namespace shardscope::engine
