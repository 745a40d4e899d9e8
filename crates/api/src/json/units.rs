//! How amounts and instants are spelled on the wire, and the reading of what people write.
//!
//! In: a number, or a text with a unit (`"90s"`, `"1h30m"`, `"256MiB"`). Out: always a plain number, an instant always
//! as RFC 3339 in UTC. Inside: whole milliseconds, bytes, thousandths of a core.

use std::fmt;

use jobyard_model::Timestamp;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// An instant. RFC 3339; written in UTC with `Z` and milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Timestamp);

/// A duration in whole milliseconds; on the wire a number of seconds, or on the way in a text such as `"1h30m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds {
    /// The duration in milliseconds.
    pub ms: u64,
}

/// An amount of memory; on the wire a number of bytes, or on the way in a text such as `"256MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// An amount of processor time in thousandths of a core; on the wire a number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cores {
    /// Thousandths of a core.
    pub milli: u64,
}

/// Reads an instant as people write it.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    const EXPECTED: &str = "expected an instant with its offset, such as 2026-05-01T09:30:00Z";
    // A text without an offset would mean a different instant on every machine.
    let instant: jiff::Timestamp = text.parse().map_err(|_| EXPECTED.to_owned())?;
    let ms = instant.as_millisecond();
    if ms < 0 {
        return Err("lies before 1970".to_owned());
    }
    Ok(Timestamp(ms))
}

/// Writes an instant: UTC with `Z`, always with milliseconds, so that texts sort like instants.
#[must_use]
pub fn format_time(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0)
        .map_or_else(|_| format!("{}ms", time.0), |instant| format!("{instant:.3}"))
}

/// Reads a duration in milliseconds: `"90"` and `"90s"` are seconds; units are `ms`, `s`, `m`, `h`, `d`, from the
/// largest to the smallest.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_duration_ms(text: &str) -> Result<u64, String> {
    const EXPECTED: &str =
        "expected a number of seconds or a text such as \"90s\" or \"1h30m\" (ms, s, m, h, d)";
    let refuse = || EXPECTED.to_owned();
    if let Ok(seconds) = parse_decimal(text) {
        return scale(seconds, 1_000).ok_or_else(refuse);
    }
    let mut rest = text;
    let mut total_ms = 0_u64;
    let mut smaller_than_ms = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refuse)?;
        let number = parse_decimal(&rest[..digits]).map_err(|()| refuse())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit_ms = match &rest[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(refuse()),
        };
        if unit_ms >= smaller_than_ms {
            return Err(refuse());
        }
        smaller_than_ms = unit_ms;
        let part_ms = scale(number, unit_ms).ok_or_else(refuse)?;
        total_ms = total_ms.checked_add(part_ms).ok_or_else(refuse)?;
        rest = &rest[letters..];
    }
    if text.is_empty() { Err(refuse()) } else { Ok(total_ms) }
}

/// Reads an amount of memory in bytes: `"268435456"`, `"256MiB"`, `"1.5GiB"`, `"500MB"`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let refuse = || {
        "expected a number of bytes or a text such as \"256MiB\" (KiB, MiB, GiB, TiB, or kB, MB, GB, TB)"
            .to_owned()
    };
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = parse_decimal(&text[..digits]).map_err(|()| refuse())?;
    let unit = match text[digits..].trim_start() {
        "" | "B" => 1,
        "KiB" | "Ki" => 1 << 10,
        "MiB" | "Mi" => 1 << 20,
        "GiB" | "Gi" => 1 << 30,
        "TiB" | "Ti" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err(refuse()),
    };
    scale(number, unit).ok_or_else(refuse)
}

/// Reads a number of cores, in thousandths: `"0.5"`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_cores_milli(text: &str) -> Result<u64, String> {
    parse_decimal(text)
        .ok()
        .and_then(|cores| scale(cores, 1_000))
        .ok_or_else(|| "expected a number of cores, such as 0.5, in steps of 0.001".to_owned())
}

/// Digits with at most one point: no sign, no exponent, nothing that reads differently elsewhere.
fn parse_decimal(text: &str) -> Result<f64, ()> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(());
    }
    text.parse().map_err(|_| ())
}

/// `number` × `unit` as a whole number; `None` when it does not fit into 53 bits or has a rest.
#[must_use]
pub fn scale(number: f64, unit: u64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_precision_loss, reason = "units are at most a million million")]
    let scaled = number * unit as f64;
    if !scaled.is_finite() || !(0.0..=EXACT).contains(&scaled) {
        return None;
    }
    let whole = scaled.round();
    // A tenth of a core or 1.1 s are not exact in binary: a rest within two roundings is none.
    ((scaled - whole).abs() <= 2.0 * f64::EPSILON * scaled).then_some(whole as u64)
}

impl Seconds {
    /// As a number of seconds.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        per_thousand(self.ms)
    }
}

impl Cores {
    /// As a number of cores.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        per_thousand(self.milli)
    }
}

#[expect(clippy::cast_precision_loss, reason = "every accepted amount is below 2^53")]
fn per_thousand(milli: u64) -> f64 {
    milli as f64 / 1_000.0
}

fn serialize_thousandths<S: Serializer>(milli: u64, serializer: S) -> Result<S::Ok, S::Error> {
    if milli.is_multiple_of(1_000) {
        serializer.serialize_u64(milli / 1_000)
    } else {
        serializer.serialize_f64(per_thousand(milli))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_time(self.0))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_thousandths(self.ms, serializer)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Cores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_thousandths(self.milli, serializer)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_time(&text).map(Self).map_err(de::Error::custom)
    }
}

/// Reads a number in `unit` parts, or a text by `parse`.
struct Amount {
    unit: u64,
    parse: fn(&str) -> Result<u64, String>,
}

impl Visitor<'_> for Amount {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number, or a text with a unit")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        number.checked_mul(self.unit).ok_or_else(|| E::custom("too large"))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::custom("negative")).and_then(|number| self.visit_u64(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        scale(number, self.unit).ok_or_else(|| E::custom("negative, too large or too fine"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = Amount { unit: 1_000, parse: parse_duration_ms };
        Ok(Self { ms: deserializer.deserialize_any(amount)? })
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(deserializer.deserialize_any(Amount { unit: 1, parse: parse_bytes })?))
    }
}

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = Amount { unit: 1_000, parse: parse_cores_milli };
        Ok(Self { milli: deserializer.deserialize_any(amount)? })
    }
}

fn number(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).description(Some(description))
}

fn number_or_text(description: &str, example: &str) -> RefOr<Schema> {
    OneOfBuilder::new()
        .item(number(description))
        .item(ObjectBuilder::new().schema_type(Type::String).examples([serde_json::json!(example)]))
        .description(Some(description))
        .into()
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl PartialSchema for Seconds {
    fn schema() -> RefOr<Schema> {
        number_or_text("A duration: a number of seconds, or on the way in a text with units.", "1h30m")
    }
}

impl PartialSchema for Bytes {
    fn schema() -> RefOr<Schema> {
        number_or_text("Memory: a number of bytes, or on the way in a text with a unit.", "256MiB")
    }
}

impl PartialSchema for Cores {
    fn schema() -> RefOr<Schema> {
        number("Cores, in steps of a thousandth.").into()
    }
}

impl ToSchema for Time {}
impl ToSchema for Seconds {}
impl ToSchema for Bytes {}
impl ToSchema for Cores {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        let cases = [
            ("90", Some(90_000)),
            ("0.25", Some(250)),
            ("90s", Some(90_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5h", Some(5_400_000)),
            ("2d", Some(172_800_000)),
            ("250ms", Some(250)),
            ("", None),
            ("-1s", None),
            ("1e3", None),
            ("30m1h", None),
            ("1m1m", None),
            ("5 s", None),
            ("h", None),
            ("1.2.3s", None),
            ("0.0001s", None),
            ("99999999999999999999d", None),
            ("١s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration_ms(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn memory_as_people_write_it() {
        let cases = [
            ("1024", Some(1024)),
            ("256MiB", Some(268_435_456)),
            ("256 MiB", Some(268_435_456)),
            ("1.5GiB", Some(1_610_612_736)),
            ("1kB", Some(1000)),
            ("1e99", None),
            ("256mib", None),
            ("-1", None),
            ("1.5", None),
            ("MiB", None),
            ("", None),
            ("9999999999TiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn instants_need_an_offset_and_are_written_in_utc() {
        assert_eq!(
            parse_time("2026-05-01T11:30:00+02:00").map(format_time),
            Ok("2026-05-01T09:30:00.000Z".to_owned())
        );
        for text in [
            "2026-05-01T11:30:00",
            "2026-05-01",
            "yesterday",
            "",
            "1969-01-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
        ] {
            assert!(parse_time(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn amounts_are_written_as_plain_numbers_and_read_back() {
        let text = serde_json::to_string(&(
            Seconds { ms: 1500 },
            Seconds { ms: 2000 },
            Cores { milli: 100 },
            Bytes(7),
        ))
        .unwrap();
        assert_eq!(text, "[1.5,2,0.1,7]");
        let back: (Seconds, Seconds, Cores, Bytes) = serde_json::from_str(&text).unwrap();
        assert_eq!(back, (Seconds { ms: 1500 }, Seconds { ms: 2000 }, Cores { milli: 100 }, Bytes(7)));
    }
}
