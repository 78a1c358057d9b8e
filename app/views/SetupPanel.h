// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/Card.h"

#include <QWidget>

#include <functional>

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLineEdit;
class QPushButton;
class QToolButton;

namespace shardscope::app {

class Document;
struct Choices;

/// Rows of "name ... value" in a card.
class FactRows : public QWidget {
    Q_OBJECT
public:
    explicit FactRows(QWidget* parent = nullptr);
    struct Fact {
        QString name;
        QString value;
        QString hint; ///< shown on hover
        bool isStrong = false;
        bool operator==(const Fact&) const = default;
    };
    void setFacts(const std::vector<Fact>& facts);

private:
    QGridLayout* m_grid;
    std::vector<Fact> m_facts;
};

/// The left column: what is trained, on what, and how.
class SetupPanel : public QWidget {
    Q_OBJECT
public:
    explicit SetupPanel(Document& document, QWidget* parent = nullptr);
    /// For the command palette: puts the cursor into a field.
    void focusField(int index);
    std::vector<QString> fieldNames() const;
    void setMeasuring(bool running);

Q_SIGNALS:
    void openGraphRequested();
    void openClusterRequested();
    void measureRequested();

protected:
    void changeEvent(QEvent* event) override;

private:
    /// One row of the training card: a name, a field and an arrow back to automatic.
    struct Field {
        QString name;
        QComboBox* editor = nullptr;
        QToolButton* reset = nullptr;
        std::function<bool(const Choices&)> isOwn;
        std::function<QString(const Choices&)> ownText;
        std::function<QString()> automaticText;
    };
    void addField(QGridLayout* grid, const QString& name, const QStringList& items, bool isEditable,
                  const std::function<bool(Choices&, const QString&)>& apply,
                  const std::function<void(Choices&)>& reset, const std::function<bool(const Choices&)>& isOwn,
                  const std::function<QString(const Choices&)>& ownText, const std::function<QString()>& automaticText,
                  const QString& hint);
    void buildTraining(Card* card);
    void showGraph();
    void showCluster();
    void showTraining();

    Document& m_document;
    FactRows* m_graphFacts;
    QLabel* m_graphNotes;
    FactRows* m_clusterFacts;
    QLabel* m_clusterNotes;
    QPushButton* m_measure = nullptr;
    std::vector<Field> m_fields;
    QCheckBox* m_allowed[3] = {};
};

} // namespace shardscope::app
