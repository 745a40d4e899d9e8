//! Buckets in a folder, with what `s3s-fs` lacks of S3 and Jobyard rests on: `If-Match` on reads, and that a bucket which
//! is not there is not made by writing to it.

use std::path::{Path, PathBuf};

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput,
    CompleteMultipartUploadOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput,
    DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, ETagCondition,
    GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput, ListObjectsV2Input,
    ListObjectsV2Output, PutObjectInput, PutObjectOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

#[derive(Debug)]
pub(crate) struct Buckets {
    files: FileSystem,
    root: PathBuf,
}

impl Buckets {
    pub(crate) fn new(files: FileSystem, root: &Path) -> Self {
        Self { files, root: root.to_owned() }
    }

    fn find(&self, bucket: &str) -> S3Result<()> {
        if self.root.join(bucket).is_dir() { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
    }

    /// Fails unless the object is the one that is meant.
    async fn check(&self, request: &S3Request<GetObjectInput>) -> S3Result<()> {
        let Some(ETagCondition::ETag(wanted)) = &request.input.if_match else { return Ok(()) };
        let input = HeadObjectInput {
            bucket: request.input.bucket.clone(),
            key: request.input.key.clone(),
            ..HeadObjectInput::default()
        };
        let head = S3Request {
            input,
            method: request.method.clone(),
            uri: request.uri.clone(),
            headers: request.headers.clone(),
            extensions: request.extensions.clone(),
            credentials: request.credentials.clone(),
            region: request.region.clone(),
            service: request.service.clone(),
            trailing_headers: None,
        };
        let found = self.files.head_object(head).await?.output.e_tag;
        match found.is_some_and(|found| found.strong_cmp(wanted)) {
            true => Ok(()),
            false => Err(s3_error!(PreconditionFailed)),
        }
    }
}

/// Calls that are passed on as they are.
macro_rules! passed_on {
    ($($call:ident($input:ident) -> $output:ident;)*) => {
        #[async_trait::async_trait]
        impl S3 for Buckets {
            async fn get_object(
                &self,
                request: S3Request<GetObjectInput>,
            ) -> S3Result<S3Response<GetObjectOutput>> {
                self.find(&request.input.bucket)?;
                self.check(&request).await?;
                self.files.get_object(request).await
            }

            $(async fn $call(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                self.find(&request.input.bucket)?;
                self.files.$call(request).await
            })*
        }
    };
}

passed_on! {
    head_object(HeadObjectInput) -> HeadObjectOutput;
    put_object(PutObjectInput) -> PutObjectOutput;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput;
    upload_part(UploadPartInput) -> UploadPartOutput;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput;
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput;
}
