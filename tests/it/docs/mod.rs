//! What newcomers are told: the examples of every body are what the gateway says, and fit their descriptions.

mod calm;
mod described;
mod heard;
mod stories;
mod story;
