use thiserror::Error;

/// Longest line that is taken for a message, in bytes without the line end.
pub const MAX_LINE_BYTES: usize = 1024 * 1024;

/// Cuts bytes into lines, whatever the pieces in which they come. Holds at most one line of
/// [`MAX_LINE_BYTES`].
#[derive(Debug, Default)]
pub(super) struct LineCutter {
    line: Vec<u8>,
    overlong: bool,
    finished: u64,
}

/// One line that has something in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1; empty lines count too.
    pub(super) number: u64,
    pub(super) text: Result<String, LineError>,
}

/// Why a line is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum LineError {
    #[error("is not valid UTF-8 and was skipped: send text as UTF-8")]
    NotUtf8,
    #[error("has more than {MAX_LINE_BYTES} bytes and was skipped: send shorter messages")]
    TooLong,
}

impl LineCutter {
    /// Takes bytes off `chunk` up to the end of the next line with something in it; none when
    /// all were taken without reaching one.
    pub(super) fn next(&mut self, chunk: &mut &[u8]) -> Option<Line> {
        loop {
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            self.take(part);
            if end.is_none() {
                *chunk = rest;
                return None;
            }
            *chunk = &rest[1..];
            let line = self.end_line();
            if line.is_some() {
                return line;
            }
        }
    }

    /// The last line, when the input ended without a line end.
    pub(super) fn finish(&mut self) -> Option<Line> {
        if self.line.is_empty() && !self.overlong { None } else { self.end_line() }
    }

    fn take(&mut self, part: &[u8]) {
        // One byte more, for the carriage return that does not count.
        if self.overlong || self.line.len() + part.len() > MAX_LINE_BYTES + 1 {
            self.overlong = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self) -> Option<Line> {
        self.finished += 1;
        let number = self.finished;
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if number == 1 && line.starts_with("\u{feff}".as_bytes()) {
            line.drain(..3);
        }
        if std::mem::take(&mut self.overlong) || line.len() > MAX_LINE_BYTES {
            return Some(Line { number, text: Err(LineError::TooLong) });
        }
        if line.trim_ascii().is_empty() {
            return None;
        }
        Some(Line { number, text: String::from_utf8(line).map_err(|_| LineError::NotUtf8) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
        let mut cutter = LineCutter::default();
        let mut lines = Vec::new();
        for mut chunk in chunks {
            while let Some(line) = cutter.next(&mut chunk) {
                lines.push(line);
            }
            assert!(chunk.is_empty());
        }
        lines.extend(cutter.finish());
        lines
    }

    fn text(number: u64, text: &str) -> Line {
        Line { number, text: Ok(text.to_owned()) }
    }

    #[test]
    fn lines_end_with_either_line_end_or_the_input() {
        let lines = cut([b"\xef\xbb\xbfone\r\n\n \t\ntwo \nthr".as_slice(), b"ee\r"]);
        assert_eq!(lines, [text(1, "one"), text(4, "two "), text(5, "three")]);
        assert_eq!(cut([b"".as_slice()]), []);
        assert_eq!(cut([b"\n\n".as_slice()]), []);
    }

    #[test]
    fn a_line_of_one_mebibyte_is_taken_and_a_longer_one_is_not() {
        let longest = vec![b'x'; MAX_LINE_BYTES];
        let input = [&longest[..], b"\r\n", &longest, b"y\n", &longest, b"\nshort"].concat();
        let lines = cut(input.chunks(7777));
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[0].text.as_ref().unwrap().len(), MAX_LINE_BYTES);
        assert_eq!(lines[1], Line { number: 2, text: Err(LineError::TooLong) });
        assert_eq!(lines[2].text.as_ref().unwrap().len(), MAX_LINE_BYTES);
        assert_eq!(lines[3], text(4, "short"));
    }

    #[test]
    fn an_endless_line_takes_no_memory_beyond_the_limit() {
        let mut cutter = LineCutter::default();
        for _ in 0..64 {
            let chunk = vec![b'x'; 1024 * 1024];
            assert_eq!(cutter.next(&mut &chunk[..]), None);
            assert!(cutter.line.capacity() <= 2 * (MAX_LINE_BYTES + 1));
        }
        assert_eq!(cutter.finish(), Some(Line { number: 1, text: Err(LineError::TooLong) }));
    }

    proptest! {
        /// A11: what is read does not depend on how the pipe cuts it, and bad bytes spoil one line.
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>(), b'a'..=b'c'], 0..200),
            sizes in prop::collection::vec(1_usize..20, 1..40),
        ) {
            let mut pieces = Vec::new();
            let mut rest = &bytes[..];
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let lines = cut(pieces);
            prop_assert_eq!(&lines, &cut([&bytes[..]]));

            let without_mark = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let expected: Vec<Line> = without_mark
                .split(|byte| *byte == b'\n')
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
                .zip(1..)
                .filter(|(line, _)| !line.trim_ascii().is_empty())
                .map(|(line, number)| {
                    let text = String::from_utf8(line.to_vec()).map_err(|_| LineError::NotUtf8);
                    Line { number, text }
                })
                .collect();
            prop_assert_eq!(lines, expected);
        }
    }
}
