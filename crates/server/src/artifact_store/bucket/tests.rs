//! Against a real S3 server on loopback.

use std::fs::{File, FileTimes};
use std::time::{Duration, UNIX_EPOCH};

use jobyard_test_s3::{ACCESS_KEY_ID, S3Server, SECRET_ACCESS_KEY};

use super::*;
use crate::artifact_store::ArtifactStoreError;
use crate::artifact_store::conformance::{self, World, hash_of, large, read};
use crate::s3::S3Key;

const BUCKET: &str = "bucket";
const PLACE: &str = "s3://bucket/some/where";
const LONG_AGO: Timestamp = Timestamp(1_000_000_000_000);
const AFTER_THAT: Timestamp = Timestamp(1_100_000_000_000);

struct Bucket {
    server: S3Server,
    store: BucketStore,
}

fn settings(server: &S3Server) -> S3Settings {
    let key = S3Key { id: ACCESS_KEY_ID.to_owned(), secret: SECRET_ACCESS_KEY.to_owned() };
    S3Settings {
        endpoint: Some(server.endpoint()),
        key: Some(key),
        allow_http: true,
        ..S3Settings::default()
    }
}

/// For a server that will be away.
fn impatient(server: &S3Server) -> S3Settings {
    let short = Duration::from_secs(1);
    let times =
        S3Times { connect: short, answer: short, retry: short, segment: short, pause: Duration::ZERO };
    S3Settings { times, ..settings(server) }
}

impl Bucket {
    fn new() -> Self {
        Self::with(settings)
    }

    fn with(settings: impl Fn(&S3Server) -> S3Settings) -> Self {
        let server = S3Server::start_new(BUCKET).unwrap();
        let store = BucketStore::open(&PLACE.parse().unwrap(), &settings(&server)).unwrap();
        Self { server, store }
    }

    /// Dates all that is there, or some of it.
    fn date(&self, at: Timestamp, what: impl Fn(&str) -> bool) {
        let at = UNIX_EPOCH + Duration::from_millis(at.0.unsigned_abs());
        for key in self.names().iter().filter(|key| what(key)) {
            let file = File::options().write(true).open(self.server.path(BUCKET, key)).unwrap();
            file.set_times(FileTimes::new().set_modified(at)).unwrap();
        }
    }
}

impl World for Bucket {
    fn store(&self) -> &dyn ArtifactStore {
        &self.store
    }

    fn names(&self) -> Vec<String> {
        let keys = self.server.keys(BUCKET).unwrap();
        assert!(keys.iter().all(|key| key.starts_with("some/where/")), "{keys:?}");
        keys
    }

    fn unfinished(&self) -> usize {
        self.server.unfinished_parts().unwrap()
    }
}

conformance::cases!(Bucket::new());

fn body(bytes: Vec<u8>) -> ByteStream {
    stream::iter([Ok(Bytes::from(bytes))]).boxed()
}

async fn put(store: &BucketStore, bytes: &[u8]) -> Result<u64, PutError> {
    store.put(hash_of(bytes), body(bytes.to_vec()), u64::MAX).await
}

#[tokio::test]
async fn an_upload_that_ends_while_an_old_one_is_removed_stays() {
    let world = Bucket::new();
    let hash = hash_of(b"hello");
    put(&world.store, b"hello").await.unwrap();
    for _ in 0..40 {
        world.date(LONG_AGO, |_| true);
        let (again, removed) =
            tokio::join!(put(&world.store, b"hello"), world.store.remove(hash, AFTER_THAT));
        again.unwrap();
        removed.unwrap();
        assert_eq!(world.store.size(hash).await.unwrap(), Some(5));
        assert_eq!(read(&world.store, hash, 0..5).await, b"hello");
    }
}

#[tokio::test]
async fn an_upload_in_parts_is_as_old_as_its_end() {
    let world = Bucket::new();
    let bytes = large();
    put(&world.store, &bytes).await.unwrap();
    // As S3 dates it: by the beginning of the upload.
    world.date(LONG_AGO, |key| !key.ends_with(WRITTEN));
    let hash = hash_of(&bytes);
    assert!(!world.store.remove(hash, AFTER_THAT).await.unwrap());
    assert_eq!(world.store.size(hash).await.unwrap(), Some(bytes.len() as u64));
    world.date(LONG_AGO, |_| true);
    assert!(world.store.remove(hash, AFTER_THAT).await.unwrap());
    assert_eq!(world.names(), Vec::<String>::new());
}

#[tokio::test]
async fn a_store_that_vanishes_during_an_upload_has_nothing_of_it_and_takes_it_when_it_is_back() {
    let mut world = Bucket::with(impatient);
    let bytes = large();
    let (send, receive) = tokio::sync::mpsc::channel::<io::Result<Bytes>>(1);
    let upload = world.store.send(
        hash_of(&bytes),
        tokio_stream::wrappers::ReceiverStream::new(receive).boxed(),
        u64::MAX,
    );
    let server = &mut world.server;
    let feed = async {
        for (at, piece) in bytes.chunks(1 << 20).enumerate() {
            if at == 8 {
                server.stop();
            }
            if send.send(Ok(Bytes::copy_from_slice(piece))).await.is_err() {
                break;
            }
        }
        drop(send);
    };
    let (uploaded, ()) = tokio::join!(upload, feed);
    assert!(matches!(uploaded, Err(PutError::Store(ArtifactStoreError::Away(_)))), "{uploaded:?}");
    assert!(world.store.trouble().is_some());
    assert!(matches!(put(&world.store, b"x").await, Err(PutError::Store(ArtifactStoreError::Away(_)))));
    world.server.start().unwrap();
    let store = BucketStore::open(&PLACE.parse().unwrap(), &settings(&world.server)).unwrap();
    assert_eq!(store.size(hash_of(&bytes)).await.unwrap(), None);
    assert_eq!(world.names(), Vec::<String>::new());
    put(&store, &bytes).await.unwrap();
    assert!(store.trouble().is_none());
}

#[tokio::test]
async fn a_frozen_store_is_given_up_on() {
    let mut world = Bucket::with(impatient);
    put(&world.store, b"hello").await.unwrap();
    world.server.freeze();
    let away = world.store.size(hash_of(b"hello")).await.unwrap_err();
    assert!(matches!(&away, ArtifactStoreError::Away(why) if why.contains("no answer in")), "{away}");
    let segment = world.store.put_segment("logs/1/a", Bytes::from_static(b"log")).await;
    assert!(matches!(segment, Err(ArtifactStoreError::Away(_))), "{segment:?}");
    world.server.thaw();
    assert_eq!(world.store.size(hash_of(b"hello")).await.unwrap(), Some(5));
}

#[tokio::test]
async fn after_a_failure_no_segment_is_tried_for_a_while() {
    let mut world = Bucket::with(|server| {
        let settings = impatient(server);
        S3Settings { times: S3Times { pause: Duration::from_secs(3_600), ..settings.times }, ..settings }
    });
    let segment = || world.store.put_segment("logs/1/a", Bytes::from_static(b"log"));
    world.server.stop();
    assert!(segment().await.is_err());
    world.server.start().unwrap();
    // It is back, and nobody asked it.
    assert!(segment().await.is_err());
    assert_eq!(world.store.segment_days().await.unwrap(), []);
    segment().await.unwrap();
    assert_eq!(world.store.segment_days().await.unwrap(), [LogDay(1)]);
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let server = S3Server::start_new(BUCKET).unwrap();
    let right = settings(&server);
    let key = |id: &str, secret: &str| Some(S3Key { id: id.to_owned(), secret: secret.to_owned() });
    let wrong_secret = S3Settings { key: key(ACCESS_KEY_ID, "other"), ..right.clone() };
    let wrong_id = S3Settings { key: key("other", SECRET_ACCESS_KEY), ..right.clone() };
    let cases = [
        (&wrong_secret, "s3://bucket/", "secret_access_key_file"),
        (&wrong_id, "s3://bucket/", "s3.access_key_id"),
        (&right, "s3://another/", "the bucket does not exist"),
    ];
    for (settings, place, advice) in cases {
        let store = BucketStore::open(&place.parse().unwrap(), settings).unwrap();
        let wrote = put(&store, b"hello").await.unwrap_err();
        let listed = store.segment_days().await.unwrap_err();
        for said in [wrote.to_string(), listed.to_string(), store.trouble().unwrap()] {
            assert!(said.contains(advice), "{advice}: {said}");
            assert!(!said.contains(SECRET_ACCESS_KEY), "{said}");
        }
        assert!(matches!(listed, ArtifactStoreError::Refused(_)), "{listed:?}");
    }
    assert!(!format!("{right:?}").contains(SECRET_ACCESS_KEY));
}

#[test]
fn an_endpoint_that_makes_no_sense_is_refused() {
    let place: S3Url = "s3://bucket/".parse().unwrap();
    let open = |endpoint: &str, allow_http| {
        let settings =
            S3Settings { endpoint: Some(endpoint.to_owned()), allow_http, ..S3Settings::default() };
        BucketStore::open(&place, &settings).map(|_| ())
    };
    assert!(matches!(open("http://127.0.0.1:1", false), Err(S3SettingsError::PlainHttp(_))));
    open("http://127.0.0.1:1", true).unwrap();
    for endpoint in ["127.0.0.1", "ftp://x", "https://", "https://a@b", "https://a b"] {
        assert!(matches!(open(endpoint, true), Err(S3SettingsError::Endpoint(_))), "{endpoint}");
    }
}
