//! Server-sent events: bytes in, frames out.
//!
//! Owns the format (HTML standard, "Server-sent events"). Does no I/O. Invariant: holds at most
//! [`LONGEST_FRAME_BYTES`] of an unfinished frame.

use std::collections::VecDeque;

/// A frame longer than this is not one of ours.
const LONGEST_FRAME_BYTES: usize = 4 << 20;

/// One event as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// The newest id so far, also one that came in an earlier frame.
    pub(crate) id: Option<String>,
    /// The event's type; empty when not named.
    pub(crate) event: String,
    /// The data lines, joined by line feeds. May be empty: then the frame only moved the id on.
    pub(crate) data: String,
}

/// The frame in hand is longer than any of ours can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts a byte stream into frames.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    frame: Frame,
    touched: bool,
    after_carriage_return: bool,
    ready: VecDeque<Frame>,
}

impl Parser {
    /// Takes what arrived, in pieces of any size.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_carriage_return = std::mem::take(&mut self.after_carriage_return);
            match byte {
                b'\n' if after_carriage_return => {}
                b'\n' => self.end_line(),
                b'\r' => {
                    self.end_line();
                    self.after_carriage_return = true;
                }
                _ => self.line.push(byte),
            }
        }
        if self.line.len() + self.frame.data.len() > LONGEST_FRAME_BYTES { Err(TooLong) } else { Ok(()) }
    }

    /// The next whole frame.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        if line.is_empty() {
            self.end_frame();
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if !self.frame.data.is_empty() {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.frame.event),
            "id" if !value.contains('\0') => self.frame.id = Some(value.to_owned()),
            // A comment (empty field name), `retry`, or a field we don't know.
            _ => return,
        }
        self.touched = true;
    }

    fn end_frame(&mut self) {
        if !std::mem::take(&mut self.touched) {
            return;
        }
        let next = Frame { id: self.frame.id.clone(), ..Frame::default() };
        self.ready.push_back(std::mem::replace(&mut self.frame, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Vec<(Option<String>, String, String)> {
        let mut parser = Parser::default();
        for piece in pieces {
            parser.push(piece).expect("short frames");
        }
        std::iter::from_fn(|| parser.next()).map(|frame| (frame.id, frame.event, frame.data)).collect()
    }

    fn frame(id: Option<&str>, event: &str, data: &str) -> (Option<String>, String, String) {
        (id.map(str::to_owned), event.to_owned(), data.to_owned())
    }

    #[test]
    fn a_frame_has_the_same_content_however_it_is_cut_and_ended() {
        let wanted = vec![frame(Some("0-7"), "job", "{\"a\":1}")];
        for ending in ["\n", "\r\n", "\r"] {
            let text = ["id: 0-7", "event: job", "data: {\"a\":1}", "", ""].join(ending);
            let bytes = text.as_bytes();
            assert_eq!(frames(&[bytes]), wanted, "{ending:?}");
            for cut in 0..bytes.len() {
                assert_eq!(frames(&[&bytes[..cut], &bytes[cut..]]), wanted, "{ending:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn comments_are_no_frames_and_an_id_is_kept_for_the_frames_after_it() {
        let text = b": beat\n\nid:9\n\ndata: a\ndata: b\n\n:beat\n\n";
        assert_eq!(frames(&[text]), [frame(Some("9"), "", ""), frame(Some("9"), "", "a\nb")]);
    }

    #[test]
    fn an_unfinished_frame_is_never_handed_out() {
        assert_eq!(frames(&[b"data: half"]), []);
        assert_eq!(frames(&[b"data: half\n"]), []);
    }

    #[test]
    fn a_frame_without_end_is_refused_before_it_fills_the_memory() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; 1 << 20];
        assert_eq!((0..5).find_map(|_| parser.push(&piece).err()), Some(TooLong));
    }
}
