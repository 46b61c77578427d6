//! The process around the doors: its hosts, jobs, logs and mail.

mod hosts;
mod jobs;
mod logs;
mod mail_smtp;
mod sandbox;
