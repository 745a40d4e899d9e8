//! The dashboard's pages, as `npm run build` left them in `dashboard/dist` before this crate was built.
//!
//! Owns the list and the types of the files; how they are served stands in the server. Without that build the list is
//! empty.

/// A file, and the same bytes compressed where that was worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Below the folder, with `/` between the parts.
    pub path: &'static str,
    /// Of the bytes; another one when they change.
    pub hash: &'static str,
    /// As they are.
    pub bytes: &'static [u8],
    /// By Brotli.
    pub br: Option<&'static [u8]>,
    /// By gzip.
    pub gz: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// All files, by path; empty when the dashboard was not built.
#[must_use]
pub fn files() -> &'static [File] {
    FILES
}

/// The file at a path.
#[must_use]
pub fn file(path: &str) -> Option<&'static File> {
    FILES.binary_search_by(|file| file.path.cmp(path)).ok().map(|place| &FILES[place])
}

impl File {
    /// What it is, by its name's end.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, end)| end) {
            Some("html") => "text/html; charset=utf-8",
            Some("js" | "mjs") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("json" | "map") => "application/json",
            Some("webmanifest") => "application/manifest+json",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("ico") => "image/x-icon",
            Some("woff2") => "font/woff2",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// Whether its name changes with its bytes.
    #[must_use]
    pub fn is_hashed(&self) -> bool {
        self.path.starts_with("assets/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_is_found_and_has_a_type() {
        assert!(file("../Cargo.toml").is_none() && file("").is_none());
        for one in files() {
            assert_eq!(file(one.path), Some(one));
            assert_ne!(one.content_type(), "application/octet-stream", "{}", one.path);
            assert!(!one.path.ends_with(".br") && !one.path.ends_with(".gz"), "{}", one.path);
        }
    }

    #[test]
    fn the_page_has_a_place_for_the_base_path_and_no_script_of_its_own() {
        let Some(index) = file("index.html") else { return };
        let text = String::from_utf8_lossy(index.bytes);
        assert!(text.contains("<base href=\"/\""), "the server replaces this");
        assert!(!text.contains("<style") && !text.contains("style="), "the policy refuses it");
        for script in text.split("<script").skip(1) {
            assert!(script.contains("src=") && script.contains("></script>"), "{script}");
        }
    }
}
