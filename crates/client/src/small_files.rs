//! The small files of a folder: many in one call, so that neither calls nor syncs of the server's disk count.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jobyard_api::json::{ArtifactBatch, ArtifactsStored, BatchedArtifact};
use jobyard_model::ArtifactHash;
use jobyard_tree::Folder;
use sha2::{Digest, Sha256};

use crate::outage::Outage;
use crate::retry::Repeat;
use crate::transport::Call;
use crate::trees::{FolderStep, FolderWatch, PUSHING, blocking};
use crate::{Artifacts, Error};

/// Larger files go up each in a call of its own.
pub(crate) const SMALL_BYTES: u64 = 64 << 10;
/// Bytes of files in one call, which is held in memory.
const BATCH_BYTES: u64 = 1 << 20;

/// A file that has to be sent.
#[derive(Debug, Clone)]
pub(crate) struct WantedFile {
    pub(crate) hash: ArtifactHash,
    /// Below the folder.
    pub(crate) path: String,
    pub(crate) size: u64,
}

/// In calls that none is too large of.
pub(crate) fn in_batches(files: Vec<WantedFile>) -> Vec<Vec<WantedFile>> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for file in files {
        if batch.len() == ArtifactBatch::MOST_FILES || bytes + file.size > BATCH_BYTES {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += file.size;
        batch.push(file);
    }
    batches.push(batch);
    batches.retain(|batch| !batch.is_empty());
    batches
}

impl Artifacts {
    /// Sends small files in one call.
    pub(crate) async fn push_batch(
        &self,
        folder: &Arc<Folder>,
        files: Vec<WantedFile>,
        watch: &FolderWatch,
    ) -> Result<(), Error> {
        let bytes = files.iter().map(|file| file.size).sum();
        let folder = Arc::clone(folder);
        let body = blocking(move || body_of(&folder, &files)).await?;
        let call = Call::post(PUSHING, "/artifacts/batch", Repeat::Safe).octets(body);
        let policy = self.client().inner().retry_policy;
        let mut outage = Outage::default();
        loop {
            match self.client().fetch::<ArtifactsStored>(&call).await {
                Ok(_) => break,
                Err(error) => outage.bear(&policy, error).await?,
            }
        }
        watch(FolderStep::Moved { bytes });
        Ok(())
    }
}

/// A line that says which files follow, and the files.
fn body_of(folder: &Folder, files: &[WantedFile]) -> Result<Bytes, Error> {
    let named = |file: &WantedFile| BatchedArtifact { sha256: file.hash.to_string(), size: file.size };
    let batch = ArtifactBatch { files: files.iter().map(named).collect() };
    let mut body = BytesMut::new().writer();
    serde_json::to_writer(&mut body, &batch).map_err(|error| Error::Setup(Box::new(error)))?;
    let mut body = body.into_inner();
    body.put_u8(b'\n');
    for file in files {
        body.extend_from_slice(&read(folder, file)?);
    }
    Ok(body.freeze())
}

fn read(folder: &Folder, file: &WantedFile) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::File { doing: "read", path: file.path.clone().into(), source };
    let mut bytes = Vec::new();
    let reader = folder.open_file(&file.path)?;
    // One more than there should be: it may have grown meanwhile.
    reader.take(file.size + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if ArtifactHash(Sha256::digest(&bytes).into()) != file.hash {
        return Err(unreadable(io::Error::other("it changed while it was pushed")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(sizes: &[u64]) -> Vec<Vec<u64>> {
        let file = |size: &u64| WantedFile { hash: ArtifactHash([0; 32]), path: String::new(), size: *size };
        let batches = in_batches(sizes.iter().map(file).collect());
        batches.iter().map(|batch| batch.iter().map(|file| file.size).collect()).collect()
    }

    #[test]
    fn a_call_has_so_many_files_and_bytes_at_most() {
        assert_eq!(batches(&[]), Vec::<Vec<u64>>::new());
        assert_eq!(batches(&[0; 2_500]).iter().map(Vec::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
        let half = BATCH_BYTES / 2;
        assert_eq!(batches(&[half, half, 0, 1, half]), [vec![half, half, 0], vec![1, half]]);
    }
}
