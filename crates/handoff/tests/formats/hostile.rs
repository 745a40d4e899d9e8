//! Bytes that nobody wrote for us.

use jobyard_handoff::{
    DecodeError, EXIT_FILE_BYTES, EndedBy, Environment, ExecPlan, ExitRecord, Fault, FaultCode, FrameBuffer,
    FromSidecar, ToSidecar,
};
use proptest::prelude::*;

use crate::samples;

#[test]
fn half_a_file_is_an_error() {
    let plan = samples::plan().encode();
    let record = samples::record().encode();
    for end in 0..plan.len() {
        assert!(ExecPlan::decode(&plan[..end]).is_err(), "{end}");
    }
    for end in 0..record.len() {
        assert!(!matches!(ExitRecord::decode(&record[..end]), Ok(Some(_))), "{end}");
    }
}

#[test]
fn one_bit_is_an_error() {
    for (name, bytes) in [("plan", samples::plan().encode()), ("exit", samples::record().encode())] {
        for at in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            let read = match name {
                "plan" => ExecPlan::decode(&bytes).is_ok(),
                _ => ExitRecord::decode(&bytes).is_ok(),
            };
            assert!(!read, "{name}, bit {at}");
        }
    }
}

#[test]
fn an_allocated_exit_file_holds_no_record_and_a_written_one_does() {
    let mut file = vec![0; EXIT_FILE_BYTES];
    assert_eq!(ExitRecord::decode(&file), Ok(None));
    let record = samples::record().encode();
    file[..record.len()].copy_from_slice(&record);
    assert_eq!(ExitRecord::decode(&file), Ok(Some(samples::record())));
    // Torn in the middle by a kill.
    file[record.len() / 2..].fill(0);
    assert_eq!(ExitRecord::decode(&file), Err(DecodeError::Checksum));
}

#[test]
fn the_longest_record_fits_its_file() {
    let mut record = samples::record();
    record.message = Some("ä".repeat(2_000));
    let message = "\u{1F980}".repeat(2_000);
    record.fault = Some(Fault { code: FaultCode::ExecFailed, message });
    record.limits = "x".repeat(500);
    let bytes = record.encode();
    assert!(bytes.len() <= EXIT_FILE_BYTES, "{}", bytes.len());
    let read = ExitRecord::decode(&bytes).unwrap().unwrap();
    assert_eq!(read.ended_by, EndedBy::Timeout);
    assert!(read.fault.unwrap().message.len() > 400);
}

#[test]
fn another_version_is_named() {
    let mut plan = samples::plan().encode();
    plan[6] = 9;
    assert_eq!(ExecPlan::decode(&plan), Err(DecodeError::UnsupportedVersion(9)));
    plan[0] = b'X';
    assert_eq!(ExecPlan::decode(&plan), Err(DecodeError::NotOurs));
}

proptest! {
    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = ExecPlan::decode(&bytes);
        let _ = Environment::decode(&bytes);
        let _ = ExitRecord::decode(&bytes);
        for record in jobyard_handoff::log::records(&bytes, 0) {
            let _ = record;
        }
        let mut buffer = FrameBuffer::default();
        buffer.extend(&bytes);
        while let Ok(Some(_)) = buffer.next_frame::<ToSidecar>() {}
        let mut buffer = FrameBuffer::default();
        buffer.extend(&bytes);
        while let Ok(Some(_)) = buffer.next_frame::<FromSidecar>() {}
    }

    /// Past the checksum, so that the fields themselves are tried.
    #[test]
    fn sealed_noise_never_panics(body in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..3_usize) {
        let magic = [b"JYPLAN", b"JYEXIT", b"JYENV\n"][kind];
        let mut bytes = magic.to_vec();
        bytes.extend_from_slice(&1_u16.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&crc32(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        let _ = (ExecPlan::decode(&bytes), Environment::decode(&bytes), ExitRecord::decode(&bytes));
    }

    #[test]
    fn plans_come_back_as_they_were(
        arguments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..9),
        times in any::<[u64; 6]>(),
    ) {
        use std::os::unix::ffi::OsStringExt;
        let mut plan = samples::plan();
        plan.arguments = arguments.into_iter().map(std::ffi::OsString::from_vec).collect();
        plan.times.timeout_ms = times[0];
        plan.times.lease_ms = times[1];
        plan.memory_limit_bytes = Some(times[2]);
        prop_assert_eq!(ExecPlan::decode(&plan.encode()).unwrap(), plan);
    }
}

/// As the format's own, from the definition.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
