//! UDP: answers every datagram with its source and content, from the address it was sent to.

use std::{io, time::Duration};

use tokio::time::sleep;

use super::{datagrams::Datagrams, stop::Stop};
use crate::answer::{Answer, Ends, Place};

/// The largest possible datagram.
const LARGEST: usize = 65_535;

/// The pause after receiving fails for lack of memory.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn serve(socket: &Datagrams, place: &Place, mut stop: Stop) {
    let mut buffer = vec![0; LARGEST];
    loop {
        tokio::select! {
            () = stop.requested() => return,
            answered = answer(socket, &mut buffer, place) => if answered.is_err() {
                sleep(PAUSE).await;
            },
        }
    }
}

async fn answer(socket: &Datagrams, buffer: &mut [u8], place: &Place) -> io::Result<()> {
    let datagram = socket.receive(buffer).await?;
    let ends = Ends::new(datagram.peer, datagram.local);
    let answer = Answer::udp(&buffer[..datagram.length], ends, place).line()?;
    // Send errors are ignored: they affect this caller only, which sees that the answer is missing.
    socket.send(&answer, &datagram).await.ok();
    Ok(())
}
