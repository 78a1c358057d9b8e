// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "engine/support/FloatReference.h"
#include "engine/support/PortableDevice.h"

namespace shardscope::testing {

using engine::ConstElementMatrix;
using engine::ConstElements;
using engine::ElementMatrix;
using engine::Elements;
using engine::ElementType;

/// Numbers in the memory of a kernel, of either type.
class Memory {
public:
    Memory(ElementType type, const Floats& values) : m_type(type), m_bytes(values.size() * 4) {
        for (std::size_t i = 0; i < values.size(); ++i)
            PortableKernels<LoopLauncher>::put(*this, static_cast<std::int64_t>(i), static_cast<double>(values[i]),
                                               engine::Write::Overwrite);
        m_count = values.size();
    }
    Memory(ElementType type, std::size_t count, float value = 0) : Memory(type, Floats(count, value)) {}
    operator Elements() { return {m_bytes.data(), m_type}; }
    operator ConstElements() const { return {m_bytes.data(), m_type}; }
    Floats floats() const {
        Floats values(m_count);
        for (std::size_t i = 0; i < m_count; ++i)
            values[i] = static_cast<float>(
                PortableKernels<LoopLauncher>::read(ConstElements(*this), static_cast<std::int64_t>(i)));
        return values;
    }
    Doubles doubles() const { return toDoubles(floats()); }
    ElementMatrix matrix(std::int64_t rows, std::int64_t columns) { return {*this, rows, columns, columns}; }
    ConstElementMatrix constMatrix(std::int64_t rows, std::int64_t columns) const {
        return {*this, rows, columns, columns};
    }

private:
    ElementType m_type;
    std::vector<std::byte> m_bytes;
    std::size_t m_count = 0;
};

} // namespace shardscope::testing
