//! Limits how much is read from a client before it is authenticated. A handshake of kube-proxy
//! takes two or three kilobytes. A client that sends more is not kube-proxy, and must not fill
//! buffers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream with a read limit.
pub(super) struct LimitedStream<S> {
    inner: S,
    remaining: Option<usize>,
}

impl<S> LimitedStream<S> {
    pub(super) fn new(inner: S, limit: usize) -> Self {
        Self { inner, remaining: Some(limit) }
    }

    /// Removes the limit, once the client is authenticated.
    pub(super) fn remove_limit(&mut self) {
        self.remaining = None;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        match &mut self.remaining {
            Some(remaining) if read > *remaining => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the client sent more than a handshake takes",
            ))),
            Some(remaining) => {
                *remaining -= read;
                Poll::Ready(Ok(()))
            }
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_caller_that_is_not_known_sends_no_more_than_a_handshake_and_one_that_is_may() {
        let (mut near, far) = duplex(64);
        near.write_all(&[0; 40]).await.unwrap();
        let mut limited = LimitedStream::new(far, 32);
        limited.read_exact(&mut [0; 32]).await.unwrap();
        assert_eq!(limited.read(&mut [0; 32]).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        limited.remove_limit();
        near.write_all(&[0; 40]).await.unwrap();
        limited.read_exact(&mut [0; 40]).await.unwrap();
    }
}
