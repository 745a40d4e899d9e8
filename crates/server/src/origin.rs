//! Whether a call comes from a page of our own.
//!
//! A browser sends the session cookie with whatever asks our server, a page elsewhere included: `SameSite` counts every
//! port of a host as the same site. So a call that changes something by right of the cookie must say that a page of
//! this server made it. Browsers say so by themselves, and no page can make them say otherwise.

use axum::http::{HeaderMap, Method, header};

use crate::error::ApiError;

/// Who must say where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// A caller that says nothing is no browser, and has brought its own right to make the call.
    Allowed,
    /// The right lies in a cookie: whoever says nothing is refused.
    Refused,
}

/// Whether the method promises to change nothing.
pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Refuses what a page elsewhere makes a browser send.
pub(crate) fn check(headers: &HeaderMap, silence: Silence) -> Result<(), ApiError> {
    let own = match (single(headers, "sec-fetch-site"), single(headers, header::ORIGIN.as_str())) {
        // Browsers leave it out only over plain HTTP to another machine.
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = single(headers, header::HOST.as_str());
            authority(origin).zip(host).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
        }
        (None, None) => silence == Silence::Allowed,
    };
    if own { Ok(()) } else { Err(ApiError::ForeignOrigin) }
}

fn authority(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

/// The value of a header; of one that stands there twice, something that matches nothing.
fn single<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    let unclear = values.next().is_some();
    Some(if unclear { "" } else { value.to_str().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_pages_of_this_server_may_change_something_by_cookie() {
        /// The headers sent, and whether they do where silence is allowed, and where it is refused.
        type Case = (&'static [(&'static str, &'static str)], bool, bool);
        let cases: [Case; 14] = [
            (&[], true, false),
            (&[("sec-fetch-site", "same-origin")], true, true),
            (&[("sec-fetch-site", "same-site")], false, false),
            (&[("sec-fetch-site", "cross-site")], false, false),
            (&[("sec-fetch-site", "none")], false, false),
            (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "same-origin")], false, false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://yard:7700")], false, false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://proxy")], true, true),
            (&[("origin", "http://yard:7700")], true, true),
            (&[("origin", "https://YARD:7700")], true, true),
            (&[("origin", "http://yard:7701")], false, false),
            (&[("origin", "http://elsewhere")], false, false),
            (&[("origin", "null")], false, false),
            (&[("origin", "http://yard:7700"), ("origin", "http://yard:7700")], false, false),
        ];
        for (sent, allowed_silence, refused_silence) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("host", HeaderValue::from_static("yard:7700"));
            for (name, value) in sent {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(check(&headers, Silence::Allowed).is_ok(), allowed_silence, "{sent:?}");
            assert_eq!(check(&headers, Silence::Refused).is_ok(), refused_silence, "{sent:?}");
        }
    }
}
