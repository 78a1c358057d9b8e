// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/LossCurve.h"

#include <algorithm>

namespace shardscope::app {

void LossCurve::merge(Bucket& into, const Bucket& other) {
    if (other.low.y() < into.low.y())
        into.low = other.low;
    if (other.high.y() > into.high.y())
        into.high = other.high;
    into.count += other.count;
}

void LossCurve::append(double x, double y) {
    m_last = QPointF(x, y);
    m_lowest = m_size == 0 ? y : std::min(m_lowest, y);
    m_highest = m_size == 0 ? y : std::max(m_highest, y);
    ++m_size;
    const Bucket point{m_last, m_last, 1};
    if (!m_buckets.empty() && m_buckets.back().count < m_perBucket) {
        merge(m_buckets.back(), point);
        return;
    }
    if (m_buckets.size() == kMostBuckets) {
        for (std::size_t i = 0; i < kMostBuckets / 2; ++i) {
            m_buckets[i] = m_buckets[2 * i];
            merge(m_buckets[i], m_buckets[2 * i + 1]);
        }
        m_buckets.resize(kMostBuckets / 2);
        m_perBucket *= 2;
    }
    m_buckets.push_back(point);
}

QList<QPointF> LossCurve::points() const {
    QList<QPointF> points;
    points.reserve(static_cast<qsizetype>(2 * m_buckets.size()));
    for (const Bucket& bucket : m_buckets) {
        const bool isLowFirst = bucket.low.x() <= bucket.high.x();
        points << (isLowFirst ? bucket.low : bucket.high);
        if (bucket.low != bucket.high)
            points << (isLowFirst ? bucket.high : bucket.low);
    }
    return points;
}

} // namespace shardscope::app
