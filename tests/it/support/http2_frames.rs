//! HTTP/2 by hand, frame by frame: clients without the manners that its library has. They answer no ping, and go on
//! asking whatever they are told.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::support::connections::LONG;
use crate::support::harness::Gateway;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `RST_STREAM` for what was not begun.
pub const REFUSED: &[u8] = &[0, 0, 0, 7];

pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub is_last: bool,
    pub payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// How a connection begins that has room for so much of each answer, and for any of all together.
pub fn opening(room: u32) -> Vec<u8> {
    let mut said = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut initial_window_size = vec![0, 4];
    initial_window_size.extend(room.to_be_bytes());
    said.extend(frame(SETTINGS, 0, 0, &initial_window_size));
    said.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
    said
}

/// A request without a body.
pub fn asking(gateway: &Gateway, stream: u32, method: &str, path: &str) -> Vec<u8> {
    let (id, secret) = (gateway.key.id.as_str(), gateway.key.secret.as_str());
    let mut fields = Vec::new();
    for (name, value) in [
        (":method", method),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", path),
        ("x-b2b-key", id),
        ("x-b2b-secret", secret),
    ] {
        fields.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "its length must fit into a byte: {text}");
            fields.push(text.len() as u8);
            fields.extend(text.bytes());
        }
    }
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields)
}

pub struct Frames {
    to: OwnedWriteHalf,
    heard: UnboundedReceiver<Frame>,
    next: u32,
}

impl Frames {
    pub async fn open(stream: TcpStream, room: u32) -> Frames {
        let (from, mut to) = stream.into_split();
        to.write_all(&opening(room)).await.unwrap();
        let (tell, heard) = unbounded_channel();
        tokio::spawn(listen(from, tell));
        Frames { to, heard, next: 1 }
    }

    /// Asks, if the connection is still there.
    pub async fn ask(&mut self, gateway: &Gateway, method: &str, path: &str) -> u32 {
        let stream = self.next;
        self.next += 2;
        let _ = self.to.write_all(&asking(gateway, stream, method, path)).await;
        stream
    }

    /// Makes room for so much more of an answer.
    pub async fn allow(&mut self, stream: u32, more: u32) {
        let _ = self.to.write_all(&frame(WINDOW_UPDATE, 0, stream, &more.to_be_bytes())).await;
    }

    /// What is said next, or nothing when the connection has ended.
    pub async fn next(&mut self) -> Option<Frame> {
        timeout(LONG, self.heard.recv()).await.expect("a frame in time")
    }

    /// Does something again and again, until a frame like this comes or the connection ends; all that came meanwhile.
    pub async fn until(
        &mut self,
        is_it: impl Fn(&Frame) -> bool,
        mut again: impl AsyncFnMut(&mut Frames),
    ) -> Vec<Frame> {
        let (started, mut all) = (Instant::now(), Vec::new());
        loop {
            assert!(started.elapsed() < LONG, "waited in vain");
            again(self).await;
            let pause = std::time::Duration::from_millis(100);
            while let Ok(heard) = timeout(pause, self.heard.recv()).await {
                let Some(frame) = heard else { return all };
                let found = is_it(&frame);
                all.push(frame);
                if found {
                    return all;
                }
            }
        }
    }
}

async fn listen(mut from: OwnedReadHalf, tell: UnboundedSender<Frame>) {
    let mut head = [0; 9];
    // Reset is as good as closed.
    while from.read_exact(&mut head).await.is_ok() {
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        if from.read_exact(&mut payload).await.is_err() {
            return;
        }
        let is_last = flags & END_STREAM != 0 && matches!(kind, DATA | HEADERS);
        let _ = tell.send(Frame { kind, stream: u32::from_be_bytes(stream), is_last, payload });
    }
}
