//! Text from outside, made harmless for a terminal.

/// Shows control characters, line ends and what turns the writing direction as escapes, so that a name can neither
/// break a table nor steer the terminal. Other text stays as it is.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            character if is_harmful(character) => {
                shown.extend(character.escape_unicode());
            }
            character => shown.push(character),
        }
        shown
    })
}

/// Controls (C0, C1, DEL), line separators, and the marks that turn or hide text.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_harm_is_shown_and_the_rest_stays() {
        for (text, shown) in [
            ("plain", "plain"),
            ("工作 ü 🦀", "工作 ü 🦀"),
            ("a\nb\rc\td", "a\\nb\\rc\\td"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{9b}31m\u{7f}\0", "\\u{9b}31m\\u{7f}\\u{0}"),
            ("abc\u{202e}txt.exe\u{2066}", "abc\\u{202e}txt.exe\\u{2066}"),
            ("\u{2028}\u{feff}", "\\u{2028}\\u{feff}"),
        ] {
            assert_eq!(escape(text), shown, "{text:?}");
        }
    }
}
