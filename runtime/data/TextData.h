// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Dataset.h"

namespace shardscope::engine {

/// Text as one long row of ids: the bytes of a file, or of a folder's files one behind the other, or the tokens that a
/// tokenizer makes of each. The last tenth is held out; training samples are windows at random places of the rest.
class TextData {
public:
    /// Without a tokenizer: bytes. Errors: BadInput.
    static contract::Result<std::unique_ptr<Dataset>> open(const DatasetRequest& request);
    /// Every rank encodes all of the text: the same ids come out everywhere, whether or not ranks share a disk and
    /// whoever starts them, in less time than they would need to agree on who does it. Errors: BadInput; Interrupted.
    static contract::Result<std::unique_ptr<Dataset>> encode(const DatasetRequest& request, Tokenizer& tokenizer);
    /// Whether encode() would succeed, as far as the first tokens tell: no more of the text is encoded than is needed
    /// to know that it is long enough.
    static contract::Result<void> check(const DatasetRequest& request, Tokenizer& tokenizer);
};

} // namespace shardscope::engine
