//! The filter of jobs as a query string, the same in lists, counts, saved views and bulk operations.
//!
//! Every parameter must match. In a value `,` means any of, a leading `!` none of, and `\` takes the next character as it
//! is. Names and the values of labels may begin with and hold: `train*`, `*train*`.

use std::fmt::Display;
use std::str::FromStr;

use jobyard_model::{Any, JobFilter, JobKind, LabelCondition, Lane, Outcome, TextMatch, Timestamp};

use crate::json::units::parse_time;
use crate::strict::{Fault, FaultCode, Faults};

/// The parameters that are conditions.
pub const PARAMETERS: [&str; 18] = [
    "status",
    "owner",
    "name",
    "label",
    "node",
    "outcome",
    "exit",
    "signal",
    "reason",
    "kind",
    "pool",
    "lane",
    "submitted_by",
    "origin",
    "idempotency_key",
    "q",
    "created_after",
    "created_before",
];

/// The most values of one condition.
const MAX_VALUES: usize = 50;
/// The most characters of one value.
const MAX_CHARS: usize = 200;
/// The most bytes of a filter as a text.
pub const MAX_TEXT_BYTES: usize = 4_096;

/// Reads a whole query string that holds conditions and nothing else.
///
/// # Errors
/// All that is wrong with it; every pointer is `at`.
pub fn parse(text: &str, at: &str) -> Result<JobFilter, Faults> {
    let mut faults = Faults::default();
    let mut refuse = |code, detail: String| faults.push(Fault { pointer: at.to_owned(), code, detail });
    if text.len() > MAX_TEXT_BYTES {
        refuse(FaultCode::TooLong, format!("has more than {MAX_TEXT_BYTES} bytes"));
        return Err(faults);
    }
    let text = text.strip_prefix('?').unwrap_or(text);
    let pairs: Vec<(String, String)> = form_urlencoded::parse(text.as_bytes()).into_owned().collect();
    for (name, _) in &pairs {
        if !PARAMETERS.contains(&name.as_str()) {
            let shown: String = name.chars().take(100).collect();
            let known = PARAMETERS.join("`, `");
            refuse(FaultCode::UnknownField, format!("there is no condition `{shown}`; there are `{known}`"));
        }
    }
    let filter = read(&pairs, |_| at.to_owned(), &mut faults);
    if faults.is_empty() { Ok(filter) } else { Err(faults) }
}

/// Reads the conditions among these parameters; empty values count as left out. `pointer` says where a parameter stands.
pub fn read(pairs: &[(String, String)], pointer: impl Fn(&str) -> String, faults: &mut Faults) -> JobFilter {
    let mut reader = Reader { pairs, pointer, faults };
    JobFilter {
        statuses: reader.parsed("status"),
        owners: reader.exact("owner"),
        names: reader.matches("name"),
        labels: reader.labels(),
        nodes: reader.exact("node"),
        outcomes: reader.outcomes(),
        exit_codes: reader.numbers("exit", 0..=255),
        signals: reader.numbers("signal", 1..=64),
        reasons: reader.parsed("reason"),
        kinds: reader.kinds(),
        pools: reader.exact("pool"),
        lanes: reader.lanes(),
        submitted_by: reader.exact("submitted_by"),
        origin: reader.origin(),
        idempotency_key: reader.whole("idempotency_key"),
        text: reader.whole("q"),
        created_after: reader.time("created_after"),
        created_before: reader.time("created_before"),
    }
}

/// A value as it must be written to mean exactly this text.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (place, character) in text.chars().enumerate() {
        if matches!(character, ',' | '*' | '\\') || character == '!' && place == 0 {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

struct Reader<'a, P> {
    pairs: &'a [(String, String)],
    pointer: P,
    faults: &'a mut Faults,
}

/// One of the words between commas.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// A `*` stands before it.
    open_before: bool,
    /// A `*` stands behind it.
    open_behind: bool,
}

impl<P: Fn(&str) -> String> Reader<'_, P> {
    fn refuse(&mut self, name: &str, code: FaultCode, detail: impl Into<String>) {
        self.faults.push(Fault { pointer: (self.pointer)(name), code, detail: detail.into() });
    }

    fn all(&mut self, name: &str) -> Vec<String> {
        let found = self.pairs.iter().filter(|(found, value)| found == name && !value.is_empty());
        let found: Vec<String> = found.map(|(_, value)| value.clone()).collect();
        let fits = |value: &String| !value.contains('\0');
        if !found.iter().all(fits) {
            self.refuse(name, FaultCode::ForbiddenCharacter, "must not hold U+0000");
            return Vec::new();
        }
        found
    }

    fn once(&mut self, name: &str) -> Option<String> {
        let mut found = self.all(name);
        if found.len() > 1 {
            let detail = "this parameter stands there more than once; join several values by commas";
            self.refuse(name, FaultCode::DuplicateField, detail);
        }
        found.pop()
    }

    /// A value that is taken as it is.
    fn whole(&mut self, name: &str) -> Option<String> {
        let value = self.once(name)?;
        if value.chars().count() > MAX_CHARS {
            self.refuse(name, FaultCode::TooLong, format!("has more than {MAX_CHARS} characters"));
        }
        Some(value)
    }

    fn words(&mut self, name: &str) -> Any<Word> {
        let Some(value) = self.once(name) else { return Any::default() };
        let words = words(&value);
        self.checked(name, words)
    }

    fn checked(&mut self, name: &str, words: Result<Any<Word>, String>) -> Any<Word> {
        let fits = words.and_then(|words| {
            if words.values.len() > MAX_VALUES {
                return Err(format!("has {} values, the most is {MAX_VALUES}", words.values.len()));
            }
            match words.values.iter().any(|word| word.text.chars().count() > MAX_CHARS) {
                true => Err(format!("a value has more than {MAX_CHARS} characters")),
                false => Ok(words),
            }
        });
        fits.unwrap_or_else(|detail| {
            self.refuse(name, FaultCode::Invalid, detail);
            Any::default()
        })
    }

    /// Each word turned into a value; those that are none are refused.
    fn each<T>(&mut self, name: &str, words: Any<Word>, value: impl Fn(Word) -> Result<T, String>) -> Any<T> {
        let negated = words.negated;
        let mut values = Vec::with_capacity(words.values.len());
        for word in words.values {
            match value(word) {
                Ok(value) => values.push(value),
                Err(detail) => self.refuse(name, FaultCode::Invalid, detail),
            }
        }
        Any { values, negated }
    }

    fn exact(&mut self, name: &str) -> Any<String> {
        let words = self.words(name);
        self.each(name, words, Word::exact)
    }

    fn matches(&mut self, name: &str) -> Any<TextMatch> {
        let words = self.words(name);
        self.each(name, words, Word::into_match)
    }

    fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str) -> Any<T> {
        let words = self.words(name);
        let value = |word: Word| word.exact()?.trim().parse().map_err(|error: T::Err| error.to_string());
        self.each(name, words, value)
    }

    fn outcomes(&mut self) -> Any<Outcome> {
        let words = self.words("outcome");
        self.each("outcome", words, |word| one_of(&word.exact()?, Outcome::ALL, Outcome::as_str))
    }

    fn kinds(&mut self) -> Any<JobKind> {
        let words = self.words("kind");
        let all = [JobKind::Task, JobKind::Service];
        self.each("kind", words, |word| one_of(&word.exact()?, all, JobKind::as_str))
    }

    fn lanes(&mut self) -> Any<Lane> {
        let words = self.words("lane");
        let lane = |word: Word| {
            word.exact()?.trim().parse().ok().and_then(Lane::new).ok_or("is a lane, 0 to 4".to_owned())
        };
        self.each("lane", words, lane)
    }

    fn numbers(&mut self, name: &str, range: std::ops::RangeInclusive<i32>) -> Any<i32> {
        let words = self.words(name);
        let expected = || format!("is a whole number from {} to {}", range.start(), range.end());
        self.each(name, words, |word| {
            let number = word.exact()?.trim().parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(expected)
        })
    }

    fn labels(&mut self) -> Vec<LabelCondition> {
        let mut labels = Vec::new();
        for text in self.all("label") {
            let (key, value) = match text.split_once(':') {
                Some((key, value)) => (key, Some(value)),
                None => (text.as_str(), None),
            };
            let (negated, key) = key.strip_prefix('!').map_or((false, key), |key| (true, key));
            let key = words(key).and_then(|mut words| match (words.values.pop(), words.negated) {
                (Some(word), false) if words.values.is_empty() => word.exact(),
                _ => Err("expected `key:value`, or a key; put `\\` before a comma of the key".to_owned()),
            });
            let value = match value {
                None => Ok(Any::default()),
                Some("") => Ok(Any::of([Word::default()])),
                Some(value) => words(value),
            };
            match key {
                Ok(key) if !key.is_empty() => {
                    let words = self.checked("label", value);
                    let value = self.each("label", words, Word::into_match);
                    let negated = value.negated != negated;
                    labels.push(LabelCondition { key, value: Any { negated, ..value } });
                }
                Ok(_) => self.refuse("label", FaultCode::Invalid, "expected `key:value`, or a key"),
                Err(detail) => self.refuse("label", FaultCode::Invalid, detail),
            }
        }
        if labels.len() > MAX_VALUES {
            self.refuse("label", FaultCode::TooMany, format!("stands there more than {MAX_VALUES} times"));
        }
        labels
    }

    fn origin(&mut self) -> Option<(String, String)> {
        let text = self.whole("origin")?;
        match text.split_once(':') {
            Some((kind, id)) if !kind.is_empty() => Some((kind.to_owned(), id.to_owned())),
            _ => {
                self.refuse("origin", FaultCode::Invalid, "expected `kind:id`");
                None
            }
        }
    }

    fn time(&mut self, name: &str) -> Option<Timestamp> {
        let text = self.once(name)?;
        parse_time(&text).map_err(|detail| self.refuse(name, FaultCode::Invalid, detail)).ok()
    }
}

impl Word {
    fn exact(self) -> Result<String, String> {
        match self.open_before || self.open_behind {
            true => Err("`*` can stand in names and in the values of labels only; put `\\` before a `*` that is meant".to_owned()),
            false => Ok(self.text),
        }
    }

    fn into_match(self) -> Result<TextMatch, String> {
        match (self.open_before, self.open_behind) {
            (false, false) => Ok(TextMatch::Is(self.text)),
            (false, true) => Ok(TextMatch::Begins(self.text)),
            (true, true) => Ok(TextMatch::Holds(self.text)),
            (true, false) => Err("nothing finds what a text ends with; write `*` on both sides".to_owned()),
        }
    }
}

fn one_of<T: Copy, const N: usize>(
    word: &str,
    all: [T; N],
    as_str: fn(T) -> &'static str,
) -> Result<T, String> {
    let found = all.into_iter().find(|value| as_str(*value) == word.trim());
    found.ok_or_else(|| format!("expected one of {}", all.map(as_str).join(", ")))
}

/// The words of a value.
fn words(value: &str) -> Result<Any<Word>, String> {
    let (negated, rest) = value.strip_prefix('!').map_or((false, value), |rest| (true, rest));
    let mut words = vec![Word::default()];
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        let word = words.last_mut().ok_or("is empty")?;
        if word.open_behind && character != ',' {
            return Err(
                "`*` stands at the beginning or the end of a value; put `\\` before one that is meant"
                    .to_owned(),
            );
        }
        match character {
            ',' => words.push(Word::default()),
            '*' if word.text.is_empty()
                && !word.open_before
                && characters.peek().is_some_and(|next| *next != ',') =>
            {
                word.open_before = true;
            }
            '*' => word.open_behind = true,
            '\\' => match characters.next() {
                Some(meant) => word.text.push(meant),
                None => return Err("ends with `\\`; write `\\\\` for one that is meant".to_owned()),
            },
            other => word.text.push(other),
        }
    }
    match words.iter().any(|word| word.text.is_empty()) {
        true => Err("a value is empty".to_owned()),
        false => Ok(Any { values: words, negated }),
    }
}

#[cfg(test)]
mod tests {
    use jobyard_model::Status;

    use super::*;

    fn filter(text: &str) -> JobFilter {
        parse(text, "/filter").unwrap_or_else(|faults| panic!("{text}: {faults:?}"))
    }

    fn is(text: &str) -> TextMatch {
        TextMatch::Is(text.to_owned())
    }

    #[test]
    fn commas_stars_negations_and_escapes_mean_what_they_say() {
        assert_eq!(filter("status=running,%20retry").statuses, Any::of([Status::Running, Status::Retry]));
        assert_eq!(filter("status=!success").statuses, Any::none_of([Status::Success]));
        assert_eq!(filter("owner=a,b").owners, Any::of(["a".to_owned(), "b".to_owned()]));
        assert_eq!(filter("exit=!0,137").exit_codes, Any::none_of([0, 137]));
        let begins = TextMatch::Begins("train".to_owned());
        let holds = TextMatch::Holds("x".to_owned());
        assert_eq!(filter("name=train*,*x*,c").names, Any::of([begins, holds, is("c")]));
        assert_eq!(filter(r"name=\!a\,b\*\\").names, Any::of([is(r"!a,b*\")]));
        let label = |text: &str| filter(text).labels.remove(0);
        let team = |value| LabelCondition { key: "team".to_owned(), value };
        assert_eq!(label("label=team:a,b"), team(Any::of([is("a"), is("b")])));
        assert_eq!(label("label=team:"), team(Any::of([is("")])));
        assert_eq!(label("label=!team:a"), team(Any::none_of([is("a")])));
        assert_eq!(label("label=team"), team(Any::default()));
        assert_eq!(label("label=!team"), team(Any { values: Vec::new(), negated: true }));
        assert_eq!(
            label("label=at:10:30"),
            LabelCondition { key: "at".to_owned(), value: Any::of([is("10:30")]) }
        );
    }

    #[test]
    fn an_escaped_text_means_itself() {
        for text in ["plain", "!bang", "a!b", "a,b", "*", "**", "x*", r"back\slash", "!*,\\", "ünï 🦀"] {
            assert_eq!(words(&escape(text)).unwrap().values[0].text, text);
            assert_eq!(
                filter(&format!(
                    "name={}",
                    form_urlencoded::byte_serialize(escape(text).as_bytes()).collect::<String>()
                ))
                .names,
                Any::of([is(text)])
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let cases = [
            "status=finished",
            "status=!",
            "owner=a,,b",
            "owner=a*",
            "name=*a",
            "name=a*b",
            "name=a\\",
            "label=:x",
            "label=a,b:c",
            "exit=256",
            "exit=x",
            "signal=0",
            "lane=5",
            "reason=tired",
            "kind=cron",
            "outcome=good",
            "origin=nocolon",
            "created_after=yesterday",
            "q=a&q=b",
            "colour=red",
            "owner=%00",
        ];
        for text in cases {
            let faults = parse(text, "/filter").expect_err(text);
            assert!(faults.listed().iter().all(|fault| fault.pointer == "/filter"), "{text}: {faults:?}");
        }
        let many = format!("owner={}", vec!["a"; 51].join(","));
        let long = format!("name={}", "x".repeat(201));
        let huge = format!("name={}", "x,".repeat(3_000));
        for text in [many, long, huge] {
            assert!(parse(&text, "/filter").is_err(), "{}", &text[..40]);
        }
    }
}
