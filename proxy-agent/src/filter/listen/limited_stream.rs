//! A stream of which only so much is read until its caller is known. A handshake of kube-proxy's takes two or three kilobytes; a caller
//! that sends more is no kube-proxy, and is not to fill buffers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream with a limit until it is lifted.
pub(super) struct Metered<S> {
    inner: S,
    left: Option<usize>,
}

impl<S> Metered<S> {
    pub(super) fn new(inner: S, most: usize) -> Self {
        Self { inner, left: Some(most) }
    }

    /// The caller is known.
    pub(super) fn lift(&mut self) {
        self.left = None;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        match &mut self.left {
            Some(left) if read > *left => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "more than a handshake takes")))
            }
            Some(left) => {
                *left -= read;
                Poll::Ready(Ok(()))
            }
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
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
        let mut metered = Metered::new(far, 32);
        metered.read_exact(&mut [0; 32]).await.unwrap();
        assert_eq!(metered.read(&mut [0; 32]).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        metered.lift();
        near.write_all(&[0; 40]).await.unwrap();
        metered.read_exact(&mut [0; 40]).await.unwrap();
    }
}
