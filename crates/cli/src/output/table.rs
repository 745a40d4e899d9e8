//! Tables without borders, as wide as what is in them or as the terminal.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width,
};
use jobyard_client::Status;

use super::{Colour, Style, escape};

/// Text is wrapped down to this width; a terminal that is narrower still wraps whole lines itself.
const NARROWEST_TEXT: u16 = 16;

/// Blanks between two columns.
const GAP: u16 = 2;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// Never wrapped: ids, words, times.
    Whole(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
    /// Wrapped when the terminal is narrow.
    Text(&'static str),
}

/// A cell's content, escaped when it is rendered.
pub(super) enum Value {
    /// Any text.
    Text(String),
    /// A word with a colour of its own.
    Word(&'static str, Tint),
}

/// What a word's colour says; the word itself says it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    /// Ended well, or can be used.
    Good,
    /// Ended badly, or can't be used.
    Bad,
    /// On its way.
    Active,
    /// Worth a look.
    Odd,
    /// Nothing special.
    Quiet,
}

impl<T: Into<String>> From<T> for Value {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

/// The status as a coloured word.
pub(super) fn status(status: Status) -> Value {
    let tint = match status {
        Status::Success => Tint::Good,
        Status::FinalFailed => Tint::Bad,
        Status::Running => Tint::Active,
        Status::Retry => Tint::Odd,
        Status::Ready | Status::Waiting | Status::Cancelled => Tint::Quiet,
    };
    Value::Word(status.as_str(), tint)
}

/// Rows under a heading; a line that says so when there are none.
pub(super) fn rows<const N: usize>(
    style: &Style,
    columns: [Column; N],
    rows: impl IntoIterator<Item = [Value; N]>,
) -> String {
    let mut table = plain(style);
    table.set_header(columns.map(|column| heading(column, style)));
    for row in rows {
        table.add_row(row.map(|value| cell(value, style)));
    }
    let widths = table.column_max_content_widths();
    for ((column, kind), width) in table.column_iter_mut().zip(columns).zip(widths) {
        column.set_padding((0, GAP));
        column.set_constraint(match kind {
            Column::Whole(_) | Column::Number(_) => ColumnConstraint::ContentWidth,
            Column::Text(_) => ColumnConstraint::LowerBoundary(Width::Fixed(width.min(NARROWEST_TEXT) + GAP)),
        });
        if matches!(kind, Column::Number(_)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    render(&table)
}

/// Names and values, one pair a line; pairs with an empty value are left out.
pub(super) fn pairs(style: &Style, pairs: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let mut table = plain(style);
    for (name, value) in pairs {
        if !matches!(&value, Value::Text(text) if text.is_empty()) {
            table.add_row([Cell::new(name), cell(value, style)]);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, GAP));
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    render(&table)
}

fn plain(style: &Style) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).force_no_tty();
    if let Some(width) = style.width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    if style.colour == Colour::Wanted {
        table.enforce_styling();
        table.style_text_only();
    }
    table
}

fn heading(column: Column, style: &Style) -> Cell {
    let (Column::Whole(name) | Column::Number(name) | Column::Text(name)) = column;
    let cell = Cell::new(name);
    if style.colour == Colour::Wanted { cell.add_attribute(Attribute::Dim) } else { cell }
}

fn cell(value: Value, style: &Style) -> Cell {
    match value {
        Value::Text(text) => Cell::new(escape(&text)),
        Value::Word(word, tint) if style.colour == Colour::Wanted => colour(Cell::new(word), tint),
        Value::Word(word, _) => Cell::new(word),
    }
}

fn colour(cell: Cell, tint: Tint) -> Cell {
    match tint {
        Tint::Good => cell.fg(Color::Green),
        Tint::Bad => cell.fg(Color::Red),
        Tint::Active => cell.fg(Color::Cyan),
        Tint::Odd => cell.fg(Color::Yellow),
        Tint::Quiet => cell,
    }
}

/// Without the padding at the ends of the lines.
fn render(table: &Table) -> String {
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
