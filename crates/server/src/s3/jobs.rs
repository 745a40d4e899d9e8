//! The places in S3 that jobs may name, and what is read and written there for them.
//!
//! The servers' credentials reach further than any one team's. Invariant: **nothing is asked of S3 for a job but at a
//! place that the settings allow its owner**, at the submit as at each call for one of its attempts.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt};
use jobyard_model::S3Url;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::{S3Error, S3Settings, Upload, of_s3};
use crate::artifact_store::ByteStream;

/// Objects of one look below a prefix.
pub(crate) const PAGE: usize = 1_000;

/// What jobs of some owners may do at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Allow {
    /// One object, or a prefix with all below it.
    pub place: S3Url,
    /// `None`: all owners.
    pub owners: Option<Vec<String>>,
    /// What they may.
    pub access: S3Access,
}

/// What a job does at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum S3Access {
    /// Its executable or its input lies there.
    Read,
    /// Its outputs go there, too.
    ReadWrite,
}

/// The buckets that jobs may name.
pub struct JobBuckets {
    settings: S3Settings,
    allow: Vec<S3Allow>,
    /// At most one a bucket in `allow`.
    clients: Mutex<HashMap<String, Arc<AmazonS3>>>,
}

/// An object as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundObject {
    /// Below the prefix; of a single object, the last part of its key.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    /// Changes with its bytes.
    pub(crate) etag: String,
}

/// Some of the objects below a prefix, by key.
#[derive(Debug, Default)]
pub(crate) struct FoundPage {
    pub(crate) objects: Vec<FoundObject>,
    /// Where to go on; `None`: these were the last ones.
    pub(crate) next: Option<String>,
}

impl JobBuckets {
    /// With `allow` empty, no job may name any.
    #[must_use]
    pub fn new(settings: S3Settings, allow: Vec<S3Allow>) -> Self {
        Self { settings, allow, clients: Mutex::default() }
    }

    /// No job may name any.
    #[must_use]
    pub fn none() -> Arc<Self> {
        Arc::new(Self::new(S3Settings::default(), Vec::new()))
    }

    /// Fails with words for who submitted the job unless jobs of this owner may do that there.
    pub(crate) fn check(&self, owner: &str, place: &S3Url, wanted: S3Access) -> Result<(), String> {
        let fits = |allow: &&S3Allow| {
            allow.owners.as_ref().is_none_or(|owners| owners.iter().any(|known| known == owner))
                && allow.access >= wanted
                && allow.place.covers(place)
        };
        if self.allow.iter().any(|allow| fits(&allow)) {
            return Ok(());
        }
        let verb = match wanted {
            S3Access::Read => "read",
            S3Access::ReadWrite => "write to",
        };
        Err(format!(
            "jobs of owner `{owner}` may not {verb} {place}: an operator allows places in S3 by `[[s3.allow]]` in the \
             server's settings"
        ))
    }

    fn bucket(&self, name: &str) -> Result<Arc<AmazonS3>, S3Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(name) {
            return Ok(Arc::clone(client));
        }
        let made = self.settings.bucket(name).map_err(|error| S3Error::Misconfigured(error.to_string()))?;
        let client = Arc::new(made);
        clients.insert(name.to_owned(), Arc::clone(&client));
        Ok(client)
    }

    /// The object at a place, or a page of those below a prefix.
    pub(crate) async fn find(&self, place: &S3Url, after: Option<&str>) -> Result<FoundPage, S3Error> {
        let bucket = self.bucket(place.bucket())?;
        if !place.is_prefix() {
            let found = look(&bucket, &key(place.key())?).await?;
            let path = place.name().to_owned();
            return Ok(FoundPage { objects: vec![found_object(path, found)?], next: None });
        }
        let options = PaginatedListOptions {
            offset: after.map(|after| format!("{}{after}", place.key())),
            max_keys: Some(PAGE),
            ..PaginatedListOptions::default()
        };
        let prefix = Some(place.key()).filter(|key| !key.is_empty());
        let page = bucket.list_paginated(prefix, options).await.map_err(of_s3)?;
        let mut found = FoundPage::default();
        for object in page.result.objects {
            let Some(path) = object.location.as_ref().strip_prefix(place.key()).map(str::to_owned) else {
                // The prefix itself, as some programs put an object for each folder.
                continue;
            };
            found.next = Some(path.clone());
            // Such an object of a folder below looks like a file without bytes here, and can't be read as one.
            let object = match object.size == 0 || object.e_tag.is_none() {
                true => match look(&bucket, &object.location).await {
                    Err(S3Error::Missing) => continue,
                    looked => looked?,
                },
                false => object,
            };
            found.objects.push(found_object(path, object)?);
        }
        found.next = found.next.filter(|_| page.page_token.is_some());
        Ok(found)
    }

    /// The bytes of an object from `offset` on, as long as it is still the one with this tag.
    pub(crate) async fn open(&self, place: &S3Url, etag: &str, offset: u64) -> Result<ByteStream, S3Error> {
        let options = GetOptions {
            if_match: Some(etag.to_owned()),
            range: (offset > 0).then_some(GetRange::Offset(offset)),
            ..GetOptions::default()
        };
        let bucket = self.bucket(place.bucket())?;
        let found = bucket.get_opts(&key(place.key())?, options).await.map_err(of_s3)?;
        Ok(found.into_stream().map_err(|error| io::Error::other(of_s3(error))).boxed())
    }

    /// An object in the making.
    pub(crate) fn upload(&self, place: &S3Url) -> Result<Upload, S3Error> {
        Ok(Upload::new(self.bucket(place.bucket())?, key(place.key())?))
    }
}

fn key(key: &str) -> Result<Path, S3Error> {
    Path::parse(key).map_err(|error| S3Error::Refused(error.to_string()))
}

async fn look(bucket: &AmazonS3, key: &Path) -> Result<ObjectMeta, S3Error> {
    bucket.head(key).await.map_err(of_s3)
}

fn found_object(path: String, object: ObjectMeta) -> Result<FoundObject, S3Error> {
    // Without it nobody could tell whether it changes while it is read.
    let etag =
        object.e_tag.ok_or_else(|| S3Error::Refused("the store gives its objects no ETag".to_owned()))?;
    Ok(FoundObject { path, size_bytes: object.size, etag })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(place: &str, owners: Option<&[&str]>, access: S3Access) -> S3Allow {
        let owners = owners.map(|owners| owners.iter().map(|owner| (*owner).to_owned()).collect());
        S3Allow { place: place.parse().unwrap(), owners, access }
    }

    #[test]
    fn only_what_is_allowed_to_the_owner_is() {
        use S3Access::{Read, ReadWrite};
        let buckets = JobBuckets::new(
            S3Settings::default(),
            vec![
                allow("s3://public/data/", None, Read),
                allow("s3://teams/search/", Some(&["search", "ops"]), ReadWrite),
                allow("s3://teams/one", Some(&["ops"]), Read),
            ],
        );
        let cases = [
            ("anybody", "s3://public/data/x", Read, true),
            ("anybody", "s3://public/data/", Read, true),
            ("anybody", "s3://public/data/x", ReadWrite, false),
            ("anybody", "s3://public/dat", Read, false),
            ("anybody", "s3://public/", Read, false),
            ("search", "s3://teams/search/x/y", ReadWrite, true),
            ("search", "s3://teams/search/x/y", Read, true),
            ("search", "s3://teams/searching", Read, false),
            ("search", "s3://teams/one", Read, false),
            ("ads", "s3://teams/search/x", Read, false),
            ("ops", "s3://teams/one", Read, true),
            ("ops", "s3://teams/one/more", Read, false),
        ];
        for (owner, place, access, expected) in cases {
            let checked = buckets.check(owner, &place.parse().unwrap(), access);
            assert_eq!(checked.is_ok(), expected, "{owner} {place} {access:?}");
            assert!(checked.err().is_none_or(|why| why.contains(place) && why.contains("[[s3.allow]]")));
        }
        assert!(JobBuckets::none().check("ops", &"s3://teams/one".parse().unwrap(), Read).is_err());
    }
}
