// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/OptimizerStep.h"

#include "runtime/network/Initializer.h"

#include <cmath>

namespace shardscope::engine {

OptimizerStep::OptimizerStep(const contract::Optimizer& optimizer, std::int64_t step, double gradientScale,
                             double learningRate)
    : m_isSgd(optimizer.name == "sgd"), m_weightDecay(static_cast<float>(optimizer.weightDecay)),
      m_step(static_cast<std::uint64_t>(step)) {
    const auto [beta1, beta2] = optimizer.betas;
    m_sgd.gradientScale = m_adamW.gradientScale = static_cast<float>(gradientScale);
    m_sgd.learningRate = m_adamW.learningRate = static_cast<float>(learningRate);
    m_sgd.momentum = m_adamW.beta1 = static_cast<float>(beta1);
    m_adamW.beta2 = static_cast<float>(beta2);
    m_adamW.epsilon = static_cast<float>(optimizer.epsilon);
    m_adamW.firstCorrection = static_cast<float>(1.0 / (1.0 - std::pow(beta1, static_cast<double>(step))));
    m_adamW.secondCorrection = static_cast<float>(1.0 / (1.0 - std::pow(beta2, static_cast<double>(step))));
}

void OptimizerStep::update(Kernels& kernels, std::int32_t op, const TensorState& tensor, int rank) const {
    const TensorState::Owned owned = tensor.owned(rank);
    TensorUpdate values{tensor.decayed ? m_weightDecay : 0.0F,
                        owned.count,
                        owned.gradient,
                        owned.weight,
                        owned.master,
                        owned.firstMoment,
                        owned.secondMoment,
                        mixBits(m_step ^ mixBits(static_cast<std::uint64_t>(op))),
                        tensor.firstRow * tensor.columns + owned.begin};
    if (m_isSgd)
        kernels.sgdMomentum(m_sgd, values);
    else
        kernels.adamW(m_adamW, values);
}

} // namespace shardscope::engine
