//! Instants and durations as people read them.

use jiff::tz::TimeZone;
use jobyard_client::Timestamp;

/// An instant in a zone, to the second. One that no calendar has is shown as it came.
pub(super) fn local(time: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(instant) => instant.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{}ms", time.0),
    }
}

/// A duration in the two largest units that say something: `850ms`, `3.2s`, `4m10s`, `2h05m`, `3d4h`.
pub(super) fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{seconds}.{}s", ms % 1_000 / 100),
        60_000..3_600_000 => format!("{minutes}m{:02}s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{}d{}h", hours / 24, hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        for (ms, shown) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (59_999, "59.9s"),
            (60_000, "1m00s"),
            (3_599_999, "59m59s"),
            (7_500_000, "2h05m"),
            (86_400_000, "1d0h"),
            (273_600_000, "3d4h"),
        ] {
            assert_eq!(duration(ms), shown);
        }
    }

    #[test]
    fn instants_are_shown_in_the_zone_of_the_reader() {
        let instant = Timestamp(1_777_627_800_000);
        assert_eq!(local(instant, &TimeZone::UTC), "2026-05-01 09:30:00");
        let taipei = TimeZone::get("Asia/Taipei").expect("zone data is built in");
        assert_eq!(local(instant, &taipei), "2026-05-01 17:30:00");
        assert_eq!(local(Timestamp(i64::MAX), &TimeZone::UTC), format!("{}ms", i64::MAX));
    }
}
