//! The session cookie: how it is read, set and taken away.

use axum::http::{HeaderMap, HeaderValue, header};
use jobyard_model::Timestamp;

use crate::settings::{BasePath, ServerSettings};

/// Its name.
pub(crate) const NAME: &str = "jobyard_session";

/// What the browser keeps. Of two, the first: browsers send that of the longest path first.
pub(crate) fn read(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies =
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.find(|(name, value)| *name == NAME && !value.is_empty()).map(|(_, value)| value)
}

/// How the call came, as far as it matters to a cookie.
pub(crate) struct Jar<'s> {
    base_path: &'s BasePath,
    is_secure: bool,
}

impl<'s> Jar<'s> {
    /// A proxy that ends TLS says so in `X-Forwarded-Proto`. Whoever lies about it only hinders itself.
    pub(crate) fn of(settings: &'s ServerSettings, headers: &HeaderMap) -> Self {
        let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        let by_tls = forwarded
            .and_then(|list| list.split(',').next())
            .is_some_and(|first| first.trim().eq_ignore_ascii_case("https"));
        Self { base_path: &settings.base_path, is_secure: settings.secure_cookies || by_tls }
    }

    /// Sets the cookie for as long as its session goes on.
    pub(crate) fn set(&self, secret: &str, expires_at: Timestamp, now: Timestamp) -> HeaderValue {
        self.line(secret, expires_at.ms_since(now) / 1_000)
    }

    /// Takes the cookie away.
    pub(crate) fn clear(&self) -> HeaderValue {
        self.line("", 0)
    }

    fn line(&self, secret: &str, lasts_seconds: u64) -> HeaderValue {
        let path = self.base_path.as_cookie_path();
        let secure = if self.is_secure { "; Secure" } else { "" };
        let line = format!(
            "{NAME}={secret}; Path={path}; Max-Age={lasts_seconds}; HttpOnly; SameSite=Strict{secure}"
        );
        // Secrets and base paths are plain ASCII.
        let mut value = HeaderValue::from_str(&line).unwrap_or(HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let cases: [(&[&str], Option<&str>); 7] = [
            (&[], None),
            (&["jobyard_session=js_1"], Some("js_1")),
            (&["a=b; jobyard_session=js_1; c"], Some("js_1")),
            (&["a=b", "jobyard_session=js_1"], Some("js_1")),
            (&["jobyard_session=js_1; jobyard_session=js_2"], Some("js_1")),
            (&["jobyard_session="], None),
            (&["xjobyard_session=js_1; JOBYARD_SESSION=js_2"], None),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::COOKIE, HeaderValue::from_static(line));
            }
            assert_eq!(read(&headers), expected, "{lines:?}");
        }
    }
}
