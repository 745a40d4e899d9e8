//! A stream of bytes, cut anywhere.

use jobyard_handoff::{FrameBuffer, FrameError, FromSidecar, MAX_FRAME_BYTES, ToSidecar};

use crate::samples;

#[test]
fn frames_come_out_whole_however_they_are_cut() {
    let mut bytes = Vec::new();
    samples::from_sidecar().iter().for_each(|frame| frame.encode(&mut bytes));
    for piece in [1, 2, 3, 7, 64, bytes.len()] {
        let mut buffer = FrameBuffer::default();
        let mut frames = Vec::new();
        for chunk in bytes.chunks(piece) {
            buffer.extend(chunk);
            while let Some(frame) = buffer.next_frame::<FromSidecar>().unwrap() {
                frames.push(frame);
            }
        }
        assert_eq!(frames, samples::from_sidecar());
    }
}

#[test]
fn kinds_and_fields_of_a_newer_release_are_skipped() {
    let mut bytes = vec![4, 0, 0, 0, 250, 1, 2, 3];
    // A renewal with a field after what we know.
    bytes.extend_from_slice(&[11, 0, 0, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
    let mut buffer = FrameBuffer::default();
    buffer.extend(&bytes);
    let frame = buffer.next_frame::<ToSidecar>().unwrap();
    assert_eq!(frame, Some(ToSidecar::Renewed { sent_at_boottime_ms: 7 }));
    assert_eq!(buffer.next_frame::<ToSidecar>().unwrap(), None);
}

#[test]
fn a_length_nobody_sends_ends_the_connection_before_it_is_read() {
    let long = u32::try_from(MAX_FRAME_BYTES).unwrap() + 1;
    for length in [0, long, u32::MAX] {
        let mut buffer = FrameBuffer::default();
        buffer.extend(&length.to_le_bytes());
        assert_eq!(buffer.next_frame::<ToSidecar>(), Err(FrameError::BadLength(length)));
    }
}
