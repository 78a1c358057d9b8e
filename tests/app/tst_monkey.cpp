// SPDX-License-Identifier: GPL-3.0-or-later
// Clicks, types, drags, drops and resizes at random. A few seconds by default; longer by hand, best under a sanitizer:
//   SHARDSCOPE_MONKEY_SECONDS=3600 SHARDSCOPE_MONKEY_SEED=7 tst_monkey
// SHARDSCOPE_MONKEY_STALL=200 also fails when the event loop is away for more milliseconds than that.
#include "app/support/WindowFixture.h"
#include "app/views/CommandPalette.h"
#include "app/views/TrainCard.h"
#include "app/window/Actions.h"
#include "app/window/MainWindow.h"

#include <QAbstractButton>
#include <QAction>
#include <QComboBox>
#include <QDropEvent>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QTest>
#include <QTimer>
#include <QWheelEvent>

#include <algorithm>
#include <random>

using namespace shardscope;
using namespace shardscope::app;

namespace {

/// Knows which event took longest, without those that were handled inside it.
class WatchedApplication : public QApplication {
public:
    using QApplication::QApplication;
    bool notify(QObject* receiver, QEvent* event) override {
        const QString what = QStringLiteral("%1 of %2 in %3")
                                 .arg(static_cast<int>(event->type()))
                                 .arg(receiver->metaObject()->className(), receiver->objectName());
        const double before = m_inside;
        QElapsedTimer clock;
        clock.start();
        const bool isTaken = QApplication::notify(receiver, event);
        const double all = static_cast<double>(clock.nsecsElapsed()) / 1e6;
        const double own = all - (m_inside - before);
        m_inside = before + all;
        if (own > longest) {
            longest = own;
            longestWhat = what;
        }
        return isTaken;
    }
    double longest = 0; ///< milliseconds
    QString longestWhat;

private:
    double m_inside = 0; ///< of events handled so far
};

} // namespace

class MonkeyTest : public test::WindowFixture {
    Q_OBJECT
private:
    std::mt19937_64 m_random;
    QString m_last; ///< what was done last, for whoever reads a crash
    QStringList m_files;
    // How long the event loop was away: a beat that comes late tells.
    QTimer m_beat;
    QElapsedTimer m_sinceBeat;
    double m_longest = 0; ///< milliseconds
    QString m_during, m_doing;

    int below(int bound) { return static_cast<int>(m_random() % static_cast<std::uint64_t>(std::max(1, bound))); }
    bool oneIn(int count) { return below(count) == 0; }

    void makeFiles() {
        const auto write = [this](const QString& name, const QByteArray& content) {
            QFile file(path(name));
            if (file.open(QIODevice::WriteOnly))
                file.write(content);
            m_files << path(name);
        };
        write("broken.json", "{\"model_type\": ");
        write("noise.bin", QByteArray(3000, '\xfe'));
        write("config.json", R"({"model_type":"gpt2","n_layer":3,"n_embd":96,"n_head":3,"vocab_size":1000,)"
                             R"("n_positions":128,"architectures":["GPT2LMHeadModel"]})");
        write("old.shardscope", "{\"format\":\"shardscope-session\",\"version\":1}");
        m_files << path("missing") << m_folder.path();
    }
    void freshWindow() {
        m_window = std::make_unique<MainWindow>(*m_theme);
        m_window->setAutosavePath(path("auto/last.shardscope"));
        // Stand-ins for what would load the machine or leave it.
        m_window->trainer().setProgram(m_fake);
        m_window->measuring().setProgram(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-measure.sh"));
        m_window->measuring().setOutput(path("measured.cluster.json"));
        m_window->resize(1280, 800);
        m_window->show();
    }
    /// A visible widget, the deeper the likelier.
    QWidget* anyWidget() {
        QList<QWidget*> visible;
        for (QWidget* widget : m_window->findChildren<QWidget*>())
            if (widget->isVisible() && widget->width() > 2 && widget->height() > 2)
                visible << widget;
        return visible.isEmpty() ? m_window.get() : visible[below(static_cast<int>(visible.size()))];
    }
    QPoint anyPoint(const QWidget& widget) { return {below(widget.width()), below(widget.height())}; }
    Qt::KeyboardModifiers anyModifiers() {
        return oneIn(6) ? Qt::ShiftModifier : Qt::KeyboardModifiers(Qt::NoModifier);
    }

    void click() {
        QWidget* const widget = anyWidget();
        m_last = QStringLiteral("click %1 %2").arg(widget->metaObject()->className(), widget->objectName());
        QTest::mouseClick(widget, Qt::LeftButton, anyModifiers(), anyPoint(*widget));
    }
    void drag() {
        QWidget* const widget = anyWidget();
        m_last = QStringLiteral("drag %1").arg(widget->metaObject()->className());
        const QPointer<QWidget> alive(widget);
        QTest::mousePress(widget, Qt::LeftButton, anyModifiers(), anyPoint(*widget));
        for (int i = below(12); i > 0 && alive; --i)
            QTest::mouseMove(widget, anyPoint(*widget));
        if (alive)
            QTest::mouseRelease(widget, Qt::LeftButton, Qt::NoModifier, anyPoint(*widget));
    }
    void wheel() {
        QWidget* const widget = anyWidget();
        m_last = QStringLiteral("wheel %1").arg(widget->metaObject()->className());
        const QPointF at = anyPoint(*widget);
        QWheelEvent event(at, widget->mapToGlobal(at), {}, {0, 120 * (below(7) - 3)}, Qt::NoButton, anyModifiers(),
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(widget, &event);
    }
    void press() {
        static constexpr Qt::Key kKeys[] = {
            Qt::Key_Tab,   Qt::Key_Backtab, Qt::Key_Left, Qt::Key_Right,     Qt::Key_Up,     Qt::Key_Down,
            Qt::Key_Home,  Qt::Key_End,     Qt::Key_Plus, Qt::Key_Minus,     Qt::Key_PageUp, Qt::Key_PageDown,
            Qt::Key_Space, Qt::Key_Return,  Qt::Key_R,    Qt::Key_K,         Qt::Key_S,      Qt::Key_P,
            Qt::Key_0,     Qt::Key_9,       Qt::Key_E,    Qt::Key_Backspace, Qt::Key_Escape, Qt::Key_Delete};
        const Qt::Key key = kKeys[below(static_cast<int>(std::size(kKeys)))];
        QWidget* const focus = QApplication::focusWidget() ? QApplication::focusWidget() : m_window.get();
        m_last = QStringLiteral("key %1 in %2").arg(key).arg(focus->metaObject()->className());
        QTest::keyClick(focus, key, anyModifiers());
    }
    void typeText() {
        static const char* const kTexts[] = {
            "gpt2",         "16GiB", "-1", "999999999999",     "0",     "1e400", "there", "nan", "llama", "8",
            "h.0.mlp.c_fc", "3e-4",  "",   "builtin:addition", "stall", "crash", "abc"};
        QWidget* const focus = QApplication::focusWidget();
        if (!focus)
            return;
        const QString text = QString::fromLatin1(kTexts[below(static_cast<int>(std::size(kTexts)))]);
        m_last = QStringLiteral("text %1 in %2").arg(text, focus->metaObject()->className());
        const QPointer<QWidget> alive(focus);
        for (const QChar c : text)
            if (alive)
                QTest::keyClick(focus, c.toLatin1());
    }
    void act() {
        QList<QAction*> actions;
        for (QAction* action : m_window->findChildren<QAction*>())
            if (action->isEnabled() && !action->isSeparator() && !action->menu() &&
                action->shortcut() != QKeySequence(QKeySequence::Quit))
                actions << action;
        if (actions.isEmpty())
            return;
        QAction* const action = actions[below(static_cast<int>(actions.size()))];
        m_last = "action " + action->text();
        action->trigger();
    }
    void drop() {
        const QString file = m_files[below(static_cast<int>(m_files.size()))];
        m_last = "drop " + file;
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(file)});
        QDropEvent event(QPointF(100, 100), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(m_window.get(), &event);
    }
    void openSomething() {
        static const std::pair<const char*, const char*> kPairs[] = {
            {"gpt2", "8x-titan-pcie3"},  {"gpt2-xl", "8x-titan-pcie3"}, {"llama-3.1-8b", "2x8-h100"},
            {"demo-small", "local-cpu"}, {"mixtral-8x7b", "8x-h200"},   {"gpt3-175b", "16x8-h100"},
            {"t5-base", "1x-h200"},      {"no-such-graph", "local"}};
        const auto& [graph, cluster] = kPairs[below(static_cast<int>(std::size(kPairs)))];
        m_last = QStringLiteral("open %1 on %2").arg(graph, cluster);
        document().open(graph, cluster, 0);
    }
    void resizeWindow() {
        m_last = "resize";
        m_window->resize(1000 + below(1200), 640 + below(800));
    }
    void closeWindow() {
        m_last = "close";
        m_window->trainer().stop();
        m_window->trainer().stop();
        m_window->close();
        m_window.reset();
        takeBeat();
        freshWindow();
        m_sinceBeat.restart(); // a start is no absence; bench_window times it
    }
    void takeBeat() {
        const double away = static_cast<double>(m_sinceBeat.nsecsElapsed()) / 1e6 - m_beat.interval();
        if (away > m_longest) {
            m_longest = away;
            m_during = m_doing;
        }
        m_sinceBeat.restart();
    }
    void step() {
        // Dialogs are not for monkeys: they reach files outside the test's folder.
        for (QWidget* top : QApplication::topLevelWidgets())
            if (auto* dialog = qobject_cast<QDialog*>(top); dialog && dialog->isVisible())
                dialog->reject();
        for (auto* dialog : m_window->findChildren<QDialog*>())
            dialog->reject();
        if (QWidget* popup = QApplication::activePopupWidget(); popup && oneIn(2))
            popup->close();
        const int what = below(1000);
        if (what < 330)
            click();
        else if (what < 530)
            press();
        else if (what < 630)
            drag();
        else if (what < 730)
            wheel();
        else if (what < 830)
            typeText();
        else if (what < 920)
            act();
        else if (what < 940)
            drop();
        else if (what < 965)
            openSomething();
        else if (what < 995)
            resizeWindow();
        else
            closeWindow();
    }

private Q_SLOTS:
    void initTestCase() {
        prepare();
        QDir::setCurrent(m_folder.path());
        qputenv("XDG_CACHE_HOME", path("cache").toLocal8Bit());
        QDir().mkpath(path("commands"));
        QFile::link(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-ssh.sh"), path("commands/ssh"));
        qputenv("FAKE_SSH_HOME", m_folder.path().toLocal8Bit());
        qputenv("PATH", path("commands").toLocal8Bit() + ':' + qgetenv("PATH"));
        makeFiles();
    }
    void anythingGoes() {
        const int seconds = qEnvironmentVariableIntValue("SHARDSCOPE_MONKEY_SECONDS");
        const auto seed = qEnvironmentVariableIsSet("SHARDSCOPE_MONKEY_SEED")
                              ? qEnvironmentVariable("SHARDSCOPE_MONKEY_SEED").toULongLong()
                              : 1;
        m_random.seed(seed);
        freshWindow();
        m_beat.setTimerType(Qt::PreciseTimer);
        connect(&m_beat, &QTimer::timeout, this, &MonkeyTest::takeBeat);
        m_sinceBeat.start();
        m_beat.start(5);
        QElapsedTimer clock;
        clock.start();
        std::int64_t steps = 0;
        for (const qint64 end = 1000 * (seconds > 0 ? seconds : 10); clock.elapsed() < end; ++steps) {
            step();
            m_doing = m_last;
            QTest::qWait(below(12));
            if (steps % 500 == 0 && seconds > 60)
                qInfo("%lld s, %lld steps, longest absence %.0f ms (%s)",
                      static_cast<long long>(clock.elapsed() / 1000), static_cast<long long>(steps), m_longest,
                      qPrintable(m_during));
        }
        qInfo("seed %llu: %lld steps; the event loop was away for %.0f ms at most, after: %s",
              static_cast<unsigned long long>(seed), static_cast<long long>(steps), m_longest, qPrintable(m_during));
        const auto* application = static_cast<WatchedApplication*>(qApp);
        qInfo("the longest event alone: %.0f ms, type %s", application->longest, qPrintable(application->longestWhat));
        m_window->trainer().stop();
        m_window->trainer().stop();
        m_window.reset();
        QVERIFY(steps > 0);
        if (const int bound = qEnvironmentVariableIntValue("SHARDSCOPE_MONKEY_STALL"); bound > 0)
            QVERIFY2(m_longest <= bound, qPrintable(m_during));
    }
};

int main(int count, char** arguments) {
    WatchedApplication application(count, arguments);
    MonkeyTest test;
    // An hour of the platform's warnings must not silence what the test itself has to say.
    return QTest::qExec(&test, QApplication::arguments() << "-maxwarnings" << "0");
}
#include "tst_monkey.moc"
