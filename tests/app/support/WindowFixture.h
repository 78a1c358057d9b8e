// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/look/Theme.h"
#include "app/views/CommandPalette.h"
#include "app/window/MainWindow.h"

#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <memory>

namespace shardscope::test {

/// A window of its own for every test, and what tests do with one.
class WindowFixture : public QObject {
protected:
    std::unique_ptr<app::Theme> m_theme;
    std::unique_ptr<app::MainWindow> m_window;
    QTemporaryDir m_folder;

    const QString m_fake = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-trainer.sh");
    app::Document& document() { return m_window->document(); }
    QString path(const QString& name) const { return m_folder.filePath(name); }
    void renew() {
        m_window = std::make_unique<app::MainWindow>(*m_theme);
        m_window->resize(1280, 800);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
    }
    bool settle() {
        return QTest::qWaitFor(
            [this] {
                const auto answer = document().answer();
                return answer && answer->choices == document().choicesPointer() && answer->isFinal;
            },
            60000);
    }
    bool open(const QString& graph = "gpt2", const QString& cluster = "8x-titan-pcie3", std::int64_t budget = 0) {
        document().open(graph, cluster, budget);
        return QTest::qWaitFor([this] { return document().isOpen(); }, 60000) && settle();
    }
    /// Types into whatever has the focus, as a person without a mouse would.
    static void type(const QString& text) {
        for (const QChar c : text)
            QTest::keyClick(QApplication::focusWidget(), c.toLatin1());
    }
    /// The palette's first match for a text.
    void command(const QString& text) {
        QTest::keyClick(m_window.get(), Qt::Key_K, Qt::ControlModifier);
        QTRY_VERIFY(m_window->palette().isVisible());
        type(text);
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QTRY_VERIFY(!m_window->palette().isVisible());
    }
    app::TrainSettings settings(const QString& behaviour, const QString& folder) const {
        app::TrainSettings settings;
        settings.data = behaviour;
        settings.steps = 5;
        settings.runDirectory = path(folder);
        return settings;
    }
    /// The fake trainer reads no plan.
    void train(const app::TrainSettings& chosen) {
        const contract::Plan nothing;
        m_window->trainer().start(nothing, chosen);
    }
    QPushButton* button(const QString& text) {
        for (auto* candidate : m_window->findChildren<QPushButton*>())
            if (candidate->isVisible() && candidate->text().contains(text))
                return candidate;
        return nullptr;
    }
    void prepare() {
        QStandardPaths::setTestModeEnabled(true);
        QApplication::setOrganizationName("shardscope-test");
        QSettings().clear();
        m_theme = std::make_unique<app::Theme>(*qApp);
    }
};

} // namespace shardscope::test
