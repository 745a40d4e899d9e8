//! Where the server is and who we are: found in variables, in the saved context, in a data directory.
//!
//! Owns the names of the variables and files. Never talks to the server, never prints a token.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

/// The variable that names the server.
pub const URL_VARIABLE: &str = "JOBYARD_URL";
/// The variable that holds the token.
pub const TOKEN_VARIABLE: &str = "JOBYARD_TOKEN";
/// Where `jobyard up` listens unless told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7700";

/// A bearer token. Shows itself as dots only.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes the text that the server gave out; space around it is dropped.
    ///
    /// # Errors
    /// When it can't be a header's value: empty, or with anything but printable ASCII in it.
    pub fn new(text: &str) -> Result<Self, ConnectionError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConnectionError::Token);
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// A server and, if there is one, the token to come with.
///
/// ```
/// use jobyard_client::{Connection, Token};
///
/// let connection = Connection::new("http://127.0.0.1:7700")?.with_token(Token::new("jy_secret")?);
/// assert_eq!(connection.url(), "http://127.0.0.1:7700");
/// assert!(!format!("{connection:?}").contains("secret"));
/// # Ok::<(), jobyard_client::ConnectionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    url: String,
    token: Option<Token>,
}

/// Why no connection could be described.
#[derive(Debug, Error)]
pub enum ConnectionError {
    /// The address is not one we can call.
    #[error("`{url}` is not a server's address: {why}; expected something like {DEFAULT_URL}")]
    Url {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The token can't be one.
    #[error("the token is empty or has characters that no token has")]
    Token,
    /// A file is there but can't be read.
    #[error("could not read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The saved context doesn't say what it should.
    #[error("{} is not a saved context: {why}", path.display())]
    Context {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it, and where.
        why: String,
    },
}

impl Connection {
    /// A server by its address, `http://host:port`, without a token.
    ///
    /// # Errors
    /// When the address is not an `http` one. (`https` comes with certificates.)
    pub fn new(url: &str) -> Result<Self, ConnectionError> {
        let refuse = |why: &str| ConnectionError::Url { url: url.to_owned(), why: why.to_owned() };
        let parsed = reqwest::Url::parse(url.trim()).map_err(|error| refuse(&error.to_string()))?;
        match parsed.scheme() {
            "http" => {}
            "https" => return Err(refuse("https is not available yet")),
            _ => return Err(refuse("it does not begin with http://")),
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(refuse("a password does not belong into an address, use a token"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(refuse("it has a query or a fragment"));
        }
        Ok(Self { url: parsed.as_str().trim_end_matches('/').to_owned(), token: None })
    }

    /// The same server, with this token.
    #[must_use]
    pub fn with_token(self, token: Token) -> Self {
        Self { token: Some(token), ..self }
    }

    /// The server's address, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token, if there is one.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// What `JOBYARD_URL` and `JOBYARD_TOKEN` say; `None` when neither is set. With a token alone the server is
    /// [`DEFAULT_URL`].
    ///
    /// # Errors
    /// When a variable is set to something that can't be an address or a token.
    pub fn from_env() -> Result<Option<Self>, ConnectionError> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (url, token) = (set(URL_VARIABLE), set(TOKEN_VARIABLE));
        if url.is_none() && token.is_none() {
            return Ok(None);
        }
        let connection = Self::new(url.as_deref().unwrap_or(DEFAULT_URL))?;
        Ok(Some(match token {
            Some(text) => connection.with_token(Token::new(&text)?),
            None => connection,
        }))
    }

    /// The saved context in `path` (TOML: `url`, and `token` or `token_file`); `None` when there is no such file. A
    /// relative `token_file` lies beside the context.
    ///
    /// # Errors
    /// When the file or the token file can't be read or doesn't say what it should.
    pub fn from_context(path: &Path) -> Result<Option<Self>, ConnectionError> {
        let Some(text) = read_if_there(path)? else { return Ok(None) };
        let refuse = |why: String| ConnectionError::Context { path: path.to_owned(), why };
        let context: Context = toml::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        let connection = Self::new(&context.url)?;
        let token = match (context.token, context.token_file) {
            (Some(_), Some(_)) => return Err(refuse("it has both `token` and `token_file`".to_owned())),
            (Some(text), None) => Some(Token::new(&text)?),
            (None, Some(file)) => {
                let file = path.parent().unwrap_or(Path::new("")).join(file);
                let text = std::fs::read_to_string(&file)
                    .map_err(|source| ConnectionError::File { path: file, source })?;
                Some(Token::new(&text)?)
            }
            (None, None) => None,
        };
        Ok(Some(Self { token, ..connection }))
    }

    /// What `jobyard up` left in its data directory: `admin.token`, and `url` while it runs; `None` when there is no
    /// token.
    ///
    /// # Errors
    /// When a file is there but can't be read or doesn't say what it should.
    pub fn from_data_dir(path: &Path) -> Result<Option<Self>, ConnectionError> {
        let Some(token) = read_if_there(&path.join("admin.token"))? else { return Ok(None) };
        let url = read_if_there(&path.join("url"))?;
        let connection = Self::new(url.as_deref().unwrap_or(DEFAULT_URL))?;
        Ok(Some(connection.with_token(Token::new(&token)?)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    url: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
}

fn read_if_there(path: &Path) -> Result<Option<String>, ConnectionError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(source) if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(source) => Err(ConnectionError::File { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for (url, why) in [
            ("", "relative URL"),
            ("127.0.0.1:7700", "relative URL"),
            ("ftp://host", "http://"),
            ("https://host", "not available yet"),
            ("http://name:word@host", "token"),
            ("http://host/?a=b", "query"),
        ] {
            let error = Connection::new(url).expect_err(url).to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        let connection = Connection::new(" http://host:1/base/ \n").expect("trimmed");
        assert_eq!(connection.url(), "http://host:1/base");
    }

    #[test]
    fn tokens_never_show_and_never_break_a_header() {
        for text in ["", " \n", "a b", "a\nb", "ü", "a\0"] {
            assert!(Token::new(text).is_err(), "{text:?}");
        }
        let token = Token::new("jy_abc\n").expect("a newline at the end of the file is fine");
        assert_eq!((token.expose(), format!("{token:?}")), ("jy_abc", "Token(…)".to_owned()));
    }

    #[test]
    fn a_saved_context_names_a_server_and_a_token_or_its_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("config.toml");
        assert_eq!(Connection::from_context(&file).expect("no file is fine"), None);
        std::fs::write(directory.path().join("word"), "jy_file\n").expect("written");
        for (text, token) in [
            ("url = 'http://host:1'", None),
            ("url = 'http://host:1'\ntoken = 'jy_in'", Some("jy_in")),
            ("url = 'http://host:1'\ntoken_file = 'word'", Some("jy_file")),
        ] {
            std::fs::write(&file, text).expect("written");
            let connection = Connection::from_context(&file).expect(text).expect("there");
            assert_eq!(connection.token().map(Token::expose), token, "{text}");
        }
    }

    #[test]
    fn a_saved_context_that_says_something_else_is_named_with_its_fault() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("config.toml");
        for (text, why) in [
            ("", "url"),
            ("url = 7", "string"),
            ("url = 'http://h'\nurls = 1", "urls"),
            ("url = 'http://h'\ntoken = 'a'\ntoken_file = 'b'", "both"),
            ("url = 'http://h'\ntoken_file = 'gone'", "gone"),
        ] {
            std::fs::write(&file, text).expect("written");
            let error = Connection::from_context(&file).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_data_directory_is_used_once_it_has_a_token() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(Connection::from_data_dir(directory.path()).expect("empty is fine"), None);
        std::fs::write(directory.path().join("admin.token"), "jy_admin\n").expect("written");
        let without_url = Connection::from_data_dir(directory.path()).expect("fine").expect("there");
        assert_eq!(without_url.url(), DEFAULT_URL);
        std::fs::write(directory.path().join("url"), "http://127.0.0.1:9\n").expect("written");
        let with_url = Connection::from_data_dir(directory.path()).expect("fine").expect("there");
        assert_eq!(with_url.url(), "http://127.0.0.1:9");
    }
}
